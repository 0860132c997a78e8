// What the cluster tells us: a watch (kube) or the in-process store (embedded) calls these, and
// the engine's host receives them.
//
// Thread rule: any thread; when a call returns the engine has seen the event.
#pragma once

#include <cstdint>
#include <string>

#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_facts.h"

namespace tranche {

struct SteeringObject {
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
  // Objects that steer us: GPUQuota, GPUBudget, GPUClass, GPUPolicy, Namespace, PriorityClass,
  // PodDisruptionBudget, and GPUQuotaView and GPUReclaim, which we write ourselves. A batch (a
  // whole list, or one event) ends with SteeringSettled and takes effect then.
  virtual void SteeringChanged(SteeringObject object) = 0;
  virtual void SteeringGone(const std::string& kind, const std::string& ns,
                            const std::string& name) = 0;
  virtual void SteeringSettled() = 0;
  // The first complete set of steering objects, nodes and pods has been handed over, in that order.
  virtual void Synced() = 0;
  // Something was heard from the server (event, bookmark, fresh list) for "pods" or "nodes".
  virtual void Heard(const char* resource) = 0;
};

}  // namespace tranche
