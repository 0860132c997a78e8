#include "scheduler/engine/parts.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "scheduler/engine/selection/pool_windows.h"
#include "scheduler/engine/teams/moved_namespaces.h"
#include "topology/base/plant.h"

namespace tranche {
namespace {

// Records that only filter calls made are kept for explain while the scheduler may be retrying
// (it flushes at five minutes), and bounded: a stopped clock ends nothing, and anyone may call.
constexpr std::size_t kMaxUnseen = 10'000;
constexpr Millis kUnseenLifetime{600'000};
// Members of gangs that preemption is told of at once.
constexpr std::size_t kMostJudged = 256;

}  // namespace

void EngineParts::Advance(Instant now) {
  rules.TrimPolicies();
  cluster.book.TrimRoutes();
  const bool moved = now > cluster.latest;
  cluster.latest = std::max(cluster.latest, now);
  cluster.agents.Advance(now);
  cluster.prices.Advance(now);
  if (moved && cluster.book.Advance(now, cluster.outbox.closings())) {
    ForgetTeams();
    cluster.NoteChange();
    requeue.Admitted(now);
  }
  while (const std::optional<PodUid> uid = team_queue.TakeAwake(now)) requeue.IfFits(*uid, now);
  while (!cluster.tentative_ends.empty() && std::get<0>(cluster.tentative_ends.front()) <= now) {
    const auto [end, uid, serial] = cluster.tentative_ends.front();
    cluster.tentative_ends.pop_front();
    PodRecord* record = cluster.Find(uid);
    if (record == nullptr || record->tentative_serial != serial) continue;
    cluster.DropTentative(uid, *record, now);
  }
  while (!cluster.reopenings.empty() && cluster.reopenings.begin()->first <= now) {
    const NodeId id = cluster.reopenings.begin()->second;
    cluster.reopenings.erase(cluster.reopenings.begin());
    if (id >= cluster.nodes.size() || cluster.nodes[id] == nullptr) continue;
    if (NotePool(cluster, id, now)) run_limits.NoteNode(id);
    cluster.Refresh(id, now);
    if (cluster.nodes[id] != nullptr) requeue.NoteReopened(id, now);
  }
}

void EngineParts::ForgetOldest() {
  while (!unseen.empty()) {
    const auto [since, uid] = unseen.front();
    PodRecord* record = cluster.Find(uid);
    const bool only_filtered = record != nullptr && !record->seen && record->reserved.empty();
    const bool recent =
        cluster.latest - since < kUnseenLifetime || (record && record->tentative != kNoNode);
    if (only_filtered && recent && unseen.size() <= kMaxUnseen) break;
    unseen.pop_front();
    if (!only_filtered) continue;
    cluster.DropTentative(uid, *record, cluster.latest);
    gangs.Leave(uid, *record, cluster.latest);
    Erase(uid);
  }
}

void EngineParts::ForgetTeams() {
  selection.ForgetShapes();
  rules.ForgetPolicies();
  foreseen.Forget();
}

bool EngineParts::TakeFacts(NodeId id, NodeFacts facts) {
  NodeEntry& entry = *cluster.nodes[id];
  NodeRules own = cluster.set->RulesOf(facts.labels.Finder());
  const bool other = own != entry.state.inventory().rules;
  entry.state.SetRules(std::move(own));
  entry.state.SetMeteredPool(MeteredPoolOf(*cluster.set, facts));
  entry.state.SetFacts(std::move(facts), cluster.default_policy().hami_minor, &cluster.machines);
  entry.kind = cluster.KindOf(entry.state.inventory());
  return other;
}

void EngineParts::NotePools(Instant now) {
  for (NodeId id{0}; id < cluster.nodes.size(); ++id) {
    if (cluster.nodes[id] == nullptr) continue;
    NotePool(cluster, id, now);
    cluster.Refresh(id, now);
  }
}

bool EngineParts::TakeNamespaces(const std::shared_ptr<const PolicySet>& set,
                                 const GpuPolicy& defaults, const NamespaceMoves& moves) {
  const bool covers_all = !set->policies.empty() && !set->policies.back().namespaces;
  if (!has_policies || (!covers_all && cluster.default_policy() != defaults)) return false;
  const auto moved =
      moves.before == cluster.set ? moves.moved : MovedNamespaces(*cluster.set, *set);
  if (!moved) return false;
  const std::set<std::string> ours(moved->begin(), moved->end());
  const auto in_ours = [&ours](const auto& entry) { return ours.contains(entry.second.pod.ns); };
  const bool inhabited =
      std::ranges::any_of(*moved,
                          [this](const std::string& ns) {
                            const auto at = cluster.pods_by_name.lower_bound({{ns, ""}, PodUid()});
                            return at != cluster.pods_by_name.end() && at->first.ns == ns;
                          }) ||
      (!ours.empty() && (std::ranges::any_of(cluster.book.holdings(), in_ours) ||
                         std::ranges::any_of(cluster.book.earmarks(), in_ours) ||
                         std::ranges::any_of(claim_books.pods, [&ours](const auto& entry) {
                           return ours.contains(entry.second.request->name.ns);
                         })));
  if (inhabited) return false;
  cluster.set = set;
  cluster.book.SetNamespaces(set, *moved);
  for (const std::string& ns : *moved) rules.ForgetPolicyOf(ns);
  return true;
}

void EngineParts::PassOnJudged() {
  for (const PodUid& uid : gangs.TakeJudged(kMostJudged)) {
    if (const PodRecord* record = cluster.Find(uid)) preemptors.Note(uid, *record);
  }
}

void EngineParts::TendGangs(Instant now) {
  const bool early = !cluster.cluster_complete;
  if (early && (cluster.open_gangs.empty() || !TRANCHE_PLANTED(room_kept_before_all_is_seen)))
    return;
  std::vector<SeatingTurn> turns;
  for (const std::string& key : std::set<std::string>(cluster.open_gangs)) {
    if (gangs.LapseIfOver(key, now)) {
      releases.EvictPart(key, now);
    } else {
      gangs.NoteTurn(key, now, turns);
    }
  }
  gangs.SeatInTurn(std::move(turns), now);
  PassOnJudged();
  backfill.Tend(now);
}

void EngineParts::NoteShown(const PodUid& uid, PodRecord& record, Instant now) {
  gangs.Join(uid, record, now);
  early_nominations.Note(uid, record, now);
  early_nominations.TellNext(1, now);
}

void EngineParts::GiveUpRoom(NodeId id, WhichMachine machine, Instant now) {
  std::vector<PodUid> lost;
  for (const Holding& holding : cluster.nodes[id]->state.holdings()) {
    const bool is_lost = machine == WhichMachine::kOther || !holding.known;
    if (holding.kind == HoldingKind::kEarmark && is_lost) lost.push_back(holding.uid);
  }
  for (const PodUid& uid : lost) {
    PodRecord* record = cluster.Find(uid);
    // It went with that of another of its gang.
    if (record == nullptr || record->earmark == nullptr) continue;
    if (reclaims.of_member.contains(uid)) {
      runs.NoteRoomLost(uid, now);
    } else if (gangs.IsSeated(uid, *record)) {
      gangs.NoteSeatLost(*record, now);
    } else {
      nominations.End(uid, *record, now);
    }
  }
}

void EngineParts::NoteAsking(const std::string& scheduler) {
  if (cluster.schedulers.Note(scheduler)) preemptors.Regroup();
}

void EngineParts::Erase(const PodUid& uid) {
  team_queue.Forget(uid);
  preemptors.Forget(uid);
  awaited_nodes.Forget(uid);
  gates.Forget(uid);
  run_limits.Forget(uid);
  early_nominations.Forget(uid);
  cluster.ErasePod(uid);
}

void EngineParts::ReleaseOn(const NodeName& node, const PodUid& uid, Instant now) {
  const NodeId id = cluster.names.Find(node.str());
  if (id == kNoNode) return requeue.NoteCapRelease(uid, now);
  cluster.nodes[id]->state.Release(uid);
  cluster.Refresh(id, now);
  requeue.NoteRoom(id, now);
  requeue.NoteCapRelease(uid, now);
}

void EngineParts::DropReservation(const PodUid& uid, PodRecord& record, Instant now) {
  if (record.reserved.empty()) return;
  // Never bound there: nothing was used, however long it took to find out.
  const bool is_charged = TRANCHE_PLANTED(unbound_is_charged);
  metering.Close(uid, record, is_charged ? MeterKind::kClose : MeterKind::kVoid, now);
  const NodeName node = std::exchange(record.reserved, NodeName());
  record.writing = false;
  gangs.Recount(uid, record);
  cluster.reservations.erase({record.reserved_since, uid});
  if (cluster.placeholders.EndWait(uid))
    cluster.outbox.agents().placeholder_turns.push_back({uid, false});
  if (!record.seen) unseen.emplace_back(cluster.latest, uid);
  cluster.NotePending(uid, record);
  ReleaseOn(node, uid, now);
  // The room that was made for it stays its own.
  runs.NoteMemberReturned(uid, now);
}

}  // namespace tranche
