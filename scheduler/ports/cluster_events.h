// What the cluster tells us: a watch (kube) or the in-process store (embedded) calls these, and
// the engine's host receives them.
//
// Thread rule: any thread; when a call returns the engine has seen the event.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/dra/model.h"
#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_facts.h"

namespace tranche {

struct PolicyObject {
  std::string kind;
  std::string ns;  // empty: cluster scope
  std::string name;
  std::string uid;
  int64_t generation = 0;  // metadata.generation; 0: none
  std::string json;        // the whole object
};

class ClusterEvents {
 public:
  virtual ~ClusterEvents() = default;
  virtual void NodeChanged(NodeFacts node) = 0;
  virtual void NodeGone(const NodeName& name) = 0;
  virtual void PodChanged(PodFacts pod) = 0;
  virtual void PodGone(const PodUid& uid) = 0;
  // What other objects than the Node say of a node: a NodeResourceTopology, the ResourceSlices of
  // its GPU and NIC drivers (all of them together); nullopt and empty: no longer. The node itself
  // may not be known yet.
  virtual void NodeZonesChanged(const NodeName& name, std::optional<NodeZones> zones) = 0;
  virtual void NodeSlicesChanged(const NodeName& name, std::vector<SliceDevice> devices) = 0;
  // What an object of its own says of a node's agent and cards (Koordinator's Device); nullopt: no
  // longer. What the Node object itself shows of an agent counts more.
  virtual void NodeAgentChanged(const NodeName& name, std::optional<AgentRegister> agent) = 0;
  // Device classes, resource slices, claims and their templates (resource.k8s.io).
  virtual void DraChanged(dra::Object object) = 0;
  virtual void DraGone(const dra::ObjectRef& object) = 0;
  // How many pods of a gang start together, as an object of another controller says (a PodGroup's
  // minMember). `gang` as in PodRequest::gang; 0: nobody says so any more.
  virtual void GangSizeChanged(const std::string& ns, const std::string& gang, int size) = 0;
  // Policy objects: GPUQuota, GPUBudget, GPUClass, GPUPolicy, Namespace, PriorityClass,
  // PodDisruptionBudget, ResourceQuota, and GPUQuotaView and GPUReclaim, which we write ourselves.
  // A batch (a whole list, or one event) ends with PolicyObjectsSettled and takes effect then.
  virtual void PolicyObjectChanged(PolicyObject object) = 0;
  virtual void PolicyObjectGone(const std::string& kind, const NamespacedName& object) = 0;
  virtual void PolicyObjectsSettled() = 0;
  // The first complete set of policy objects, nodes and pods has been handed over, in that order.
  virtual void Synced() = 0;
  // Something was heard from the server (event, bookmark, fresh list) for "pods" or "nodes".
  virtual void Heard(const char* resource) = 0;
};

}  // namespace tranche
