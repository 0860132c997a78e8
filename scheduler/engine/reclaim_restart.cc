// What reclaims want done and how they stand, and taking them up again after a restart.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "scheduler/engine/impl.h"

namespace tranche {

std::vector<Reclaim> Engine::Reclaims() const {
  std::vector<Reclaim> list;
  for (const auto& [name, reclaim] : impl_->reclaims.all) list.push_back(reclaim);
  std::ranges::stable_sort(list, {}, &Reclaim::planned_at);
  return list;
}

void Engine::RestoreReclaims(std::vector<Reclaim> list) {
  PreemptionState& books = impl_->reclaims;
  std::ranges::sort(list, [](const Reclaim& left, const Reclaim& right) {
    return std::tie(left.finished_at, left.name) < std::tie(right.finished_at, right.name);
  });
  for (Reclaim& reclaim : list) {
    std::map<std::string, std::pair<Instant, int64_t>> evicted;  // by owner
    for (const ReclaimVictim& victim : reclaim.victims) {
      if (!victim.evicted_at) continue;
      auto [at, fresh] = evicted.try_emplace(victim.owner, *victim.evicted_at, 0);
      at->second.first = std::min(at->second.first, *victim.evicted_at);
      ++at->second.second;
      if (fresh) books.returning[victim.owner] = *victim.evicted_at;
      const auto record = impl_->pods.find(victim.uid);
      if (record == impl_->pods.end()) continue;
      record->second.traits.evicted_at = victim.evicted_at;
      record->second.traits.evicted_state = victim.state;
    }
    for (const auto& [owner, when] : evicted) {
      const auto leaf = std::ranges::find(reclaim.victims, owner, &ReclaimVictim::owner)->leaf;
      books.history.Note(owner, leaf, when.second, when.first);
    }
    books.serial = std::max(books.serial, reclaim.version);
    if (reclaim.finished()) {
      books.ended.emplace_back(reclaim.finished_at.value_or(reclaim.planned_at), reclaim.name);
    }
    books.all.insert_or_assign(reclaim.name, std::move(reclaim));
  }
}

void Engine::Impl::ContinueReclaims(Instant now) {
  std::vector<std::string> unfinished;
  for (const auto& [name, reclaim] : reclaims.all) {
    if (!reclaim.finished()) unfinished.push_back(name);
  }
  for (const std::string& name : unfinished) {
    Reclaim& reclaim = reclaims.all.at(name);
    reclaims.runs[name] = {};
    for (ReclaimVictim& victim : reclaim.victims) {
      if (victim.gone_at) continue;
      const PodRecord* record = Find(victim.uid);
      const bool holds = record != nullptr && !record->terminal && !record->node.empty();
      if (!holds) {
        victim.gone_at = now;
        continue;
      }
      reclaims.of_victim[victim.uid] = name;
      if (record->traits.leaves_at && !victim.evicted_at) victim.evicted_at = now;
    }
    for (const ReclaimMember& member : reclaim.members) reclaims.of_member[member.uid] = name;
    // One that was written without its victims says nothing that could be carried out.
    if (reclaim.victims.empty() || !Reearmark(reclaim, now)) {
      Finish(reclaim, ReclaimPhase::kAborted, "Changed", now);
      continue;
    }
    if (reclaim.finished()) continue;
    if (reclaim.phase == ReclaimPhase::kReserved) reclaim.phase = ReclaimPhase::kEvicting;
    NextEviction(name, now);
  }
}

}  // namespace tranche
