#include "policy/prices.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "fmt/format.h"

namespace tranche {
namespace {

constexpr std::string_view kInstanceTypeLabel = "node.kubernetes.io/instance-type";

// One label value and what it says of how the machine is paid for.
struct CapacityLabel {
  std::string_view key;
  std::string_view value;
  CapacityType type;
};

// In this order the labels are asked; of one label one value holds at most. Sources: Karpenter's
// documentation, "Concepts: Scheduling", well-known labels (karpenter.sh/capacity-type); the EKS
// user guide, "Managed node groups", capacity types (eks.amazonaws.com/capacityType); GKE's
// documentation, "Spot VMs" and "About node auto-provisioning" (cloud.google.com/gke-spot,
// cloud.google.com/gke-provisioning); AKS's documentation, "Add a Spot node pool"
// (kubernetes.azure.com/scalesetpriority).
constexpr std::array kCapacityLabels = {
    CapacityLabel{"karpenter.sh/capacity-type", "on-demand", CapacityType::kOnDemand},
    CapacityLabel{"karpenter.sh/capacity-type", "reserved", CapacityType::kReserved},
    CapacityLabel{"karpenter.sh/capacity-type", "spot", CapacityType::kSpot},
    CapacityLabel{"eks.amazonaws.com/capacityType", "ON_DEMAND", CapacityType::kOnDemand},
    CapacityLabel{"eks.amazonaws.com/capacityType", "CAPACITY_BLOCK", CapacityType::kReserved},
    CapacityLabel{"eks.amazonaws.com/capacityType", "SPOT", CapacityType::kSpot},
    CapacityLabel{"cloud.google.com/gke-spot", "true", CapacityType::kSpot},
    CapacityLabel{"cloud.google.com/gke-provisioning", "standard", CapacityType::kOnDemand},
    CapacityLabel{"cloud.google.com/gke-provisioning", "preemptible", CapacityType::kSpot},
    CapacityLabel{"cloud.google.com/gke-provisioning", "spot", CapacityType::kSpot},
    CapacityLabel{"kubernetes.azure.com/scalesetpriority", "regular", CapacityType::kOnDemand},
    CapacityLabel{"kubernetes.azure.com/scalesetpriority", "spot", CapacityType::kSpot},
};

constexpr std::array<std::string_view, 7> kDayNames = {"Mon", "Tue", "Wed", "Thu",
                                                       "Fri", "Sat", "Sun"};

struct HoursAt {
  bool hold = true;
  Instant until = Instant::max();
};

HoursAt HoursOf(const GpuPrice& price, Instant at) {
  if (price.hours.empty()) return {};
  const LocalTime local = price.zone.LocalAt(at);
  const int weekday = TimeZone::Weekday(local.day);
  HoursAt result{false, Instant::max()};
  Millis next = std::chrono::hours(24);
  for (const WeekHours& hours : price.hours) {
    result.hold = result.hold || hours.HoldAt(weekday, local.of_day);
    for (const Millis end :
         {Millis(std::chrono::minutes(hours.from)), Millis(std::chrono::minutes(hours.to))}) {
      if (end > local.of_day) next = std::min(next, end);
    }
  }
  result.until = std::min(at + (next - local.of_day), local.unset_till);
  return result;
}

bool IsFor(const GpuPrice& price, const NodeTraits& node, std::string_view model) {
  return (price.pool.empty() || price.pool == node.pool) &&
         (price.instance_type.empty() || price.instance_type == node.instance_type) &&
         (!price.capacity || price.capacity == node.capacity) &&
         (price.model.empty() || price.model == model);
}

// Higher: says more exactly what it is for.
int Exactness(const GpuPrice& price) {
  int exactness = 0;
  for (const bool named :
       {!price.pool.empty(), !price.instance_type.empty(), price.capacity.has_value(),
        !price.model.empty(), !price.hours.empty()}) {
    exactness = exactness * 2 + (named ? 1 : 0);
  }
  return exactness;
}

std::string HoursText(const WeekHours& hours) {
  std::string days;
  for (int day = 0; day < 7; ++day) {
    if (!hours.HasDay(day)) continue;
    const std::string_view name = kDayNames.at(static_cast<size_t>(day));
    days += fmt::format("{}\"{}\"", days.empty() ? "" : ",", name);
  }
  return fmt::format(R"({{"days":[{}],"from":"{:02}:{:02}","to":"{:02}:{:02}"}})", days,
                     hours.from / 60, hours.from % 60, hours.to / 60, hours.to % 60);
}

}  // namespace

std::optional<CapacityType> CapacityOfLabels(const FindLabel& label) {
  for (const CapacityLabel& known : kCapacityLabels) {
    if (label(known.key) == known.value) return known.type;
  }
  return std::nullopt;
}

NodeTraits TraitsOf(const PolicySet& set, const FindLabel& label) {
  return TraitsOf(set.PoolOf(label), label);
}

NodeTraits TraitsOf(const GpuPool* pool, const FindLabel& label) {
  NodeTraits traits;
  if (pool != nullptr) {
    traits.pool = pool->name;
    traits.capacity = pool->capacity;
  }
  if (!traits.capacity) traits.capacity = CapacityOfLabels(label);
  traits.instance_type = std::string(label(kInstanceTypeLabel).value_or(""));
  return traits;
}

PriceAt PriceOf(const std::vector<GpuPrice>& prices, const NodeTraits& node, std::string_view model,
                Instant at) {
  PriceAt best{nullptr, Instant::max()};
  for (const GpuPrice& price : prices) {
    if (!IsFor(price, node, model)) continue;
    const HoursAt hours = HoursOf(price, at);
    best.until = std::min(best.until, hours.until);
    if (!hours.hold) continue;
    if (best.price == nullptr || Exactness(price) > Exactness(*best.price)) best.price = &price;
  }
  return best;
}

std::string FormatMicros(int64_t micros) {
  std::string text = fmt::format("{}.{:06}", micros / 1'000'000, micros % 1'000'000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

// Every text of a price is of letters, digits and marks that JSON writes as they are.
std::string PriceSpecText(const GpuPrice& price) {
  std::string text = fmt::format(R"({{"perGpuHour":"{}","currency":"{}")",
                                 FormatMicros(price.micros_per_gpu_hour), price.currency);
  const auto add = [&text](std::string_view name, std::string_view value) {
    if (!value.empty()) text += fmt::format(R"(,"{}":"{}")", name, value);
  };
  add("pool", price.pool);
  add("instanceType", price.instance_type);
  if (price.capacity) add("capacity", CapacityTypeName(*price.capacity));
  add("model", price.model);
  if (!price.hours.empty()) {
    std::vector<std::string> hours;
    for (const WeekHours& one : price.hours) hours.push_back(HoursText(one));
    text += fmt::format(R"(,"hours":[{}])", fmt::join(hours, ","));
    add("timeZone", price.zone.name());
  }
  return text + "}";
}

}  // namespace tranche
