#include "scheduler/dra/capacity.h"

#include <algorithm>

namespace tranche::dra {
namespace {

// nullopt: beyond what is held.
std::optional<Quantity> UpToStep(Quantity asked, Quantity least, Quantity step) {
  const int64_t unit = step.milli();
  if (unit <= 0) return asked;
  int64_t above = 0;
  if (__builtin_sub_overflow(asked.milli(), least.milli(), &above)) return std::nullopt;
  const int64_t steps = above / unit + (above % unit != 0 ? 1 : 0);
  int64_t sum = 0;
  if (__builtin_mul_overflow(steps, unit, &sum) ||
      __builtin_add_overflow(sum, least.milli(), &sum)) {
    return std::nullopt;
  }
  return Quantity::Milli(sum);
}

std::optional<Quantity> InRange(Quantity asked, const RequestPolicy::Range& range) {
  Quantity rounded = asked;
  if (range.min && asked < *range.min) {
    rounded = *range.min;
  } else if (range.min && range.step) {
    const std::optional<Quantity> up = UpToStep(asked, *range.min, *range.step);
    if (!up) return std::nullopt;
    rounded = *up;
  }
  if (range.max && rounded > *range.max) return std::nullopt;
  return rounded;
}

std::optional<Quantity> Rounded(Quantity asked, const RequestPolicy& policy) {
  if (policy.range) {
    const std::optional<Quantity> in_range = InRange(asked, *policy.range);
    // The default is allowed wherever it lies.
    if (!in_range && policy.usual && asked == *policy.usual) return asked;
    return in_range;
  }
  if (policy.valid_values.empty()) return asked;
  const auto value = std::ranges::lower_bound(policy.valid_values, asked);
  if (value != policy.valid_values.end()) return *value;
  if (policy.usual && asked == *policy.usual) return asked;
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<Quantity>> ConsumedOf(const Device& device, std::string_view driver,
                                                std::span<const CapacityAmount> asked) {
  std::vector<std::optional<Quantity>> wanted(device.capacities.size());
  for (const CapacityAmount& ask : asked) {
    const std::string_view domain = ask.name.domain.empty() ? driver : ask.name.domain;
    const Capacity* capacity = FindCapacity(device, domain, ask.name.name);
    if (capacity == nullptr || capacity->with_domain == ask.name.domain.empty()) {
      return std::nullopt;
    }
    wanted[static_cast<std::size_t>(capacity - device.capacities.data())] = ask.amount;
  }
  std::vector<Quantity> consumed;
  consumed.reserve(device.capacities.size());
  for (std::size_t i = 0; i < device.capacities.size(); ++i) {
    const Capacity& capacity = device.capacities[i];
    std::optional<Quantity> amount = wanted[i];
    if (!amount) {
      const bool has_usual = capacity.policy && capacity.policy->usual;
      amount = has_usual ? *capacity.policy->usual : capacity.value;
    } else if (capacity.policy) {
      amount = Rounded(*amount, *capacity.policy);
    }
    if (!amount || *amount < Quantity()) return std::nullopt;
    consumed.push_back(*amount);
  }
  return consumed;
}

bool HasFractionalRange(const Device& device) {
  const auto is_fraction = [](const std::optional<Quantity>& value) {
    return value && !value->is_whole();
  };
  return std::ranges::any_of(device.capacities, [&](const Capacity& capacity) {
    if (!capacity.policy || !capacity.policy->range) return false;
    const RequestPolicy::Range& range = *capacity.policy->range;
    return is_fraction(range.min) || is_fraction(range.max) || is_fraction(range.step);
  });
}

}  // namespace tranche::dra
