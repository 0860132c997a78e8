// What the cluster tells us: a watch (kube) or the in-process store (embedded) calls these, and
// the engine's host receives them.
//
// Thread rule: any thread; when a call returns the engine has seen the event.
#pragma once

#include <vector>

#include "policy/spec.h"
#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_facts.h"

namespace tranche {

class ClusterEvents {
 public:
  virtual ~ClusterEvents() = default;
  virtual void NodeChanged(NodeFacts node) = 0;
  virtual void NodeGone(const NodeName& name) = 0;
  virtual void PodChanged(PodFacts pod) = 0;
  virtual void PodGone(const PodUid& uid) = 0;
  // All GPUPolicy objects of the cluster after a change.
  virtual void PoliciesChanged(std::vector<GpuPolicy> policies) = 0;
  // The first complete set of nodes and pods has been handed over.
  virtual void Synced() = 0;
  // Something was heard from the server (event, bookmark, fresh list) for "pods" or "nodes".
  virtual void Heard(const char* resource) = 0;
};

}  // namespace tranche
