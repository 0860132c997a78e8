// What the cluster tells us, an event a value: a watch (kube) or the in-process store (embedded)
// hands them over, and the engine's host receives them.
//
// Thread rule: any thread; when Receive returns the engine has seen the event.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "scheduler/dra/model.h"
#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_facts.h"

namespace tranche {

struct NodeChanged {
  NodeFacts node;
  std::string object = {};  // what is kept of it for later (facts/past.h); empty: nothing
};
struct NodeGone {
  NodeName name;
};
// The newest version of the node cannot be read, whether or not an earlier one was: it may say
// anything. Until NodeChanged or NodeGone.
struct NodeUnreadable {
  NodeName name;
  std::string problem;
};
struct PodChanged {
  PodFacts pod;
  std::string object = {};  // what is kept of it for later (facts/past.h); empty: nothing
};
struct PodGone {
  PodUid uid;
};

// What other objects than the Node say of a node: a NodeResourceTopology, the ResourceSlices of
// its GPU and NIC drivers (all of them together); nullopt and empty: no longer. The node itself
// may not be known yet.
struct NodeZonesChanged {
  NodeName node;
  std::optional<NodeZones> zones;
};
struct NodeSlicesChanged {
  NodeName node;
  std::vector<SliceDevice> devices;
};
// What an object of its own says of a node's agent and cards (Koordinator's Device); nullopt: no
// longer. What the Node object itself shows of an agent counts more.
struct NodeAgentChanged {
  NodeName node;
  std::optional<AgentRegister> agent;
};

// Device classes, resource slices, claims and their templates (resource.k8s.io).
struct DraChanged {
  dra::Object object;
};
struct DraGone {
  dra::ObjectRef object;
};

// How many pods of a gang start together, as an object of another controller says (a PodGroup's
// minMember). `gang` as in PodRequest::gang; 0: nobody says so any more.
struct GangSizeChanged {
  std::string ns;
  std::string gang;
  int size = 0;
};

// An autoscaler said at `told` that it raises a node for the pod; nullopt: now. It need not be
// known yet.
struct ScaleUpTold {
  PodUid pod;
  std::optional<Instant> told;
};

// Policy objects: GPUQuota, GPUBudget, GPUClass, GPUPolicy, GPUPool, GPUPrice, Namespace,
// PriorityClass, PodDisruptionBudget, ResourceQuota, and GPUQuotaView and GPUReclaim, which we
// write ourselves.
// A batch (a whole list, or one event) ends with PolicyObjectsSettled and takes effect then.
struct PolicyObject {
  std::string kind;
  std::string ns;  // empty: cluster scope
  std::string name;
  std::string uid;
  int64_t generation = 0;  // metadata.generation; 0: none
  std::string json;        // the whole object
};
struct PolicyObjectGone {
  std::string kind;
  NamespacedName name;
};
struct PolicyObjectsSettled {};

// The first complete set of policy objects, nodes and pods has been handed over, in that order.
struct Synced {};
// Something was heard from the server (event, bookmark, fresh list) for "pods" or "nodes".
struct Heard {
  const char* resource;
  bool whole = false;  // all there is was handed over: what came and went before is in no event
};

using ClusterEvent =
    std::variant<NodeChanged, NodeGone, NodeUnreadable, PodChanged, PodGone, NodeZonesChanged,
                 NodeSlicesChanged, NodeAgentChanged, DraChanged, DraGone, GangSizeChanged,
                 ScaleUpTold, PolicyObject, PolicyObjectGone, PolicyObjectsSettled, Synced, Heard>;

class ClusterEvents {
 public:
  virtual ~ClusterEvents() = default;
  virtual void Receive(ClusterEvent event) = 0;
};

}  // namespace tranche
