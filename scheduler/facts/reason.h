// Why a node or a pod is refused: the closed set of reasons, in order of precedence.
//
// The texts go to kube-scheduler, which re-queues pods whose message changes: they are fixed and
// carry no numbers. Numbers belong to explain. When several reasons hold, the first listed wins.
#pragma once

#include <cstdint>
#include <string_view>

namespace tranche {

enum class Reason : uint8_t {
  kNone = 0,
  // About the request: no node can answer it.
  kMixedStyles,     // keys of two request styles in one pod
  kBadAmount,       // not whole, negative, zero, too large, not a quantity
  kUnknownProfile,  // a MIG profile no board has
  kStyleOff,        // the policy does not accept this request style
  kUnknownModel,    // a GPU model that no node has and no list knows
  // About the team: budget, then quota. The numbers are the quota's, see explain.
  kNoLeaf,        // no quota owns the namespace, and the policy refuses such pods
  kLeafConflict,  // several quotas own the namespace
  kLedgerClosed,  // the ledger cannot be trusted or written, and quota is to fail closed
  kBudgetExhausted,
  kExceedsMaxQuota,  // more than the team could ever have
  kBorrowLimit,
  kLenderLimit,
  kWaitingForQuota,
  kNamespaceQuota,  // a ResourceQuota of the namespace, as HAMi reads it, has no room
  // About the node, before its devices are looked at.
  kUnknownNode,
  kNodeUnreadable,  // its object cannot be read: nobody knows what it has
  kNodeNotReady,
  kNodeCordoned,
  kInterrupted,      // it is about to be taken away, as a taint says
  kAgentUnreadable,  // its agent's register cannot be read: nobody knows what its GPUs have
  kOperatorBusy,     // driver upgrade, paused device plugin, VM passthrough, MIG change
  kNodeUnstable,     // devices vanished and came back moments ago
  kNodeRefusing,     // the kubelet refused several GPU pods lately
  kDevicesUnknown,   // a pod on the node holds devices nobody can name
  // What kube-scheduler judges before it asks: never our answer to it.
  kNotSelected,  // not what the pod's nodeSelector or required affinity wants
  kTainted,      // a taint that the pod does not tolerate
  // About the devices.
  kNoGpu,             // the node has no GPU of the kind asked for
  kNoAgent,           // nothing on the node can enforce the share
  kAgentCannotServe,  // the node's agent has no way to give the pod what it asks
  kSharingMode,       // the pod's class may not share GPUs the way this node would
  kCapacity,          // the pod's class does not run on machines that are paid for like this one
  kWrongModel,
  kWrongDevice,      // UUID or mode selection leaves no device
  kOneReplica,       // several replicas for one container, of which the node gives one
  kTooManyPerNode,   // more devices asked for than the node has, busy or not
  kTooLarge,         // more memory asked for than any device here has
  kUnhealthy,        // enough devices, but not enough healthy ones
  kTopologyUnknown,  // it requires connected GPUs, and nobody says how these are connected
  kNoSuchSet,        // no set of the node's GPUs is connected as it requires, busy or not
  kMaintenance,      // of the node's pool runs, or begins before the pod would have ended
  kNumaMismatch,
  kBrokenSet,  // enough are free, but no set that is connected as it requires
  kNoRoom,     // would fit an emptier node of this kind
  // About taking devices back (quota-model section 4).
  kPdbBlocked,            // only pods that a PodDisruptionBudget protects could make room
  kEvictionBudget,        // the team whose pods would go has lost as many as it may in an hour
  kVictimsProtected,      // pods that would have to go are protected for some time
  kPreemptionDelayed,     // pods that are leaving already will make room
  kNodeExpected,          // an autoscaler raises a node for it: nobody has to go meanwhile
  kPreemptionInProgress,  // victims are leaving, their devices are reserved for this pod
  // About gangs.
  kGangIncomplete,  // not all of its pods are there yet
  kGangNoRoom,      // this pod could be placed, the whole gang not
  kGangElsewhere,   // devices are reserved for it on another node
  kHeldForGang,     // devices are held for a gang that starts before this pod would end
  // About order.
  kYieldingTo,  // another workload that fits now comes first
  // About the pod.
  kNoNodeOffered,  // kube-scheduler refused every node by itself, and asked about none
  kClaimUnknown,   // a resource claim of the pod has not been seen yet
  kPodGone,
  kPodElsewhere,  // already bound, or being bound, to another node
  kCount
};

struct ReasonText {
  std::string_view code;  // stable identifier for API and metric labels, "NoRoom"
  std::string_view text;  // the fixed sentence kube-scheduler shows
  // True when evicting pods of the node could help (the wire's FailedNodes, if the policy lets
  // kube-scheduler preempt); false for FailedAndUnresolvableNodes.
  bool preemption_may_help;
};

const ReasonText& Describe(Reason reason);

// Does the team's quota or budget refuse? A ResourceQuota is the namespace's, and does not count.
bool IsQuotaReason(Reason reason);

// Is it one of those that kube-scheduler finds by itself before it asks about a node?
inline bool IsJudgedBefore(Reason reason) {
  return reason == Reason::kNotSelected || reason == Reason::kTainted;
}

// Does the node lack only what other pods hold there, so that it would take the pod if it were
// emptier? False for kNone: there the pod fits.
bool MoreRoomWouldHelp(Reason reason);

}  // namespace tranche
