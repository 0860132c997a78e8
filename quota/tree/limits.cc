#include "quota/tree/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "topology/base/int128.h"
#include "topology/base/status.h"
#include "topology/gpu_model.h"
#include "topology/mig.h"

namespace tranche {
namespace {

int64_t Saturated(Int128 amount) {
  return static_cast<int64_t>(std::clamp<Int128>(amount, -Int128{kSaturated}, kSaturated));
}

// Boards may share a model name (two sizes of H20); their profiles tell them apart.
std::optional<Charge> SliceCharge(std::string_view model, std::string_view profile_name) {
  for (const MigBoard* board : BoardsOfModel(model)) {
    const MigProfile* profile = FindMigProfile(*board, profile_name);
    if (profile != nullptr) return ChargeOfMig(*board, *profile);
  }
  return std::nullopt;
}

Mebibytes MemoryOfModel(std::string_view model) {
  // Most model names read as a product label; the others are names of MIG boards' products.
  const Mebibytes memory = CatalogueMemory(model);
  if (memory > Mebibytes::Zero() && GpuModelName(model) == model) return memory;
  const std::vector<const MigBoard*> boards = BoardsOfModel(model);
  if (boards.empty()) return Mebibytes::Zero();
  return CatalogueMemory(*std::ranges::find(boards.front()->products, model, GpuModelName));
}

absl::StatusOr<ChargeLimit> OfSlices(const QuotaAmount& amount, std::string_view model) {
  Charge sum;
  for (const auto& [profile, count] : amount.slices) {
    const std::optional<Charge> one = SliceCharge(model, profile);
    if (!one.has_value()) {
      return absl::InvalidArgumentError(
          model == kAnyModel
              ? fmt::format("slices.{}: expected a line of one GPU model, found {}", profile, model)
              : fmt::format("slices.{0}: expected a MIG profile of {1}, found {0}", profile,
                            model));
    }
    sum = AddSaturating(
        sum, {Saturated(Int128{one->compute} * count), Saturated(Int128{one->memory} * count)});
  }
  return sum;
}

absl::StatusOr<ChargeLimit> OfMemory(Mebibytes memory, std::string_view model) {
  const int64_t card = MemoryOfModel(model).count();
  if (card == 0) {
    return absl::InvalidArgumentError(
        fmt::format("gpuMemory: expected a line of a GPU model of known memory, found {}", model));
  }
  return ChargeLimit({}, Saturated((Int128{kQuantaPerGpu} * memory.count() + card - 1) / card));
}

absl::StatusOr<ChargeLimit> ToLimit(const QuotaAmount& amount, std::string_view model,
                                    std::string_view path) {
  absl::StatusOr<ChargeLimit> limit = ToLimit(amount, model);
  if (limit.ok()) return limit;
  return absl::InvalidArgumentError(
      fmt::format("{}.{}", path, std::string(limit.status().message())));
}

}  // namespace

absl::StatusOr<ChargeLimit> ToLimit(const QuotaAmount& amount, std::string_view model) {
  switch (amount.form) {
    case QuotaAmount::Form::kSlices:
      return OfSlices(amount, model);
    case QuotaAmount::Form::kMemory:
      return OfMemory(amount.memory, model);
    case QuotaAmount::Form::kGpus:
      break;
  }
  const int64_t quanta = Saturated(Int128{amount.gpus.count()} * kQuantaPerGpu / kWholeGpu.count());
  return ChargeLimit(quanta, quanta);
}

absl::StatusOr<LineLimits> ToLimits(const QuotaLine& line) {
  LineLimits limits;
  TRANCHE_ASSIGN_OR_RETURN(limits.nominal, ToLimit(line.nominal, line.model, "nominal"));
  if (line.borrow_limit.has_value()) {
    TRANCHE_ASSIGN_OR_RETURN(limits.borrow_limit,
                             ToLimit(*line.borrow_limit, line.model, "borrowLimit"));
  }
  if (line.lend_limit.has_value()) {
    TRANCHE_ASSIGN_OR_RETURN(limits.lend_limit, ToLimit(*line.lend_limit, line.model, "lendLimit"));
  }
  return limits;
}

}  // namespace tranche
