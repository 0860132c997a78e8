// Reclaims as records: their names, their victims, how long these may take, and where
// kube-scheduler is told that members go.
#include <fmt/format.h>

#include <algorithm>
#include <set>
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
  const PodRecord& record = *parts_.claims.Find(uid);
  const HeldWork work = *parts_.claims.WorkOf(uid);
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

void ReclaimRuns::TellNominations() {
  std::set<NodeName> ready;
  const auto for_waiting = [this](const auto& visit) {
    for (const auto& [name, run] : reclaims_.runs) {
      const Reclaim& reclaim = reclaims_.all.at(name);
      for (const ReclaimMember& member : reclaim.members) {
        if (!member.placed) visit(reclaim, member);
      }
    }
  };
  for_waiting([&ready](const Reclaim& reclaim, const ReclaimMember& member) {
    if (reclaim.phase == ReclaimPhase::kReserved) ready.insert(member.node);
  });
  for_waiting([&](const Reclaim& reclaim, const ReclaimMember& member) {
    const bool granted = std::ranges::all_of(reclaim.victims, IsTaken);
    const bool is_ready = reclaim.phase == ReclaimPhase::kReserved;
    const bool tell = is_ready || (granted && !ready.contains(member.node));
    const NodeName node = tell ? member.node : NodeName();
    NodeName& told = told_[member.uid];
    if (told == node) return;
    told = node;
    cluster_.outbox.reclaims().nominations.push_back({member.pod, member.uid, node});
  });
}

void ReclaimRuns::Unnominate(const ReclaimMember& member) {
  const PodRecord* record = cluster_.Find(member.uid);
  if (record == nullptr || !cluster_.IsPending(*record)) return;
  const NodeName& seen = record->traits.nominated;
  const auto told = told_.find(member.uid);
  const bool ours = told != told_.end() && !told->second.empty();
  // kube-scheduler may have nominated it elsewhere by itself.
  if (seen == member.node || (ours && seen.empty())) {
    cluster_.outbox.reclaims().nominations.push_back({member.pod, member.uid, NodeName()});
  }
}

// Until when the victim should be gone; nullopt: it is, or it was not asked to go.
std::optional<Instant> ReclaimRuns::MostPatience(const ReclaimVictim& victim) const {
  const PodRecord* record = parts_.claims.Find(victim.uid);
  if (victim.gone_at || record == nullptr) return std::nullopt;
  if (record->traits.leaves_at) return *record->traits.leaves_at + kStuckSlack;
  // Its eviction was taken, and it does not leave.
  if (victim.evicted_at) return *victim.evicted_at + victim.grace.value_or(Millis{0}) + kStuckSlack;
  return std::nullopt;
}

}  // namespace tranche
