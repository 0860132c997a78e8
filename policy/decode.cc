#include "policy/decode.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "policy/declared_object.h"
#include "policy/field.h"
#include "policy/policy_set.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

// Only Tranche writes GPUReclaims, so that nothing is kept of what is read.
constexpr std::array kRules = {
    Choice<int>{"R0", 9},           Choice<int>{"R1", 0},           Choice<int>{"R2a", 1},
    Choice<int>{"R2b", 2},          Choice<int>{"R3", 3},           Choice<int>{"R5", 4},
    Choice<int>{"Drain", 5},        Choice<int>{"Shrink", 6},       Choice<int>{"Gang", 7},
    Choice<int>{"MaxRuntime", 8},   Choice<int>{"Maintenance", 10}, Choice<int>{"Unhealthy", 11},
    Choice<int>{"Idle", 12},        Choice<int>{"Consolidate", 13}, Choice<int>{"MigLayout", 14},
    Choice<int>{"Interruption", 15}};
enum class Beneficiary { kPod, kGang, kObject };
constexpr std::array kBeneficiaries = {Choice<Beneficiary>{"Pod", Beneficiary::kPod},
                                       Choice<Beneficiary>{"Gang", Beneficiary::kGang},
                                       Choice<Beneficiary>{"GPUQuota", Beneficiary::kObject},
                                       Choice<Beneficiary>{"GPUBudget", Beneficiary::kObject},
                                       Choice<Beneficiary>{"GPUClass", Beneficiary::kObject},
                                       Choice<Beneficiary>{"GPUPool", Beneficiary::kObject},
                                       Choice<Beneficiary>{"Node", Beneficiary::kObject}};
constexpr size_t kMostPods = 10'000;
constexpr size_t kMaxText = 253;

void CheckName(const Field& field) {
  std::string unused;
  ReadName(field, unused);
}

void CheckText(const Field& field) {
  const auto text = field.Text();
  if (!text || text->size() > kMaxText) field.Fail("text of at most 253 bytes");
}

void CheckBeneficiary(const Field& field) {
  Beneficiary kind = Beneficiary::kPod;
  bool has_namespace = false;
  const bool is_object = field.ReadMembers(
      {{"kind", [&](const Field& word) { ReadChoice(word, kBeneficiaries, kind); }},
       {"namespace",
        [&](const Field& ns) {
          has_namespace = true;
          CheckName(ns);
        }},
       {"name",
        [&](const Field& name) {
          // A gang's is as its pods spell it.
          kind == Beneficiary::kGang ? CheckText(name) : CheckName(name);
        },
        "a name"},
       {"uid", CheckText}});
  const bool of_namespace = kind != Beneficiary::kObject;
  if (is_object && of_namespace != has_namespace) {
    field.Fail(of_namespace ? "the namespace of a pod or gang"
                            : "no namespace with a quota, budget or class");
  }
}

void CheckMembers(const Field& field) {
  for (const Field& member : field.Items(0, kMostPods)) {
    member.ReadMembers({{"namespace", CheckName, "a namespace"},
                        {"name", CheckName, "a name"},
                        {"uid", CheckText, "a UID"},
                        {"node", CheckText}});
  }
}

void CheckReclaim(const Field& spec) {
  spec.ReadMembers({{"for", CheckBeneficiary, "a pod, quota or budget"},
                    {"rule",
                     [](const Field& rule) {
                       int unused = 0;
                       ReadChoice(rule, kRules, unused);
                     },
                     "a rule"},
                    {"leaf", CheckText},
                    {"members", CheckMembers},
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
  TRANCHE_RETURN_IF_ERROR(ReadJson("Namespace", json, [&](const Field& root) {
    root.ReadSomeMembers({{"metadata", [&](const Field& metadata) {
                             metadata.ReadSomeMembers({{"labels", read_labels}});
                           }}});
  }));
  for (const auto& [key, value] : LabelsOfUnknownNamespace(std::string(name))) labels[key] = value;
  return labels;
}

absl::Status CheckObject(std::string_view kind, std::string_view json, const GpuPolicy& defaults) {
  if (kind == "GPUPolicy") return DecodeGpuPolicy(json, defaults).status();
  if (kind == "GPUQuota") return DecodeGpuQuota(json).status();
  if (kind == "GPUBudget") return DecodeGpuBudget(json).status();
  if (kind == "GPUClass") return DecodeGpuClass(json).status();
  if (kind == "GPUPool") return DecodeGpuPool(json).status();
  if (kind == "GPUPrice") return DecodeGpuPrice(json).status();
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
