#include "scheduler/wire/pods/pod_pinned.h"

#include <string_view>

#include "scheduler/wire/json/resource_amount.h"
#include "topology/base/quantity.h"

namespace tranche::wire {
namespace {

bool IsSame(Element left, Element right) {
  if (AmountText(left) == AmountText(right)) return true;
  const auto one = ParseMilliQuantity(AmountText(left));
  const auto other = ParseMilliQuantity(AmountText(right));
  return one.ok() && other.ok() && *one == *other;
}

// A limit, and a request that is absent (the API then sets it to the limit) or equal.
bool IsHeld(const std::optional<Object>& limits, const std::optional<Object>& requests,
            std::string_view key) {
  if (!limits) return false;
  const std::optional<Element> limit = Find(*limits, key);
  if (!limit || AmountText(*limit) == "0") return false;
  const std::optional<Element> request = requests ? Find(*requests, key) : std::optional<Element>();
  return !request || IsSame(*limit, *request);
}

}  // namespace

MilliCpu PinnedCpu(const std::optional<Object>& resources, FieldReader& reader, bool& guaranteed) {
  if (!guaranteed || !resources) {
    guaranteed = false;
    return MilliCpu::Zero();
  }
  const std::optional<Object> limits = reader.ReadObject(*resources, "limits", "resources");
  const std::optional<Object> requests = reader.ReadObject(*resources, "requests", "resources");
  guaranteed = IsHeld(limits, requests, "cpu") && IsHeld(limits, requests, "memory");
  if (!guaranteed) return MilliCpu::Zero();
  const MilliCpu cpu = CpuAmount(*Find(*limits, "cpu")).value_or(MilliCpu::Zero());
  return cpu.count() % 1000 == 0 ? cpu : MilliCpu::Zero();
}

}  // namespace tranche::wire
