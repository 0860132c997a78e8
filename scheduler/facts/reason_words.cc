#include "scheduler/facts/reason_words.h"

namespace tranche {

std::string_view TextOf(Reason reason, SaidOf whom) {
  if (whom == SaidOf::kNode) return Describe(reason).text;
  switch (reason) {
    case Reason::kUnknownNode:
      return "no node that was asked about is known yet";
    case Reason::kNodeUnreadable:
      return "no other node is left but those whose object cannot be read";
    case Reason::kNodeNotReady:
      return "no node that would do is ready";
    case Reason::kNodeCordoned:
      return "the nodes that would do are cordoned";
    case Reason::kInterrupted:
      return "the nodes that would do are about to be taken away";
    case Reason::kAgentUnreadable:
      return "what the GPU agents of the nodes that would do registered cannot be read";
    case Reason::kOperatorBusy:
      return "the GPU operator is changing the nodes that would do";
    case Reason::kNodeUnstable:
      return "the GPUs of the nodes that would do came back a moment ago";
    case Reason::kNodeRefusing:
      return "the nodes that would do refused several GPU pods lately";
    case Reason::kDevicesUnknown:
      return "pods on the nodes that would do hold GPUs that cannot be told apart";
    case Reason::kNotSelected:
      return "no node is what the pod's node selector or affinity wants";
    case Reason::kTainted:
      return "the pod does not tolerate the taints of the nodes that would do";
    case Reason::kNoGpu:
      return "no node has a GPU of the kind asked for";
    case Reason::kNoAgent:
      return "no node has an agent that enforces GPU shares";
    case Reason::kAgentCannotServe:
      return "no node has an agent that can serve the pod";
    case Reason::kSharingMode:
      return "no node shares its GPUs in a way that the pod's class may use";
    case Reason::kCapacity:
      return "the pod's class runs on none of the capacity types there are";
    case Reason::kWrongModel:
      return "no node has a GPU model that matches";
    case Reason::kWrongDevice:
      return "no GPU of any node matches the device selection";
    case Reason::kOneReplica:
      return "the nodes that would do give a container one replica of their shared GPUs";
    case Reason::kTooManyPerNode:
      return "no node has as many GPUs as the pod asks for";
    case Reason::kTooLarge:
      return "no node has GPUs with as much memory as the pod asks for";
    case Reason::kUnhealthy:
      return "too many GPUs of the nodes that would do are unhealthy";
    case Reason::kTopologyUnknown:
      return "nobody says how the GPUs of the nodes that would do are connected";
    case Reason::kNoSuchSet:
      return "no node has GPUs that are connected the way the pod requires";
    case Reason::kMaintenance:
      return "maintenance of the nodes that would do begins before the pod would have ended";
    case Reason::kNumaMismatch:
      return "the free GPUs of the nodes that would do lie in different NUMA nodes";
    case Reason::kBrokenSet:
      return "no node has free GPUs that are connected the way the pod requires";
    case Reason::kNoRoom:
      return "no node has enough free GPU capacity";
    case Reason::kHeldForGang:
      return "the GPUs of the nodes that would do are held for a gang that starts soon";
    default:
      return Describe(reason).text;
  }
}

}  // namespace tranche
