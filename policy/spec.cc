#include "policy/spec.h"

#include <algorithm>

#include "policy/line_name.h"

namespace tranche {

GpuClass DefaultClass(const std::string& name) {
  using std::chrono::hours;
  using std::chrono::minutes;
  GpuClass result;
  result.name = name;
  result.sharing = {SharingMode::kExclusive, SharingMode::kMig, SharingMode::kMps,
                    SharingMode::kTimeSliced};
  if (name == "inference-prod") {
    result.rank = 3;
    result.preemptible = Preemptible::kNever;
    result.grace_period = minutes(1);
    result.patience = minutes(0);
    result.sharing = {SharingMode::kMig, SharingMode::kMps, SharingMode::kExclusive};
  } else if (name == "training") {
    result.rank = 2;
    result.min_runtime = minutes(30);
    result.cooldown = minutes(10);
    result.lost_work_cap = minutes(60);
    result.sharing = {SharingMode::kExclusive, SharingMode::kMig};
  } else if (name == "notebook") {
    result.rank = 1;
    result.min_runtime = minutes(10);
    result.max_runtime = hours(8);
    result.lost_work_cap = minutes(10);
    result.sharing = {SharingMode::kTimeSliced, SharingMode::kMps, SharingMode::kMig,
                      SharingMode::kExclusive};
  } else if (name == "scavenger") {
    result.rank = 0;
    result.charge_factor = 250;
  }
  return result;
}

int64_t RateOf(const GpuBudget& budget, std::string_view charged) {
  const LineParts of = PartsOf(charged);
  int64_t best = kUsualRate;
  int best_fit = 0;
  for (const auto& [name, thousandths] : budget.rates) {
    const LineParts rate = PartsOf(name);
    const bool suits = (rate.model == of.model || rate.model == kAnyModel) &&
                       (rate.pool.empty() || rate.pool == of.pool);
    const int fit = 1 + (rate.pool.empty() ? 0 : 2) + (rate.model == kAnyModel ? 0 : 1);
    if (!suits || fit <= best_fit) continue;
    best = thousandths;
    best_fit = fit;
  }
  return best;
}

std::optional<int> CapacityChoice(const GpuClass* gpu_class, CapacityType capacity) {
  if (gpu_class == nullptr) return 0;
  if (!gpu_class->interruptible && capacity == CapacityType::kSpot) return std::nullopt;
  const std::vector<CapacityType>& list = gpu_class->capacity;
  if (list.empty()) return 0;
  const auto at = std::find(list.begin(), list.end(), capacity);
  return at == list.end() ? std::nullopt : std::optional(static_cast<int>(at - list.begin()));
}

std::string_view CapacityTypeName(CapacityType type) {
  switch (type) {
    case CapacityType::kOnDemand:
      return "OnDemand";
    case CapacityType::kReserved:
      return "Reserved";
    case CapacityType::kSpot:
      return "Spot";
  }
  return "OnDemand";
}

}  // namespace tranche
