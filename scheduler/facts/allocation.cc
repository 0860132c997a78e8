#include "scheduler/facts/allocation.h"

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

}  // namespace tranche
