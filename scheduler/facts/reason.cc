#include "scheduler/facts/reason.h"

#include <array>
#include <cstddef>

#include "topology/base/check.h"

namespace tranche {
namespace {

constexpr std::size_t kReasons = static_cast<std::size_t>(Reason::kCount);

constexpr std::array<ReasonText, kReasons> kTexts = {{
    {"None", "", false},
    {"MixedDialects", "the pod mixes two styles of asking for GPUs", false},
    {"BadAmount", "a GPU amount of the pod is not valid", false},
    {"UnknownProfile", "the pod names a MIG profile that no board has", false},
    {"DialectOff", "this style of asking for GPUs is switched off by policy", false},
    {"UnknownModel", "the pod names a GPU model that no node has and no list knows", false},
    {"NoLeaf", "no GPU quota owns the pod's namespace", false},
    {"LeafConflict", "several GPU quotas own the pod's namespace", false},
    {"LedgerClosed", "the GPU ledger cannot be used, and quota waits for it", false},
    {"BudgetExhausted", "the team's GPU-hour budget is used up", false},
    {"ExceedsMaxQuota", "the pod asks for more than the team's GPU quota can ever give", false},
    {"BorrowLimit", "the team may not borrow more GPUs", false},
    {"LenderLimit", "other teams may not lend more GPUs", false},
    {"WaitingForQuota", "the team's GPU quota and what it could borrow are in use", false},
    {"NamespaceQuota", "the namespace's ResourceQuota has no room for the GPU memory or cores",
     false},
    {"UnknownNode", "the node is not known yet", false},
    {"NodeUnreadable", "the node's object cannot be read", false},
    {"NodeNotReady", "the node is not ready", false},
    {"NodeCordoned", "the node is cordoned", false},
    {"Interrupted", "the node is about to be taken away", false},
    {"AgentUnreadable", "what the node's GPU agent registered cannot be read", false},
    {"OperatorBusy", "the GPU operator is changing the node", false},
    {"NodeUnstable", "the node's GPUs came back a moment ago", false},
    {"NodeRefusing", "the node refused several GPU pods lately", false},
    {"DevicesUnknown", "a pod on the node holds GPUs that cannot be told apart", false},
    {"NotSelected", "the node is not what the pod's node selector or affinity wants", false},
    {"Tainted", "the node has a taint that the pod does not tolerate", false},
    {"NoGpu", "the node has no GPU of the kind asked for", false},
    {"NoAgent", "nothing on the node enforces GPU shares", false},
    {"AgentCannotServe", "agents of this style cannot serve the pod", false},
    {"SharingMode", "the pod's class may not share GPUs the way this node does", false},
    {"CapacityType", "the pod's class does not run on nodes of this capacity type", false},
    {"WrongModel", "the node's GPU model does not match", false},
    {"WrongDevice", "no GPU of the node matches the device selection", false},
    {"OneReplica", "the node gives a container one replica of its shared GPUs", false},
    {"TooManyPerNode", "the node has fewer GPUs than the pod asks for", false},
    {"TooLarge", "the node's GPUs have less memory than the pod asks for", false},
    {"Unhealthy", "too many GPUs of the node are unhealthy", false},
    {"TopologyUnknown", "nobody says how the node's GPUs are connected", false},
    {"NoSuchSet", "the node's GPUs are not connected the way the pod requires", false},
    {"Maintenance", "maintenance of the node begins before the pod would have ended", false},
    {"NumaMismatch", "the node's free GPUs lie in different NUMA nodes", true},
    {"BrokenSet", "the node's free GPUs are not connected the way the pod requires", true},
    {"NoRoom", "the node has too little free GPU capacity", true},
    {"PDBBlocked", "only pods that a PodDisruptionBudget protects could make room", false},
    {"EvictionBudget", "the team that would make room has lost enough pods for now", false},
    {"VictimsProtected", "the pods that would make room are protected for some time", false},
    {"PreemptionDelayed", "pods that are leaving already will make room", false},
    {"NodeExpected", "a node is on its way for the pod", false},
    {"PreemptionInProgress", "room is being made for the pod", true},
    {"GangIncomplete", "not all pods of the gang are there yet", false},
    {"GangNoRoom", "the gang as a whole does not fit", false},
    {"GangElsewhere", "GPUs are reserved for the pod on another node", false},
    {"HeldForGang", "the node's GPUs are held for a gang that starts soon", false},
    {"YieldingTo", "another workload comes first", false},
    {"NoNodeOffered", "kube-scheduler finds no node by rules of its own", false},
    {"ClaimUnknown", "a resource claim of the pod is not there yet", false},
    {"PodGone", "the pod is gone or was replaced by another of its name", false},
    {"PodElsewhere", "the pod is bound, or being bound, to another node", false},
}};

}  // namespace

const ReasonText& Describe(Reason reason) {
  const auto rank = static_cast<std::size_t>(reason);
  TRANCHE_CHECK_LT(rank, kReasons);
  return kTexts[rank];
}

bool IsQuotaReason(Reason reason) {
  return reason >= Reason::kNoLeaf && reason <= Reason::kWaitingForQuota;
}

bool MoreRoomWouldHelp(Reason reason) {
  return reason == Reason::kNoRoom || reason == Reason::kNumaMismatch ||
         reason == Reason::kBrokenSet;
}

}  // namespace tranche
