#include "scheduler/facts/allocation.h"

namespace tranche {

std::string_view KnowledgeName(Knowledge knowledge) {
  switch (knowledge) {
    case Knowledge::kCounts:
      return "counts";
    case Knowledge::kPredicted:
      return "predicted";
    case Knowledge::kExact:
      return "exact";
  }
  return "counts";
}

std::optional<Knowledge> ParseKnowledge(std::string_view name) {
  for (const Knowledge knowledge : {Knowledge::kCounts, Knowledge::kPredicted, Knowledge::kExact}) {
    if (KnowledgeName(knowledge) == name) return knowledge;
  }
  return std::nullopt;
}

}  // namespace tranche
