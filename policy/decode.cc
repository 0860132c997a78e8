#include "policy/decode.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "policy/declared_object.h"
#include "policy/field.h"
#include "policy/policy_set.h"

namespace tranche {
namespace {

constexpr std::array kRules = {Choice<int>{"R1", 0}, Choice<int>{"R2a", 1}, Choice<int>{"R2b", 2},
                               Choice<int>{"R3", 3}, Choice<int>{"R5", 4}};

// Only Tranche writes these, so that nothing is kept of what is read.
void CheckReclaim(const Field& spec) {
  const auto check_name = [](const Field& name) {
    std::string unused;
    ReadName(name, unused);
  };
  spec.ReadMembers({{"for",
                     [&](const Field& pod) {
                       pod.ReadMembers({{"namespace", check_name, "a pod's namespace"},
                                        {"name", check_name, "a pod's name"}});
                     },
                     "a pod's namespace and name"},
                    {"rule",
                     [](const Field& rule) {
                       int unused = 0;
                       ReadChoice(rule, kRules, unused);
                     },
                     "a rule"},
                    {"snapshot", [](const Field& snapshot) {
                       IntegerWithin(snapshot, 0, std::numeric_limits<int64_t>::max());
                     }}});
}

}  // namespace

absl::StatusOr<Labels> DecodeNamespaceLabels(std::string_view name, std::string_view json) {
  Labels labels;
  const auto read_labels = [&](const Field& field) {
    for (const auto& [key, value] : field.Members()) {
      if (const auto text = value.Text()) {
        labels.emplace(key, *text);
      } else {
        value.Fail("text");
      }
    }
  };
  const absl::Status status = ReadJson("Namespace", json, [&](const Field& root) {
    root.ReadSomeMembers({{"metadata", [&](const Field& metadata) {
                             metadata.ReadSomeMembers({{"labels", read_labels}});
                           }}});
  });
  if (!status.ok()) return status;
  for (const auto& [key, value] : LabelsOfUnknownNamespace(std::string(name))) labels[key] = value;
  return labels;
}

absl::Status CheckObject(std::string_view kind, std::string_view json, const GpuPolicy& defaults) {
  if (kind == "GPUPolicy") return DecodeGpuPolicy(json, defaults).status();
  if (kind == "GPUQuota") return DecodeGpuQuota(json).status();
  if (kind == "GPUBudget") return DecodeGpuBudget(json).status();
  if (kind == "GPUClass") return DecodeGpuClass(json).status();
  ObjectHead head;
  if (kind == "GPUReclaim") {
    return ReadDeclared(kind, json, SpecPresence::kRequired, head, CheckReclaim);
  }
  if (kind == "GPUQuotaView") {
    return ReadDeclared(kind, json, SpecPresence::kOptional, head, [](const Field&) {});
  }
  return absl::OkStatus();
}

}  // namespace tranche
