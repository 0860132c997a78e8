// Kubernetes label selectors as plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tranche {

using Labels = std::map<std::string, std::string>;

struct SelectorTerm {
  enum class Operator : uint8_t { kIn, kNotIn, kExists, kDoesNotExist };
  std::string key;
  Operator op = Operator::kIn;
  std::vector<std::string> values;  // kIn, kNotIn: at least one; others: none
  friend bool operator==(const SelectorTerm&, const SelectorTerm&) = default;
};

// All of match_labels and all of match_expressions must hold. An empty selector matches everything,
// as in Kubernetes; a field that is absent in an object is a nullopt selector and matches nothing.
struct LabelSelector {
  Labels match_labels;
  std::vector<SelectorTerm> match_expressions;

  bool Matches(const Labels& labels) const;
  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;
};

}  // namespace tranche
