#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "policy/amounts.h"
#include "policy/declared_object.h"
#include "policy/decode.h"
#include "policy/decode_selector.h"
#include "policy/quota_amount.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

// Bounds of the CRD's schema (charts/tranche/crds), held for objects that come another way too.
constexpr size_t kMostLines = 64;
constexpr int64_t kMostWeight = 1'000'000;
constexpr int kMostEvictionsPerHour = 10'000;

constexpr std::array kModes = {Choice<QuotaMode>{"Enforce", QuotaMode::kEnforce},
                               Choice<QuotaMode>{"Observe", QuotaMode::kObserve},
                               Choice<QuotaMode>{"Off", QuotaMode::kOff}};
constexpr std::array kReleases = {
    Choice<ReleasePolicy>{"OnTermination", ReleasePolicy::kOnTermination},
    Choice<ReleasePolicy>{"OnDeletionTimestamp", ReleasePolicy::kOnDeletionTimestamp}};
constexpr std::array kOnShrinks = {Choice<OnShrink>{"Keep", OnShrink::kKeep},
                                   Choice<OnShrink>{"Reclaim", OnShrink::kReclaim},
                                   Choice<OnShrink>{"Drain", OnShrink::kDrain}};

void ReadModel(const Field& field, const std::vector<QuotaLine>& earlier, std::string& model) {
  Assign(model, ModelOf(field));
  const bool again = std::any_of(earlier.begin(), earlier.end(), [&](const QuotaLine& line) {
    return !model.empty() && line.model == model;
  });
  if (again) field.Fail("every model once");
}

void ReadLine(const Field& field, std::vector<QuotaLine>& lines) {
  constexpr std::string_view kAmountRule = "one of gpus, slices, gpuMemory";
  QuotaLine line;
  field.ReadMembers(
      {{"model", [&](const Field& model) { ReadModel(model, lines, line.model); },
        "a GPU model name or \"any\""},
       {"nominal",
        [&](const Field& nominal) { ReadQuotaAmount(nominal, line.model, line.nominal); },
        kAmountRule},
       {"borrowLimit",
        [&](const Field& limit) {
          ReadQuotaAmount(limit, line.model, line.borrow_limit.emplace());
        }},
       // Also over nominal: a group lends what its teams own.
       {"lendLimit", [&](const Field& limit) {
          ReadQuotaAmount(limit, line.model, line.lend_limit.emplace());
        }}});
  lines.push_back(std::move(line));
}

void ReadLines(const Field& field, std::vector<QuotaLine>& lines) {
  for (const Field& line : field.Items(0, kMostLines)) ReadLine(line, lines);
  std::sort(lines.begin(), lines.end(),
            [](const QuotaLine& left, const QuotaLine& right) { return left.model < right.model; });
}

void ReadReclaim(const Field& field, GpuQuota& quota) {
  const auto read_cross_leaf = [&](const Field& cross) {
    cross.ReadMembers(
        {{"enabled", [&](const Field& enabled) { ReadBool(enabled, quota.cross_leaf_preemption); }},
         {"minRank",
          [&](const Field& rank) { ReadInteger(rank, 0, kMostRank, quota.cross_leaf_min_rank); }}});
  };
  field.ReadMembers(
      {{"minRuntime", [&](const Field& time) { Assign(quota.min_runtime, DurationOf(time)); }},
       {"crossLeafClassPreemption", read_cross_leaf},
       {"fairSharePreemption",
        [&](const Field& fair) {
          fair.ReadMembers({{"enabled", [&](const Field& enabled) {
                               ReadBool(enabled, quota.fair_share_preemption);
                             }}});
        }},
       {"maxEvictionsPerHour",
        [&](const Field& most) {
          ReadInteger(most, 0, kMostEvictionsPerHour, quota.max_evictions_per_hour);
        }},
       {"onShrink",
        [&](const Field& shrink) { ReadChoice(shrink, kOnShrinks, quota.on_shrink); }}});
}

void ReadParent(const Field& field, GpuQuota& quota) {
  ReadName(field, quota.parent);
  if (quota.parent == quota.name) field.Fail("another quota than the object itself");
}

}  // namespace

absl::StatusOr<GpuQuota> DecodeGpuQuota(std::string_view json) {
  ObjectHead head;
  GpuQuota quota;
  TRANCHE_RETURN_IF_ERROR(
      ReadDeclared("GPUQuota", json, SpecPresence::kRequired, head, [&](const Field& spec) {
        quota.name = head.name;
        spec.ReadMembers(
            {{"parent", [&](const Field& parent) { ReadParent(parent, quota); }},
             {"mode", [&](const Field& mode) { ReadChoice(mode, kModes, quota.mode); }},
             {"namespaceSelector",
              [&](const Field& selector) { ReadSelector(selector, quota.namespaces); }},
             {"lines", [&](const Field& lines) { ReadLines(lines, quota.lines); }},
             {"weight",
              [&](const Field& weight) { ReadInteger(weight, 0, kMostWeight, quota.weight); }},
             {"releasePolicy",
              [&](const Field& release) { ReadChoice(release, kReleases, quota.release); }},
             {"reclaim", [&](const Field& reclaim) { ReadReclaim(reclaim, quota); }}});
      }));
  quota.uid = head.uid;
  return quota;
}

}  // namespace tranche
