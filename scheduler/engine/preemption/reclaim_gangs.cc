// Victims that are gangs: one is evicted whole or not at all. What is left of a gang whose reclaim
// ended half way is a reclaim of its own (rule Gang), for which nobody waits.
#include <algorithm>
#include <utility>

#include "scheduler/engine/preemption/reclaim_runs.h"
#include "topology/base/mark.h"

namespace tranche {
namespace {

// How long the room of a waiting pod is kept while the rest of a gang may not be evicted.
constexpr Millis kRefusedMost{600'000};

bool Holds(const PodRecord& record) { return !record.terminal && !record.node.empty(); }
bool Goes(const PodRecord& record) {
  return record.traits.leaves_at.has_value() || record.traits.evicted_at.has_value();
}

}  // namespace

ReclaimRuns::Witness ReclaimRuns::WitnessOf(const std::string& reclaim) const {
  const auto run = reclaims_.runs.find(reclaim);
  return run != reclaims_.runs.end() && run->second.begun_here ? Witness::kUs : Witness::kRecord;
}

bool ReclaimRuns::IsShort(const std::string& key, Witness witness) const {
  const auto found = gangs_.books().all.find(key);
  if (found == gangs_.books().all.end()) return false;
  const GangCount count = gangs_.CountOf(key, found->second);
  int staying = 0;
  int going = 0;
  for (const PodUid& uid : found->second.members) {
    const PodRecord& record = cluster_.pods.at(uid);
    if (Holds(record)) ++(Goes(record) ? going : staying);
  }
  if (count.size > 0) return staying + count.plain < count.size;
  return witness == Witness::kUs || going > 0;
}

std::set<std::string> ReclaimRuns::BrokenGangs(const Reclaim& reclaim, Witness witness) const {
  std::set<std::string> broken;
  const auto run = reclaims_.runs.find(reclaim.name);
  for (const ReclaimVictim& victim : reclaim.victims) {
    std::string key = GangKeyOf(victim);
    // One that is gone before the answer came is taken to have been evicted.
    const bool doubted =
        victim.gone_at && run != reclaims_.runs.end() && run->second.doubted.contains(victim.uid);
    const bool evicted = victim.evicted_at || doubted;
    if (key.empty() || !evicted || broken.contains(key)) continue;
    if (IsShort(key, witness)) broken.insert(std::move(key));
  }
  return broken;
}

bool ReclaimRuns::GangIsToGo(const Reclaim& reclaim, const std::vector<PodUid>& left) const {
  const auto gang = gangs_.books().all.find(reclaim.source);
  if (gang == gangs_.books().all.end()) return false;
  const bool members = std::ranges::all_of(left, [&](const PodUid& uid) {
    const HeldWork* work = cluster_.book.Find(uid);
    if (work == nullptr || !gang->second.members.contains(uid)) return false;
    return !guards_.IsNeverEvicted(*work) && cluster_.Find(uid)->traits.evictable;
  });
  return members && IsShort(reclaim.source, WitnessOf(reclaim.name));
}

void ReclaimRuns::EvictRests(const Reclaim& reclaim, const std::set<std::string>& broken,
                             Instant now) {
  for (const std::string& key : broken) {
    Reclaim rest;
    rest.rule = ReclaimRule::kGang;
    rest.source = key;
    rest.snapshot = cluster_.version();
    const Gang& gang = gangs_.books().all.at(key);
    const bool sized = gangs_.CountOf(key, gang).size > 0;
    Instant evicted = reclaim.planned_at;
    for (const ReclaimVictim& victim : reclaim.victims) {
      if (GangKeyOf(victim) == key)
        evicted = std::max(evicted, victim.evicted_at.value_or(evicted));
    }
    for (const PodUid& uid : gang.members) {
      const PodRecord& record = cluster_.pods.at(uid);
      const HeldWork* work = cluster_.book.Find(uid);
      const bool stays = Holds(record) && !Goes(record) && work != nullptr;
      if (!stays || reclaims_.of_victim.contains(uid)) continue;
      // Those that have come since came in place of others. One that no plan would have taken may
      // have come while the eviction was under way.
      if (work->since > evicted || !record.traits.evictable || guards_.IsNeverEvicted(*work))
        continue;
      const auto planned = std::ranges::find(reclaim.victims, uid, &ReclaimVictim::uid);
      const bool known = planned != reclaim.victims.end();
      // Where its size is told nobody has joined it since the plan, and what it had to spare stays.
      if (sized && !known) continue;
      ReclaimVictim victim = VictimOf(uid, known ? planned->lost_gpu_ms : 0, now);
      victim.state =
          known ? planned->state : cluster_.book.StateOf(uid).value_or(QuotaState::kBorrowed);
      rest.leaf = victim.leaf;
      rest.cost.lost_gpu_ms = AddSaturating(rest.cost.lost_gpu_ms, victim.lost_gpu_ms);
      rest.victims.push_back(std::move(victim));
    }
    if (rest.victims.empty()) continue;
    TRANCHE_MARK(rest_of_a_gang_is_evicted);
    rest.cost.pods = static_cast<int64_t>(rest.victims.size());
    rest.optimal = true;  // there is nothing to choose
    const PodName& first = rest.victims.front().pod;
    rest.name = NameOf("gang-" + first.ns + "-" + first.name, now);
    Begin(std::move(rest), now);
  }
}

void ReclaimRuns::EvictRestsOfEnded(Instant now) {
  std::vector<Reclaim> lately;
  for (const auto& [name, reclaim] : reclaims_.all) {
    const bool fresh = reclaim.finished() && reclaim.finished_at &&
                       now - *reclaim.finished_at <= cluster_.options.reservation_ttl;
    if (fresh) lately.push_back(reclaim);
  }
  for (const Reclaim& reclaim : lately) {
    EvictRests(reclaim, BrokenGangs(reclaim, Witness::kRecord), now);
  }
}

bool ReclaimRuns::AsksAgain(const Reclaim& reclaim, ReclaimRun& run, const PodUid& uid,
                            Millis pause, Instant now) const {
  const auto victim = std::ranges::find(reclaim.victims, uid, &ReclaimVictim::uid);
  const bool rest = reclaim.rule == ReclaimRule::kGang;
  if (!rest && (victim == reclaim.victims.end() ||
                !BrokenGangs(reclaim, WitnessOf(reclaim.name)).contains(GangKeyOf(*victim)))) {
    return false;
  }
  if (!run.refused_since) run.refused_since = now;
  // Others wait for the room that is kept meanwhile.
  if (!rest && now - *run.refused_since >= kRefusedMost) return false;
  TRANCHE_MARK(rest_of_a_gang_may_not_go_yet);
  run.retry_at = now + pause;
  return true;
}

}  // namespace tranche
