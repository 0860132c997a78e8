#include "scheduler/facts/node_constraints.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace tranche {
namespace {

constexpr char kEnd = '\0';

// As Go's strconv.ParseInt reads base 10.
std::optional<int64_t> ParseInteger(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// Gt and Lt: an absent label and one that is no integer fulfil neither.
bool Compares(const NodeTerm& term, std::string_view actual) {
  if (term.values.size() != 1) return false;
  const std::optional<int64_t> left = ParseInteger(actual);
  const std::optional<int64_t> right = ParseInteger(term.values[0]);
  if (!left || !right) return false;
  return term.op == NodeTerm::Operator::kGt ? *left > *right : *left < *right;
}

// Fields know In and NotIn with one value each; anything else is malformed and matches nothing. A
// field other than metadata.name is empty.
bool FieldHolds(const NodeTerm& term, std::string_view node) {
  if (term.values.size() != 1) return false;
  const std::string_view actual = term.key == "metadata.name" ? node : std::string_view();
  if (term.op == NodeTerm::Operator::kIn) return term.values[0] == actual;
  return term.op == NodeTerm::Operator::kNotIn && term.values[0] != actual;
}

bool LabelHolds(const NodeTerm& term, const LabelText& labels) {
  const std::string_view actual = labels.Find(term.key);
  const bool present = actual.data() != nullptr;
  const bool listed = present && std::ranges::find(term.values, actual) != term.values.end();
  switch (term.op) {
    case NodeTerm::Operator::kIn:
      return listed;
    case NodeTerm::Operator::kNotIn:
      return !listed && !term.values.empty();
    case NodeTerm::Operator::kExists:
      return present && term.values.empty();
    case NodeTerm::Operator::kDoesNotExist:
      return !present && term.values.empty();
    case NodeTerm::Operator::kGt:
    case NodeTerm::Operator::kLt:
      break;
  }
  return present && Compares(term, actual);
}

bool Holds(const std::vector<NodeTerm>& terms, std::string_view node, const LabelText& labels) {
  return !terms.empty() && std::ranges::all_of(terms, [&](const NodeTerm& term) {
    return term.is_field ? FieldHolds(term, node) : LabelHolds(term, labels);
  });
}

bool Tolerates(const Toleration& toleration, const Taint& taint) {
  if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
  if (!toleration.key.empty() && toleration.key != taint.key) return false;
  return toleration.exists || toleration.value == taint.value;
}

}  // namespace

LabelText::LabelText(const Labels& labels) {
  const auto has_end = [](const std::string& text) { return text.find(kEnd) != text.npos; };
  for (const auto& [key, value] : labels) {
    if (has_end(key) || has_end(value)) continue;  // no label the API server takes
    text_.append(key).push_back(kEnd);
    text_.append(value).push_back(kEnd);
  }
  text_.shrink_to_fit();
}

std::string_view LabelText::Find(std::string_view key) const {
  std::string_view rest = text_;
  const auto take = [&rest] {
    const std::size_t end = rest.find(kEnd);
    const std::string_view taken = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return taken;
  };
  while (!rest.empty()) {
    const std::string_view found = take();
    const std::string_view value = take();
    if (found == key) return value;
  }
  return {};
}

FindLabel LabelText::Finder() const {
  return [this](std::string_view key) -> std::optional<std::string_view> {
    const std::string_view value = Find(key);
    if (value.data() == nullptr) return std::nullopt;
    return value;
  };
}

bool Selects(const NodeConstraints& constraints, std::string_view node, const LabelText& labels) {
  for (const auto& [key, value] : constraints.selector) {
    const std::string_view actual = labels.Find(key);
    if (actual.data() == nullptr || actual != value) return false;
  }
  return !constraints.has_affinity ||
         std::ranges::any_of(constraints.affinity, [&](const std::vector<NodeTerm>& terms) {
           return Holds(terms, node, labels);
         });
}

const Taint* FirstUntolerated(const std::vector<Toleration>& tolerations,
                              const std::vector<Taint>& taints) {
  const auto found = std::ranges::find_if(taints, [&](const Taint& taint) {
    const bool binds = taint.effect == "NoSchedule" || taint.effect == "NoExecute";
    return binds && std::ranges::none_of(tolerations, [&](const Toleration& toleration) {
             return Tolerates(toleration, taint);
           });
  });
  return found == taints.end() ? nullptr : &*found;
}

bool Suits(const NodeConstraints& constraints, std::string_view node, const LabelText& labels,
           const std::vector<Taint>& taints) {
  return Tolerates(constraints.tolerations, taints) && Selects(constraints, node, labels);
}

bool Tolerates(const std::vector<Toleration>& tolerations, const std::vector<Taint>& taints) {
  return FirstUntolerated(tolerations, taints) == nullptr;
}

}  // namespace tranche
