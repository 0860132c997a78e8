#include "scheduler/ledger/bill/workload_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "policy/field.h"
#include "policy/selector_text.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

constexpr std::size_t kMostControllerKind = 63;
constexpr std::size_t kMostControllerName = 253;

bool IsController(std::string_view text) {
  const std::size_t slash = text.find('/');
  return slash != std::string_view::npos &&
         IsWord(text.substr(0, slash), kMostControllerKind, Letters::kAny, "") &&
         IsWord(text.substr(slash + 1), kMostControllerName, Letters::kAny, "-._");
}

void ReadLabels(const Field& field, Labels& labels) {
  const std::map<std::string, Field> members = field.Members();
  if (members.empty() || members.size() > kMostBillLabels) {
    field.Fail(fmt::format("1 to {} labels", kMostBillLabels));
    return;
  }
  for (const auto& [name, member] : members) {
    const auto value = member.Text();
    if (!IsLabelKey(name)) {
      field.Fail("keys of labels");
    } else if (!value || value->empty() || !IsLabelValue(*value)) {
      member.Fail("the value of a label");
    } else {
      labels[name] = *value;
    }
  }
}

}  // namespace

std::string WorkloadText(std::string_view controller, const Labels* labels,
                         const std::vector<std::string>& kept) {
  Labels found;
  if (labels != nullptr) {
    for (std::size_t i = 0; i < std::min(kept.size(), kMostBillLabels); ++i) {
      const auto label = labels->find(kept[i]);
      if (label == labels->end() || label->second.empty()) continue;
      if (IsLabelKey(label->first) && IsLabelValue(label->second)) found.insert(*label);
    }
  }
  const bool made = IsController(controller);
  if (!made && found.empty()) return "";
  std::string text = "{";
  if (made) text += fmt::format(R"("controller":"{}")", controller);
  if (!found.empty()) {
    text += made ? R"(,"labels":{)" : R"("labels":{)";
    const char* before = "";
    for (const auto& [name, value] : found) {
      text += fmt::format(R"({}"{}":"{}")", std::exchange(before, ","), name, value);
    }
    text += "}";
  }
  return text + "}";
}

absl::StatusOr<Workload> ReadWorkloadText(std::string_view text) {
  Workload workload;
  if (text.empty()) return workload;
  const auto read_controller = [&](const Field& field) {
    const auto controller = field.Text();
    if (controller && IsController(*controller)) {
      workload.controller = *controller;
    } else {
      field.Fail("a kind and a name with a slash between, as Job/train");
    }
  };
  TRANCHE_RETURN_IF_ERROR(ReadJson("workload", text, [&](const Field& root) {
    root.ReadMembers({{"controller", read_controller},
                      {"labels", [&](const Field& field) { ReadLabels(field, workload.labels); }}});
    if (workload == Workload()) root.Fail("a controller or labels");
  }));
  return workload;
}

}  // namespace tranche::ledger
