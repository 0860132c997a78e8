#include "policy/selector.h"

#include <algorithm>

namespace tranche {
namespace {

bool Holds(const SelectorTerm& term, const Labels& labels) {
  const auto label = labels.find(term.key);
  const bool present = label != labels.end();
  const bool listed = present && std::find(term.values.begin(), term.values.end(), label->second) !=
                                     term.values.end();
  switch (term.op) {
    case SelectorTerm::Operator::kIn:
      return listed;
    case SelectorTerm::Operator::kNotIn:
      return !listed;
    case SelectorTerm::Operator::kExists:
      return present;
    case SelectorTerm::Operator::kDoesNotExist:
      return !present;
  }
  return false;
}

}  // namespace

bool LabelSelector::Matches(const Labels& labels) const {
  const bool exact = std::all_of(match_labels.begin(), match_labels.end(), [&](const auto& wanted) {
    const auto label = labels.find(wanted.first);
    return label != labels.end() && label->second == wanted.second;
  });
  return exact && std::all_of(match_expressions.begin(), match_expressions.end(),
                              [&](const SelectorTerm& term) { return Holds(term, labels); });
}

}  // namespace tranche
