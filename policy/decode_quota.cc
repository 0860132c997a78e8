#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "policy/amounts.h"
#include "policy/declared_object.h"
#include "policy/decode.h"
#include "policy/decode_selector.h"
#include "topology/base/status.h"
#include "topology/gpu_model.h"
#include "topology/mig.h"

namespace tranche {
namespace {

// Bounds of the CRD's schema (charts/tranche/crds), held for objects that come another way too.
constexpr size_t kMostLines = 64;
constexpr int64_t kMostGpus = 9'999'999;
constexpr size_t kMostProfiles = 32;
constexpr int64_t kMostSlices = 100'000;
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

// By the profile's name, an alias, or as it stands in a resource name ("1g.10gb.me").
std::optional<std::string> CanonicalProfile(const std::vector<const MigBoard*>& boards,
                                            std::string_view name) {
  const std::optional<MigResourceName> tail = ParseMigResourceTail(name);
  for (const MigBoard* board : boards) {
    const MigProfile* profile = FindMigProfile(*board, name);
    if (profile == nullptr && tail && !tail->shared) {
      profile = FindMigProfile(*board, tail->profile);
    }
    if (profile != nullptr) return std::string(profile->name);
  }
  return std::nullopt;
}

std::string ProfileRule(const std::vector<const MigBoard*>& boards, const std::string& model) {
  if (boards.empty()) return fmt::format("gpus, since no MIG profile of {} is known", model);
  std::vector<std::string_view> names;
  for (const MigBoard* board : boards) {
    for (const MigProfile& profile : board->profiles) names.push_back(profile.name);
  }
  return fmt::format("a MIG profile of {} ({}) as key", model, fmt::join(names, ", "));
}

void ReadSlices(const Field& field, const std::string& model, QuotaAmount& amount) {
  if (model == kAnyModel) {
    field.Fail("gpus on the line any, whose GPUs have no slices in common");
    return;
  }
  const std::map<std::string, Field> counts = field.Members();
  if (model.empty()) return;
  if (counts.empty() || counts.size() > kMostProfiles) {
    field.Fail(fmt::format("1..{} MIG profiles and their counts", kMostProfiles));
  }
  const std::vector<const MigBoard*> boards = BoardsOfModel(model);
  std::map<std::string, int64_t> slices;
  for (const auto& [name, count] : counts) {
    const std::optional<std::string> profile = CanonicalProfile(boards, name);
    if (!profile) {
      count.Fail(ProfileRule(boards, model));
    } else if (slices.contains(*profile)) {
      count.Fail(fmt::format("every profile once, and {} stands here twice", *profile));
    } else {
      ReadInteger(count, 0, kMostSlices, slices[*profile]);
    }
  }
  amount.slices.assign(slices.begin(), slices.end());
}

void ReadMemory(const Field& field, const std::string& model, QuotaAmount& amount) {
  if (model == kAnyModel) {
    field.Fail("gpus on the line any, whose GPUs differ in memory");
  } else {
    Assign(amount.memory, MemoryOf(field));
  }
}

// `model`: the line's, in lower case; empty where it could not be read. Profiles must exist on a
// MIG board of that model and are kept under their canonical names; slices and memory make no sense
// on the line "any".
void ReadQuotaAmount(const Field& field, const std::string& model, QuotaAmount& amount) {
  int forms = 0;
  const auto take = [&](QuotaAmount::Form form) {
    amount.form = form;
    ++forms;
  };
  const bool is_object =
      field.ReadMembers({{"gpus",
                          [&](const Field& gpus) {
                            take(QuotaAmount::Form::kGpus);
                            if (const auto milli = ThousandthsOf(gpus, kMostGpus)) {
                              amount.gpus = MilliGpu::Of(*milli);
                            }
                          }},
                         {"slices",
                          [&](const Field& slices) {
                            take(QuotaAmount::Form::kSlices);
                            ReadSlices(slices, model, amount);
                          }},
                         {"gpuMemory", [&](const Field& memory) {
                            take(QuotaAmount::Form::kMemory);
                            ReadMemory(memory, model, amount);
                          }}});
  if (is_object && forms != 1) field.Fail("exactly one of gpus, slices, gpuMemory");
}

void ReadLine(const Field& field, std::vector<QuotaLine>& lines) {
  constexpr std::string_view kAmountRule = "one of gpus, slices, gpuMemory";
  QuotaLine line;
  // The API server defaults what is not there to "".
  bool unreadable = false;
  field.ReadSomeMembers({{"pool", [&](const Field& pool) {
                            if (pool.Text() == "") return;
                            ReadName(pool, line.pool);
                            unreadable = line.pool.empty();
                          }}});
  const bool for_all = !line.pool.empty();
  if (for_all) line.model = kAnyModel;
  const auto read_model = [&](const Field& model) {
    if (for_all && model.Text() == "") return;
    line.model = ModelOf(model).value_or("");
  };
  field.ReadMembers(
      {{"model", read_model, for_all ? "" : "a GPU model name or \"any\""},
       {"pool", [](const Field& /*pool*/) {}},
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
  const bool again = std::ranges::any_of(lines, [&line](const QuotaLine& earlier) {
    return earlier.model == line.model && earlier.pool == line.pool;
  });
  if (again && !line.model.empty() && !unreadable) field.Fail("every model and pool once");
  lines.push_back(std::move(line));
}

void ReadLines(const Field& field, std::vector<QuotaLine>& lines) {
  for (const Field& line : field.Items(0, kMostLines)) ReadLine(line, lines);
  std::ranges::sort(lines, {},
                    [](const QuotaLine& line) { return std::tie(line.model, line.pool); });
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
