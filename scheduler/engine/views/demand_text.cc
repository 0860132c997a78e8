#include "scheduler/engine/views/demand_text.h"

#include <fmt/format.h>

#include <string_view>

#include "scheduler/engine/state/demands.h"
#include "topology/base/check.h"

namespace tranche {
namespace {

std::string DescribeTaint(const Taint& taint) {
  return fmt::format("the node has taint {}{}{}:{}", taint.key, taint.value.empty() ? "" : "=",
                     taint.value, taint.effect);
}

std::string_view NameOf(NodeTerm::Operator op) {
  switch (op) {
    case NodeTerm::Operator::kIn:
      return "in";
    case NodeTerm::Operator::kNotIn:
      return "not in";
    case NodeTerm::Operator::kExists:
      return "there";
    case NodeTerm::Operator::kDoesNotExist:
      return "not there";
    case NodeTerm::Operator::kGt:
      return "above";
    case NodeTerm::Operator::kLt:
      return "below";
  }
  TRANCHE_CHECK(false);
}

// "rack in (r1, r2)"; of a long list the first few.
std::string DescribeTerm(const NodeTerm& term) {
  constexpr std::size_t kMostValues = 4;
  std::string text = fmt::format("{} {}", term.key, NameOf(term.op));
  for (std::size_t i = 0; i < term.values.size() && i < kMostValues; ++i) {
    text += (i == 0 ? " (" : ", ") + term.values[i];
  }
  if (term.values.size() > kMostValues) text += ", ...";
  return text + (term.values.empty() ? "" : ")");
}

std::string DescribeLabel(const NodeFacts& facts, std::string_view key) {
  const std::string_view value = facts.labels.Find(key);
  return value.data() == nullptr ? "has no such label" : fmt::format("has {}={}", key, value);
}

}  // namespace

std::string DescribeDemands(const NodeFacts& facts, const PodRequest& request, Reason reason) {
  if (reason == Reason::kTainted) return DescribeTaint(*TaintAgainst(facts, request));
  const NodeConstraints& demands = *request.constraints;
  for (const auto& [key, value] : demands.selector) {
    const std::string_view actual = facts.labels.Find(key);
    if (actual.data() != nullptr && actual == value) continue;
    return fmt::format("asks label {}={}; the node {}", key, value, DescribeLabel(facts, key));
  }
  if (demands.affinity.empty()) return "its required node affinity has no term that can be met";
  const std::vector<NodeTerm>& first = demands.affinity.front();
  if (demands.affinity.size() > 1 || first.size() != 1) {
    return fmt::format("none of {} terms of its required node affinity holds",
                       demands.affinity.size());
  }
  const NodeTerm& term = first.front();
  return fmt::format("asks {}; the node {}", DescribeTerm(term),
                     term.is_field ? "is " + facts.name.str() : DescribeLabel(facts, term.key));
}

}  // namespace tranche
