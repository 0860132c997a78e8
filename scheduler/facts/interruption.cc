#include "scheduler/facts/interruption.h"

#include <algorithm>
#include <array>

namespace tranche {
namespace {

// Those that drain come first.
constexpr std::array kNotices = {
    InterruptionNotice{kOwnInterruption, true},
    InterruptionNotice{"aws-node-termination-handler/spot-itn", true},
    InterruptionNotice{"aws-node-termination-handler/asg-lifecycle-termination", true},
    InterruptionNotice{"aws-node-termination-handler/scheduled-maintenance", true},
    InterruptionNotice{"cloud.google.com/impending-node-termination", true},
    InterruptionNotice{"remediator.kubernetes.azure.com/unschedulable", true},
    // It is likelier to be taken away than others, and may never be.
    InterruptionNotice{"aws-node-termination-handler/rebalance-recommendation", false},
    InterruptionNotice{"karpenter.sh/disrupted", false},
    InterruptionNotice{"karpenter.sh/disruption", false},
    InterruptionNotice{"ToBeDeletedByClusterAutoscaler", false},
};

}  // namespace

const InterruptionNotice* FindNotice(const std::vector<Taint>& taints) {
  if (taints.empty()) return nullptr;
  const auto* const found = std::ranges::find_if(kNotices, [&](const InterruptionNotice& notice) {
    return std::ranges::find(taints, notice.taint, &Taint::key) != taints.end();
  });
  return found == kNotices.end() ? nullptr : found;
}

}  // namespace tranche
