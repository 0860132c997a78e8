#include "policy/quota_amount.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "policy/amounts.h"
#include "topology/gpu_model.h"
#include "topology/mig.h"

namespace tranche {
namespace {

// Bounds of the CRD's schema (charts/tranche/crds), held for objects that come another way too.
constexpr int64_t kMostGpus = 9'999'999;
constexpr size_t kMostProfiles = 32;
constexpr int64_t kMostSlices = 100'000;

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

}  // namespace

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

}  // namespace tranche
