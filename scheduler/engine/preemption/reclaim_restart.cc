// Taking reclaims up again after a restart.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "scheduler/engine/preemption/reclaim_runs.h"
#include "topology/base/mark.h"

namespace tranche {

void ReclaimRuns::Restore(std::vector<Reclaim> list) {
  std::ranges::sort(list, [](const Reclaim& left, const Reclaim& right) {
    return std::tie(left.finished_at, left.name) < std::tie(right.finished_at, right.name);
  });
  for (Reclaim& reclaim : list) {
    // What had all its time counts as nobody's eviction, and its owner is due nothing.
    const bool is_due = !HadItsTime(reclaim.rule);
    std::map<std::string, std::pair<Instant, int64_t>> evicted;  // by owner
    for (const ReclaimVictim& victim : reclaim.victims) {
      if (!victim.evicted_at) continue;
      if (is_due) {
        auto [at, fresh] = evicted.try_emplace(victim.owner, *victim.evicted_at, 0);
        at->second.first = std::min(at->second.first, *victim.evicted_at);
        ++at->second.second;
        if (fresh) reclaims_.returning[victim.owner] = *victim.evicted_at;
      }
      PodRecord* record = parts_.claims.Find(victim.uid);
      if (record == nullptr) continue;
      record->traits.evicted_at = victim.evicted_at;
      record->traits.evicted_state = victim.state;
      record->traits.evicted_by = reclaim.rule;
    }
    for (const auto& [owner, when] : evicted) {
      if (!CountsAsEviction(reclaim.rule)) break;
      const auto leaf = std::ranges::find(reclaim.victims, owner, &ReclaimVictim::owner)->leaf;
      reclaims_.history.Note(owner, leaf, when.second, when.first);
    }
    reclaims_.serial = std::max(reclaims_.serial, reclaim.version);
    if (reclaim.finished()) {
      reclaims_.ended.emplace_back(reclaim.finished_at.value_or(reclaim.planned_at), reclaim.name);
    }
    reclaims_.all.insert_or_assign(reclaim.name, std::move(reclaim));
  }
}

void ReclaimRuns::Continue(Instant now) {
  std::vector<std::string> unfinished;
  for (const auto& [name, reclaim] : reclaims_.all) {
    if (!reclaim.finished()) unfinished.push_back(name);
  }
  for (const std::string& name : unfinished) {
    Reclaim& reclaim = reclaims_.all.at(name);
    reclaims_.runs[name] = {};
    for (ReclaimVictim& victim : reclaim.victims) {
      if (victim.gone_at) continue;
      const PodRecord* record = parts_.claims.Find(victim.uid);
      const bool holds = record != nullptr && !record->terminal && !record->node.empty();
      if (!holds) {
        victim.gone_at = now;
        continue;
      }
      reclaims_.of_victim[victim.uid] = name;
      if (record->traits.leaves_at && !victim.evicted_at) victim.evicted_at = now;
    }
    for (const ReclaimMember& member : reclaim.members) {
      reclaims_.of_member[member.uid] = name;
      const PodRecord* record = cluster_.Find(member.uid);
      if (record != nullptr && record->traits.nominated == member.node) {
        told_[member.uid] = member.node;
      }
    }
    // One that was written without its victims says nothing that could be carried out.
    if (reclaim.victims.empty() || !Reearmark(reclaim, now)) {
      Finish(reclaim, ReclaimPhase::kAborted, "Changed", now);
      continue;
    }
    if (reclaim.finished()) continue;
    if (reclaim.phase == ReclaimPhase::kReserved) reclaim.phase = ReclaimPhase::kEvicting;
    NextEviction(name, now);
  }
  EvictRestsOfEnded(now);
  TellNominations();
}

bool ReclaimRuns::Reearmark(Reclaim& reclaim, Instant now) {
  bool returned = false;
  for (const ReclaimMember& member : std::vector<ReclaimMember>(reclaim.members)) {
    PodRecord* record = cluster_.Find(member.uid);
    const bool lives = record != nullptr && !record->terminal && !record->traits.leaves_at;
    if (!lives) return false;
    if (record->earmark != nullptr) continue;
    if (!record->Place().empty()) {
      NoteMemberPlaced(member.uid, record->Place(), now);
      if (reclaim.finished()) return true;
      continue;
    }
    const NodeId id = cluster_.names.Find(member.node.str());
    if (id == kNoNode || cluster_.nodes[id] == nullptr || !cluster_.nodes[id]->state.present())
      return false;
    const RequestContext context = rules_.ContextOf(*record->request);
    if (!MayPlan(context)) return false;
    const NodeState& state = cluster_.nodes[id]->state;
    const Load load = state.LoadWithout([&](const PodUid& uid) {
      const PodRecord* other = cluster_.Find(uid);
      return reclaims_.of_victim.contains(uid) || (other != nullptr && IsLeaving(*other, now));
    });
    Worth worth;
    if (cluster_.scorer.Evaluate(RoomOf(state, load), *record->request, *context.policy, picks_,
                                 worth, context.sharing) != Reason::kNone) {
      return false;
    }
    earmarks_.PutEarmark(member.uid, *record,
                         earmarks_.EarmarkOf(id, *record->request, context.membership, picks_, now),
                         now);
    // A bind of it was refused, or never happened: it has still to come.
    if (!member.placed) continue;
    TRANCHE_MARK(reclaim_member_returned);
    std::ranges::find(reclaim.members, member.uid, &ReclaimMember::uid)->placed = false;
    returned = true;
  }
  if (returned) Changed(reclaim);
  return true;
}

}  // namespace tranche
