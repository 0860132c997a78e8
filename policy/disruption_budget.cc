#include "policy/disruption_budget.h"

#include <algorithm>

#include "policy/decode_selector.h"
#include "policy/field.h"

namespace tranche {
namespace {

void ReadText(const Field& field, std::string& target) {
  if (const auto text = field.Text()) {
    target = *text;
  } else {
    field.Fail("text");
  }
}

int64_t WholeOf(const Field& field) {
  const std::optional<int64_t> number = field.Integer();
  if (!number) field.Fail("a whole number");
  return number.value_or(0);
}

}  // namespace

bool DisruptionBudget::Covers(const std::string& pod_ns, const std::string& pod_name,
                              const Labels& labels) const {
  return pod_ns == ns && selector && selector->Matches(labels) && !disrupted.contains(pod_name);
}

absl::StatusOr<DisruptionBudget> DecodeDisruptionBudget(std::string_view json) {
  DisruptionBudget budget;
  budget.ns = "default";
  int64_t generation = 0;
  std::optional<int64_t> observed;
  const absl::Status status = ReadJson("PodDisruptionBudget", json, [&](const Field& root) {
    root.ReadSomeMembers(
        {{"metadata",
          [&](const Field& metadata) {
            metadata.ReadSomeMembers(
                {{"name", [&](const Field& name) { ReadName(name, budget.name); }, "a name"},
                 {"namespace", [&](const Field& ns) { ReadText(ns, budget.ns); }},
                 {"generation", [&](const Field& number) { generation = WholeOf(number); }}});
          },
          "an object with a name"},
         {"spec",
          [&](const Field& spec) {
            spec.ReadSomeMembers({{"selector", [&](const Field& selector) {
                                     ReadSelector(selector, budget.selector);
                                   }}});
          }},
         {"status", [&](const Field& found) {
            found.ReadSomeMembers(
                {{"disruptionsAllowed",
                  [&](const Field& allowed) {
                    budget.allowed = std::max<int64_t>(0, WholeOf(allowed));
                  }},
                 {"observedGeneration", [&](const Field& number) { observed = WholeOf(number); }},
                 {"disruptedPods", [&](const Field& pods) {
                    for (const auto& [name, when] : pods.Members()) budget.disrupted.insert(name);
                  }}});
          }}});
  });
  if (!status.ok()) return status;
  // The Eviction API evicts nobody while the status is about an older spec.
  if (observed && *observed < generation) budget.allowed = 0;
  return budget;
}

}  // namespace tranche
