#include "policy/spec.h"

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
