#include "policy/decode_selector.h"

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "fmt/format.h"

namespace tranche {
namespace {

using Operator = SelectorTerm::Operator;

// Bounds of the CRD's schema (charts/tranche/crds), held for objects that come another way too.
constexpr size_t kMostLabels = 64;
constexpr size_t kMostTerms = 32;
constexpr size_t kMostValues = 64;
constexpr size_t kMaxKey = 317;  // prefix/name
constexpr size_t kMaxValue = 63;

constexpr std::array kOperators = {Choice<Operator>{"In", Operator::kIn},
                                   Choice<Operator>{"NotIn", Operator::kNotIn},
                                   Choice<Operator>{"Exists", Operator::kExists},
                                   Choice<Operator>{"DoesNotExist", Operator::kDoesNotExist}};

void ReadKey(const Field& field, std::string& target) {
  const auto text = field.Text();
  if (text && !text->empty() && text->size() <= kMaxKey) {
    target = *text;
  } else {
    field.Fail("a label's key");
  }
}

// May be empty.
void ReadValue(const Field& field, std::string& target) {
  const auto text = field.Text();
  if (text && (text->empty() || IsWord(*text, kMaxValue, Letters::kAny, "-._"))) {
    target = *text;
  } else {
    field.Fail("a label's value");
  }
}

void ReadLabels(const Field& field, Labels& labels) {
  const std::map<std::string, Field> members = field.Members();
  if (members.size() > kMostLabels) field.Fail(fmt::format("at most {} labels", kMostLabels));
  for (const auto& [key, value] : members) ReadValue(value, labels[key]);
}

void ReadTerm(const Field& field, std::vector<SelectorTerm>& terms) {
  SelectorTerm term;
  bool has_operator = false;
  const bool is_object = field.ReadMembers(
      {{"key", [&](const Field& key) { ReadKey(key, term.key); }, "a label's key"},
       {"operator", [&](const Field& op) { has_operator = ReadChoice(op, kOperators, term.op); },
        "In, NotIn, Exists or DoesNotExist"},
       {"values", [&](const Field& values) {
          for (const Field& value : values.Items(0, kMostValues)) {
            ReadValue(value, term.values.emplace_back());
          }
        }}});
  const bool wants_values = term.op == Operator::kIn || term.op == Operator::kNotIn;
  if (is_object && has_operator && wants_values == term.values.empty()) {
    field.Fail(wants_values ? "values with In and NotIn"
                            : "no values with Exists and DoesNotExist");
  }
  terms.push_back(std::move(term));
}

}  // namespace

void ReadSelector(const Field& field, std::optional<LabelSelector>& target) {
  LabelSelector selector;
  field.ReadMembers(
      {{"matchLabels", [&](const Field& labels) { ReadLabels(labels, selector.match_labels); }},
       {"matchExpressions", [&](const Field& terms) {
          for (const Field& term : terms.Items(0, kMostTerms)) {
            ReadTerm(term, selector.match_expressions);
          }
        }}});
  target = std::move(selector);
}

}  // namespace tranche
