// What plans under way are still to take: another plan may not count on it.
#include <algorithm>
#include <map>
#include <string>

#include "scheduler/engine/preemption/reclaim_case.h"

namespace tranche {

int64_t ReclaimCase::LeftOf(const DisruptionBudget& budget) const {
  const auto promised = std::ranges::count_if(reclaims_.of_victim, [&](const auto& victim) {
    const PodRecord* record = claims_.Find(victim.first);
    if (record == nullptr || record->traits.leaves_at || record->traits.labels == nullptr) {
      return false;
    }
    const PodName& name = record->request->name;
    return !budget.disrupted.contains(name.name) &&
           budget.Covers(name.ns, name.name, *record->traits.labels);
  });
  return std::max<int64_t>(0, budget.allowed - promised);
}

std::map<std::string, int64_t> ReclaimCase::Promised() const {
  std::map<std::string, int64_t> pods;
  for (const auto& [uid, reclaim] : reclaims_.of_victim) {
    const PodRecord* record = claims_.Find(uid);
    const std::optional<HeldWork> work = claims_.WorkOf(uid);
    if (record != nullptr && work && !record->traits.evicted_at) ++pods[work->leaf];
  }
  return pods;
}

}  // namespace tranche
