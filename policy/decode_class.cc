#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "policy/amounts.h"
#include "policy/declared_object.h"
#include "policy/decode.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

// Bounds of the CRD's schema (charts/tranche/crds), held for objects that come another way too.
constexpr size_t kMostPriorityClasses = 64;
constexpr int kMostEvictionsPerDay = 10'000;
constexpr int64_t kMostChargeFactor = 9999;

constexpr std::array kPreemptibles = {
    Choice<Preemptible>{"Never", Preemptible::kNever},
    Choice<Preemptible>{"Always", Preemptible::kAlways},
    Choice<Preemptible>{"OverQuota", Preemptible::kOverQuota},
    Choice<Preemptible>{"OverNominal", Preemptible::kOverNominal}};
constexpr std::array kSharing = {Choice<SharingMode>{"Exclusive", SharingMode::kExclusive},
                                 Choice<SharingMode>{"MIG", SharingMode::kMig},
                                 Choice<SharingMode>{"MPS", SharingMode::kMps},
                                 Choice<SharingMode>{"TimeSliced", SharingMode::kTimeSliced}};

// Other words than pools and prices have: those of the clouds.
constexpr std::array kCapacities = {Choice<CapacityType>{"spot", CapacityType::kSpot},
                                    Choice<CapacityType>{"on-demand", CapacityType::kOnDemand},
                                    Choice<CapacityType>{"reserved", CapacityType::kReserved}};

void ReadPriorityClasses(const Field& field, std::vector<std::string>& names) {
  for (const Field& item : field.Items(0, kMostPriorityClasses)) {
    std::string name;
    ReadName(item, name);
    if (!name.empty()) AddOnce(item, name, names);
  }
}

void ReadSharing(const Field& field, std::vector<SharingMode>& modes) {
  modes.clear();
  for (const Field& item : field.Items(1, kSharing.size())) {
    SharingMode mode{};
    if (ReadChoice(item, kSharing, mode)) AddOnce(item, mode, modes);
  }
}

void ReadCapacity(const Field& field, std::vector<CapacityType>& types) {
  types.clear();
  for (const Field& item : field.Items(1, kCapacities.size())) {
    CapacityType type{};
    if (ReadChoice(item, kCapacities, type)) AddOnce(item, type, types);
  }
}

// After `capacity`, which it may not contradict.
void ReadInterruptible(const Field& field, GpuClass& result) {
  std::optional<bool> value;
  ReadBool(field, value);
  result.interruptible = value.value_or(result.interruptible);
  const bool names_spot = std::find(result.capacity.begin(), result.capacity.end(),
                                    CapacityType::kSpot) != result.capacity.end();
  if (!result.interruptible && names_spot) field.Fail("true where capacity names spot");
}

void ReadSpec(const Field& spec, GpuClass& result) {
  spec.ReadMembers(
      {{"priorityClassNames",
        [&](const Field& names) { ReadPriorityClasses(names, result.priority_classes); }},
       {"rank", [&](const Field& rank) { ReadInteger(rank, 0, kMostRank, result.rank); }},
       {"preemptible",
        [&](const Field& field) { ReadChoice(field, kPreemptibles, result.preemptible); }},
       {"sharing", [&](const Field& sharing) { ReadSharing(sharing, result.sharing); }},
       {"minRuntime", [&](const Field& time) { Assign(result.min_runtime, DurationOf(time)); }},
       {"gracePeriod", [&](const Field& time) { Assign(result.grace_period, DurationOf(time)); }},
       {"cooldown", [&](const Field& time) { Assign(result.cooldown, DurationOf(time)); }},
       {"patience", [&](const Field& time) { Assign(result.patience, DurationOf(time)); }},
       {"maxEvictionsPerDay",
        [&](const Field& most) {
          int evictions = 0;
          ReadInteger(most, 0, kMostEvictionsPerDay, evictions);
          result.max_evictions_per_day = evictions == 0 ? std::nullopt : std::optional(evictions);
        }},
       {"lostWorkCap", [&](const Field& time) { Assign(result.lost_work_cap, DurationOf(time)); }},
       {"restartOverhead",
        [&](const Field& time) { Assign(result.restart_overhead, DurationOf(time)); }},
       {"assumedLossPercentile",
        [&](const Field& percentile) {
          ReadInteger(percentile, 0, 100, result.assumed_loss_percentile);
        }},
       {"idleAfter", [&](const Field& time) { Assign(result.idle_after, DurationOf(time)); }},
       {"maxRuntime", [&](const Field& time) { Assign(result.max_runtime, DurationOf(time)); }},
       {"chargeFactor",
        [&](const Field& factor) {
          Assign(result.charge_factor, ThousandthsOf(factor, kMostChargeFactor));
        }},
       {"capacity", [&](const Field& capacity) { ReadCapacity(capacity, result.capacity); }},
       {"interruptible", [&](const Field& field) { ReadInterruptible(field, result); }}});
}

}  // namespace

absl::StatusOr<GpuClass> DecodeGpuClass(std::string_view json) {
  ObjectHead head;
  GpuClass result;
  TRANCHE_RETURN_IF_ERROR(
      ReadDeclared("GPUClass", json, SpecPresence::kRequired, head, [&](const Field& spec) {
        result = DefaultClass(head.name);
        ReadSpec(spec, result);
      }));
  return result;
}

}  // namespace tranche
