// A real cluster: lists and watches pods, nodes, policy objects and those that tell more
// of nodes and gangs at an API server, and writes. Follows kube-client-protocol section by section.
//
// Two threads of its own: one reads (lists and watches) and calls ClusterEvents, one writes and
// calls the callbacks, so that a bind never waits behind a large list. Bind, Evict and GetPod have
// connections of their own there, so that they do not wait behind events and statuses either.
//
// Thread rule: Start and Stop from one thread, not from a callback; the rest from any. Before Start
// and after Stop, writes answer kNotSent and reads kFailed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "scheduler/kube/transport/options.h"
#include "scheduler/kube/watch/resource_status.h"
#include "scheduler/ports/cluster_api.h"
#include "scheduler/ports/cluster_events.h"

namespace tranche::kube {

class Cluster : public ClusterApi {
 public:
  Cluster(Options options, ClusterEvents& events);
  ~Cluster() override;
  void Start();
  // Ends watches and requests under way (a bind already sent answers kUnknown), calls every
  // outstanding callback, joins the threads. Idempotent.
  void Stop();
  // By plural name: "pods", "nodes", "gpuquotas", "namespaces", ...; with the group where two have
  // the same.
  std::map<std::string, ResourceStatus> status() const;
  // Lists pods and what we write ourselves (GPUReclaims) anew and calls `done` once lists that
  // began after this call are handed over, on the reading thread; not at all where Stop comes
  // first. Until then every version of what we write ourselves is handed over, as somebody else
  // may be writing it; then only that it is there. Once.
  void Refresh(std::function<void()> done);

  void Bind(BindingWrite write, std::function<void(WriteResult)> done) override;
  // Sent again for Timing::write_patience while no server takes it, as is a nomination.
  void Requeue(PodName pod, PodUid uid, Instant when,
               std::function<void(WriteResult)> done) override;
  void GetPod(PodName pod, PodUid uid, std::function<void(PodLookup)> done) override;
  void Write(ObjectWrite write, std::function<void(WriteResult)> done) override;
  void DeleteView(NamespacedName view, std::function<void(WriteResult)> done) override;
  void DeleteReclaim(std::string name, std::function<void(WriteResult)> done) override;
  // Sent again only when throttled, see ApiCalls::Evict. A budget's no, or several budgets over one
  // pod (kRejected with 500), will be the same a moment later: whoever asked waits before it asks
  // again.
  void Evict(EvictionWrite write, std::function<void(EvictionResult)> done) override;
  void Nominate(PodName pod, PodUid uid, NodeName node,
                std::function<void(WriteResult)> done) override;
  void SetWaiting(WaitingWrite write, std::function<void(WriteResult)> done) override;
  // A lost answer is settled by reading the node again.
  void LockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) override;
  void UnlockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) override;
  void RemoveGate(GateWrite write, std::function<void(WriteResult)> done) override;
  void AnnotatePod(PodAnnotationWrite write, std::function<void(WriteResult)> done) override;
  void MarkPod(PodMarkWrite write, std::function<void(WriteResult)> done) override;
  void ListProvisioning(std::function<void(ProvisioningList)> done) override;
  void Provision(ProvisioningWrite write, std::function<void(WriteResult)> done) override;
  void Unprovision(ProvisioningFound request, std::function<void(WriteResult)> done) override;
  void CreatePod(PodCreation creation, std::function<void(WriteResult)> done) override;
  void DeletePod(PodName pod, PodUid uid, std::function<void(WriteResult)> done) override;
  void LabelNode(NodeLabelWrite write, std::function<void(WriteResult)> done) override;
  void ReadConfigMap(NamespacedName map, std::string key,
                     std::function<void(ConfigMapLookup)> done) override;
  void PutConfigMap(ConfigMapWrite write, std::function<void(WriteResult)> done) override;
  void Emit(EventWrite event, std::function<void(WriteResult)> done) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tranche::kube
