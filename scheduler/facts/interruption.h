// Notices that a machine is about to be taken away: taints that handlers of clouds, and
// autoscalers, put on its node some minutes before.
//
// Nothing new is placed on such a node, also of pods that tolerate the taint. Whether its pods are
// asked to leave is for the GPUPolicy to say (onInterruption), and only where nobody does it
// better: autoscalers drain their nodes themselves, by what each pod says of itself, and may change
// their mind.
//
// Pure function. Cost: O(taints).
// Sources: the keys are those of the AWS Node Termination Handler (README, "taintNode"), of GKE's
// maintenance handler (its argument --taint), of AKS (node auto-drain), of Karpenter 1.15 and
// before 1.0 (concepts, disruption), and of cluster-autoscaler (FAQ).
#pragma once

#include <string_view>
#include <vector>

#include "scheduler/facts/node_constraints.h"

namespace tranche {

struct InterruptionNotice {
  std::string_view taint;  // its key
  bool drains = false;     // it goes for sure, and its pods are better asked to leave at once
};

// For whoever wants to say so himself, and for handlers that nobody here knows.
inline constexpr std::string_view kOwnInterruption = "tranche.dev/interruption";

// What the taints say; of several notices one that drains. nullptr: none.
const InterruptionNotice* FindNotice(const std::vector<Taint>& taints);

}  // namespace tranche
