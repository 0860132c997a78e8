// What a Pod object says, as far as GPUs are concerned. A plain value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "policy/selector.h"
#include "scheduler/facts/agent.h"
#include "scheduler/facts/allocation.h"
#include "scheduler/facts/gates.h"
#include "scheduler/facts/placeholder.h"
#include "scheduler/facts/pod_claims.h"
#include "scheduler/facts/pod_request.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

enum class PodPhase : uint8_t { kPending, kRunning, kSucceeded, kFailed, kUnknown };

// No object has a longer name; what is longer is cut.
inline constexpr std::size_t kMostProvisioningName = 253;

// What a pod says of itself for the order in which its ReplicaSet takes pods away (annotation
// controller.kubernetes.io/pod-deletion-cost; the lower cost first, 0 where nothing is said).
struct DeletionCostMark {
  enum class By : uint8_t { kNobody, kUs, kOthers };
  By by = By::kNobody;
  int32_t cost = 0;  // kUs; who else wrote one has the last word, whatever it is
  friend bool operator==(const DeletionCostMark&, const DeletionCostMark&) = default;
};

struct PodFacts {
  PodRequest request;  // uid, name, asks
  NodeName node;       // spec.nodeName; empty while pending
  NodeName nominated;  // status.nominatedNodeName
  PodPhase phase = PodPhase::kPending;
  bool terminating = false;         // metadata.deletionTimestamp is set; frees nothing
  bool disrupted = false;           // condition DisruptionTarget: somebody takes it away
  bool gated = false;               // spec.schedulingGates is not empty
  GateSet our_gates;                // those of them that are ours
  bool foreign_gates = false;       // somebody else's are among them
  bool refused_by_kubelet = false;  // Failed with reason OutOf* or UnexpectedAdmissionError
  std::optional<Instant> created;
  std::optional<Instant> bound_at;     // condition PodScheduled turned True
  std::optional<Instant> started_at;   // status.startTime: the kubelet took it up
  std::optional<Instant> running_at;   // the earliest start of an app container that runs or ended
  std::optional<Instant> finished_at;  // the latest finishedAt, once every container has ended
  std::optional<Instant> deletion_at;  // metadata.deletionTimestamp
  // How it may be taken away (of pods that ask for GPUs; else unset).
  std::string owner;  // uid of the controller (ownerReferences); empty: nobody makes it anew
  // Kind and name of what made it, as people know it: "Job/train", "Deployment/web"; empty: nobody.
  std::string controller;
  bool evictable = true;  // false: a mirror, static or DaemonSet pod (hazard 32)
  // Autoscalers are told to let it run: karpenter.sh/do-not-disrupt, or
  // cluster-autoscaler.kubernetes.io/safe-to-evict of "false".
  bool left_alone = false;
  bool of_replica_set = false;  // its controller is a ReplicaSet
  DeletionCostMark deletion_cost;
  // The ProvisioningRequest it is to use, in its namespace (autoscaling.x-k8s.io/
  // consume-provisioning-request); empty: none. At most kMostProvisioningName bytes.
  std::string provisioning;
  Millis grace{30'000};  // spec.terminationGracePeriodSeconds, which is 30 where it is not given
  bool unschedulable = false;              // condition PodScheduled is False, reason Unschedulable
  std::string scheduler_says;              // its message then, as far as kLongestSaying goes
  std::optional<Instant> checkpointed_at;  // tranche.dev/checkpointed-at
  std::shared_ptr<const Labels> labels;    // null: none
  // What it has of resource.k8s.io; null: nothing.
  std::shared_ptr<const dra::PodClaims> claims;
  // Read from tranche.dev/allocation, else from HAMi's hami.io/vgpu-devices-allocated; only ever
  // believed together with `node` (see index/node_state.h).
  std::optional<Allocation> allocation;
  // What the keys of the node's agent name where tranche.dev/allocation is there and names other
  // devices: one of the two was edited.
  std::optional<Allocation> disputed;
  AgentProgress progress = AgentProgress::kUnknown;  // of one with a node
  std::string allocation_problem;  // why an annotation that is there could not be read
  // The object itself could not be read: of what it asks and holds nothing is known but what stands
  // here. Unknown is busy: with a node, all GPUs of the node are taken.
  bool unreadable = false;
  std::optional<PlaceholderFacts> placeholder;  // it is one of ours that hold a card

  // Holds devices: has a node and is in no terminal phase. Deletion under way changes nothing.
  bool holds_devices() const {
    return !node.empty() && phase != PodPhase::kSucceeded && phase != PodPhase::kFailed;
  }
};

}  // namespace tranche
