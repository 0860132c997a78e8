// Kubernetes label selectors as plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tranche {

using Labels = std::map<std::string, std::string>;

// The value of a label, nullopt where it is absent: for labels that are kept in another form.
using FindLabel = std::function<std::optional<std::string_view>(std::string_view key)>;

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
  bool Matches(const FindLabel& label) const;
  // How many demands it makes; the more, the more exact it is.
  size_t Requirements() const { return match_labels.size() + match_expressions.size(); }
  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;
};

}  // namespace tranche
