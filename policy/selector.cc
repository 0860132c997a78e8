#include "policy/selector.h"

#include <algorithm>

namespace tranche {
namespace {

template <typename Find>
bool Holds(const SelectorTerm& term, const Find& find) {
  const std::optional<std::string_view> label = find(term.key);
  const bool listed =
      label && std::find(term.values.begin(), term.values.end(), *label) != term.values.end();
  switch (term.op) {
    case SelectorTerm::Operator::kIn:
      return listed;
    case SelectorTerm::Operator::kNotIn:
      return !listed;
    case SelectorTerm::Operator::kExists:
      return label.has_value();
    case SelectorTerm::Operator::kDoesNotExist:
      return !label.has_value();
  }
  return false;
}

template <typename Find>
bool AllHold(const LabelSelector& selector, const Find& find) {
  const auto is_as_wanted = [&](const auto& wanted) { return find(wanted.first) == wanted.second; };
  const auto holds = [&](const SelectorTerm& term) { return Holds(term, find); };
  return std::all_of(selector.match_labels.begin(), selector.match_labels.end(), is_as_wanted) &&
         std::all_of(selector.match_expressions.begin(), selector.match_expressions.end(), holds);
}

}  // namespace

bool LabelSelector::Matches(const FindLabel& label) const { return AllHold(*this, label); }

bool LabelSelector::Matches(const Labels& labels) const {
  const auto find = [&labels](const std::string& key) -> std::optional<std::string_view> {
    const auto found = labels.find(key);
    if (found == labels.end()) return std::nullopt;
    return found->second;
  };
  return AllHold(*this, find);
}

}  // namespace tranche
