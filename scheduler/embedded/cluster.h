// A cluster in this process: ordinary Kubernetes objects in memory, no API server.
//
// The newcomer's default, the what-if tool and the test bed (DESIGN sections 7 and 9). Objects are
// kept as JSON text and handed to the engine through ClusterEvents exactly as a watch would.
// Semantics: apply creates or replaces the whole object (status, nodeName, annotations included);
// an object without uid gets one, kept while the object lives; a pod without phase is Pending; a
// bound Pending pod turns Running at once; a deleted pod with a node is Terminating for its grace
// period (deletionGracePeriodSeconds asked for, else spec.terminationGracePeriodSeconds, else 30 s;
// 0: gone at once), one without a node or in a terminal phase is gone at once.
//
// Thread rule: any thread; calls are serialised inside, and when one returns the engine has seen
// its events. Kinds kept: Node, Pod, Namespace, PriorityClass, PodDisruptionBudget and all of group
// tranche.dev; others are ignored and counted. Objects of group tranche.dev are checked as
// `tranche validate` does. What Tranche writes itself (statuses, views, reclaims, conditions,
// events, ConfigMaps) changes the stored objects and is not told back to the engine; what its
// binds, evictions, nominations and node labels change, is.
//
// A PodDisruptionBudget applied without status.disruptionsAllowed gets a status from its spec,
// which follows the pods as they come and go. One that is stated stays as stated, but for the
// evictions that are taken off.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/ports/clock.h"
#include "scheduler/ports/cluster_api.h"
#include "scheduler/ports/cluster_events.h"

namespace tranche::embedded {

struct ApplyReport {
  int applied = 0;
  std::map<std::string, int> ignored;  // kind -> objects of kinds Tranche does not use
};

class Cluster : public ClusterApi {
 public:
  // `defaults`: the policy that GPUPolicy objects overlay.
  Cluster(const Clock& clock, ClusterEvents& events, GpuPolicy defaults);
  ~Cluster() override;

  // One object, a List, or (YAML only) several documents; the text shows which of both it is.
  // All objects are checked before the first is stored. Errors: InvalidArgument naming object,
  // field and what was found.
  absl::StatusOr<ApplyReport> Apply(std::string_view text);
  // Like Apply with every object of a file. Errors also NotFound, naming the file.
  absl::StatusOr<ApplyReport> LoadFile(const std::string& path);
  // `text`: kind, metadata.name, metadata.namespace ("default" if a namespaced kind has none),
  // optional gracePeriodSeconds. One object or a List. Errors: NotFound, InvalidArgument.
  absl::Status Delete(std::string_view text);
  // The stored object as JSON; nullopt when there is none.
  std::optional<std::string> Get(std::string_view kind, std::string_view ns,
                                 std::string_view name) const;
  // A JSON List of a kind; `ns` empty: all namespaces.
  std::string List(std::string_view kind, std::string_view ns) const;
  // Ends due grace periods. Returns the next moment something is due.
  std::optional<Instant> Tick(Instant now);
  // All objects loaded at start are in: tells ClusterEvents::Synced.
  void FinishLoading();

  void Bind(BindingWrite write, std::function<void(WriteResult)> done) override;
  // Nothing queues here: done at once.
  void Requeue(PodName pod, PodUid uid, Instant when,
               std::function<void(WriteResult)> done) override;
  void GetPod(PodName pod, PodUid uid, std::function<void(PodLookup)> done) override;
  // Creates only a GPUQuotaView or GPUReclaim; members given replace those the object has.
  void Write(ObjectWrite write, std::function<void(WriteResult)> done) override;
  void DeleteView(NamespacedName view, std::function<void(WriteResult)> done) override;
  void DeleteReclaim(std::string name, std::function<void(WriteResult)> done) override;
  // As the Eviction API: 429 when the budget over the pod allows none, 500 when several cover it;
  // a pod that is pending, finished or terminating is not asked about. The pod then goes as one
  // that was deleted. The answer comes when the engine has seen pod and budget.
  void Evict(EvictionWrite write, std::function<void(EvictionResult)> done) override;
  void Nominate(PodName pod, PodUid uid, NodeName node,
                std::function<void(WriteResult)> done) override;
  void SetWaiting(WaitingWrite write, std::function<void(WriteResult)> done) override;
  // The engine sees the changed node; nothing here serves a pod and takes the lock away.
  void LockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) override;
  void UnlockNode(NodeLockWrite write, std::function<void(NodeLockResult)> done) override;
  void RemoveGate(GateWrite write, std::function<void(WriteResult)> done) override;
  // The engine sees the changed node. Nothing here acts on a label.
  void AnnotatePod(PodAnnotationWrite write, std::function<void(WriteResult)> done) override;
  void MarkPod(PodMarkWrite write, std::function<void(WriteResult)> done) override;
  void ListProvisioning(std::function<void(ProvisioningList)> done) override;
  void Provision(ProvisioningWrite write, std::function<void(WriteResult)> done) override;
  void Unprovision(ProvisioningFound request, std::function<void(WriteResult)> done) override;
  // Takes placeholder pods alone, and is kubelet and device plugin to them: the pod shows a card at
  // once, under a name made of node and number.
  void CreatePod(PodCreation creation, std::function<void(WriteResult)> done) override;
  void DeletePod(PodName pod, PodUid uid, std::function<void(WriteResult)> done) override;
  void LabelNode(NodeLabelWrite write, std::function<void(WriteResult)> done) override;
  void ReadConfigMap(NamespacedName map, std::string key,
                     std::function<void(ConfigMapLookup)> done) override;
  void PutConfigMap(ConfigMapWrite write, std::function<void(WriteResult)> done) override;
  // Kept as objects of kind Event, the newest 1,000.
  void Emit(EventWrite event, std::function<void(WriteResult)> done) override;

 private:
  struct State;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tranche::embedded
