// Reclaims as records: their names, their victims, and how long these may take.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/engine/preemption/reclaim_runs.h"

namespace tranche {
namespace {

constexpr Millis kStuckSlack{60'000};

}  // namespace

// Unique and a DNS label: time tells apart what a restart has forgotten.
std::string ReclaimRuns::NameOf(const std::string& stem, Instant now) {
  std::string name = stem.substr(0, 45);
  std::ranges::replace(name, '.', '-');
  for (;;) {
    const auto part = static_cast<uint64_t>(now.time_since_epoch().count()) + ++reclaims_.serial;
    std::string whole = fmt::format("{}-{:x}", name, part);
    if (!reclaims_.all.contains(whole)) return whole;
  }
}

ReclaimVictim ReclaimRuns::VictimOf(const PodUid& uid, int64_t lost, Instant now) const {
  const PodRecord& record = cluster_.pods.at(uid);
  const HeldWork& work = *cluster_.book.Find(uid);
  ReclaimVictim victim;
  victim.pod = record.request->name;
  victim.uid = uid;
  victim.node = record.node;
  victim.gang = record.request->gang;
  victim.owner = record.traits.owner;
  victim.leaf = work.leaf;
  victim.lost_gpu_ms = lost;
  victim.checkpoint = record.traits.checkpoint;
  if (const GpuClass* gpu_class = cluster_.set->ClassNamed(work.workload_class)) {
    victim.grace = gpu_class->grace_period;
  }
  victim.again = reclaims_.history.Evictions(record.traits.owner, now) > 0;
  return victim;
}

// Until when the victim should be gone; nullopt: it is, or it was not asked to go.
std::optional<Instant> ReclaimRuns::MostPatience(const ReclaimVictim& victim) const {
  const auto record = cluster_.pods.find(victim.uid);
  if (victim.gone_at || record == cluster_.pods.end()) return std::nullopt;
  if (record->second.traits.leaves_at) return *record->second.traits.leaves_at + kStuckSlack;
  // Its eviction was taken, and it does not leave.
  if (victim.evicted_at) return *victim.evicted_at + victim.grace.value_or(Millis{0}) + kStuckSlack;
  return std::nullopt;
}

}  // namespace tranche
