#include "scheduler/facts/allocation.h"

#include <algorithm>

namespace tranche {

std::string_view KnowledgeName(Knowledge knowledge) {
  // In the order of Knowledge.
  static constexpr std::string_view kNames[] = {"counts", "predicted", "exact"};
  return kNames[static_cast<std::size_t>(knowledge)];
}

std::optional<Knowledge> ParseKnowledge(std::string_view name) {
  for (const Knowledge knowledge : {Knowledge::kCounts, Knowledge::kPredicted, Knowledge::kExact}) {
    if (KnowledgeName(knowledge) == name) return knowledge;
  }
  return std::nullopt;
}

bool NamesNoOther(const Allocation& record, const Allocation& named) {
  const auto is_recorded = [&record](const Device& device) {
    const auto same = [&device](const Device& other) {
      const bool by_index = device.uuid.empty() || other.uuid.empty();
      return by_index ? device.card == other.card : device.uuid == other.uuid;
    };
    return std::ranges::any_of(record.containers, [&same](const ContainerDevices& container) {
      return std::ranges::any_of(container.devices, same);
    });
  };
  return std::ranges::all_of(named.containers, [&](const ContainerDevices& container) {
    return std::ranges::all_of(container.devices, is_recorded);
  });
}

}  // namespace tranche
