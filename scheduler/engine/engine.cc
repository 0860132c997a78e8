// What is told to the engine and asked of it, as steps over its parts. Pods are in pod_events.cc,
// choosing in filter.cc, binding in bind.cc, restarts in restart.cc.
#include "scheduler/engine/engine.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "scheduler/engine/parts.h"
#include "scheduler/engine/preemption/idle_work.h"
#include "scheduler/engine/selection/pool_windows.h"
#include "topology/base/check.h"
#include "topology/base/mark.h"

namespace tranche {
namespace {

// Pods that kube-scheduler is told a node for by one tick.
constexpr int kToldAtOnce = 16;

}  // namespace

Engine::Engine(EngineOptions options) : parts_(std::make_unique<EngineParts>(options)) {}
Engine::~Engine() = default;

void Engine::UpsertNode(NodeFacts node, Instant now) {
  ClusterState& cluster = parts_->cluster;
  parts_->Advance(now);
  const NodeId id = cluster.InternNode(node.name);
  const bool opens = !std::exchange(cluster.nodes[id]->unreadable, "").empty();
  PutNode(std::move(node), now);
  if (!opens) return;
  cluster.Refresh(id, now);
  parts_->requeue.NoteReopened(id, now);
}

void Engine::SetUnreadable(const NodeName& name, const std::string& why, Instant now) {
  ClusterState& cluster = parts_->cluster;
  parts_->Advance(now);
  const NodeId id = cluster.InternNode(name);
  cluster.nodes[id]->unreadable = "the Node object cannot be read: " + why;
  cluster.Refresh(id, now);
}

void Engine::PutNode(NodeFacts node, Instant now) {
  ClusterState& cluster = parts_->cluster;
  cluster.overlay.AddTo(node);
  const NodeId id = cluster.InternNode(node.name);
  NodeEntry& entry = *cluster.nodes[id];
  const bool had_devices = entry.state.present() && entry.state.inventory().has_devices();
  // Heartbeats change nothing we look at, and laying out MIG again would cost.
  if (entry.state.present() && entry.state.facts() == node) return;
  const bool same_node = entry.state.present() && entry.state.facts().uid == node.uid;
  const std::optional<Instant> lost_since = node.lost_since;
  // Gangs that were tried in vain may do now, though no room has come.
  const bool suits_others = entry.state.present() && (entry.state.facts().taints != node.taints ||
                                                      entry.state.facts().labels != node.labels);
  cluster.CountCards(entry, -1);
  entry.state.SetPlainCpu(cluster.plain_seen.On(node.name));
  const bool other_rules = parts_->TakeFacts(id, std::move(node));
  cluster.CountCards(entry, 1);
  if (!lost_since && entry.lost_since) parts_->metering.EndOutage(id, now);
  if (lost_since && !entry.lost_since) entry.lost_since = std::min(*lost_since, now);
  const bool has_devices = entry.state.inventory().has_devices();
  if (had_devices && !has_devices && same_node) entry.vanished = true;
  if (entry.vanished && has_devices) {
    TRANCHE_MARK(node_devices_came_back);
    entry.vanished = false;
    entry.stable_at = now + cluster.options.unstable_for;
    cluster.reopenings.emplace(*entry.stable_at, id);
  }
  const bool other_window = NotePool(cluster, id, now);
  const bool other_health = NoteHealth(cluster, id, now);
  const bool other_fate = NoteInterruption(cluster, id, now);
  if (other_window || other_health || other_fate || other_rules) parts_->run_limits.NoteNode(id);
  cluster.Refresh(id, now);
  if (suits_others) cluster.NoteChange();
  // Where an agent is silent for a while, its devices are expected back.
  if (!same_node || has_devices) {
    parts_->GiveUpRoom(id, same_node ? WhichMachine::kSame : WhichMachine::kOther, now);
  }
  parts_->namespaces.NoteCapUse(id);
  parts_->metering.OpenUncharged(id, now);
  parts_->requeue.NoteRoom(id, now);
}

void Engine::DeleteNode(const NodeName& name, Instant now) {
  ClusterState& cluster = parts_->cluster;
  parts_->Advance(now);
  const NodeId id = cluster.names.Find(name.str());
  if (id == kNoNode) return;
  NodeEntry& entry = *cluster.nodes[id];
  // Claims and room for pods to come do not outlive their node; allocations and reservations do, as
  // ghosts.
  std::vector<PodUid> claimed;
  for (const Holding& holding : entry.state.holdings()) {
    if (holding.kind == HoldingKind::kTentative) claimed.push_back(holding.uid);
  }
  cluster.CountCards(entry, -1);
  entry.state.SetFacts(std::nullopt, 0);
  cluster.agents.Close(name);
  entry.vanished = false;
  if (!std::exchange(entry.ill, {}).empty()) --cluster.ill_nodes;
  if (std::exchange(entry.emptying, {})) --cluster.emptied_nodes;
  entry.unreadable.clear();
  entry.stable_at.reset();
  for (const PodUid& uid : claimed) {
    if (PodRecord* record = cluster.Find(uid)) cluster.DropTentative(uid, *record, now);
  }
  // With its last holding the node itself is forgotten.
  if (cluster.nodes[id] != nullptr) parts_->GiveUpRoom(id, WhichMachine::kOther, now);
  if (cluster.nodes[id] != nullptr) cluster.Refresh(id, now);
}

// The node again, with what is said of it by others now.
void Engine::TellNode(const NodeName& name, Instant now) {
  ClusterState& cluster = parts_->cluster;
  parts_->Advance(now);
  const NodeId id = cluster.names.Find(name.str());
  if (id == kNoNode || cluster.nodes[id] == nullptr || !cluster.nodes[id]->state.present()) return;
  NodeFacts facts = cluster.nodes[id]->state.facts();
  NodeOverlay::TakeFrom(facts);
  PutNode(std::move(facts), now);
  parts_->requeue.NoteRetold(id, now);
}

void Engine::SetNodeZones(const NodeName& name, std::optional<NodeZones> zones, Instant now) {
  if (zones) {
    parts_->cluster.overlay.zones[name] = *std::move(zones);
  } else {
    parts_->cluster.overlay.zones.erase(name);
  }
  TellNode(name, now);
}

void Engine::SetNodeSlices(const NodeName& name, std::vector<SliceDevice> devices, Instant now) {
  if (devices.empty()) {
    parts_->cluster.overlay.slices.erase(name);
  } else {
    parts_->cluster.overlay.slices[name] = std::move(devices);
  }
  TellNode(name, now);
}

void Engine::SetNodeAgent(const NodeName& name, std::optional<AgentRegister> agent, Instant now) {
  if (agent) {
    TRANCHE_CHECK(agent->kind == NodeOverlay::kAgentBesideNodes);
    parts_->cluster.overlay.agents[name] = *std::move(agent);
  } else {
    parts_->cluster.overlay.agents.erase(name);
  }
  TellNode(name, now);
}

void Engine::SetDraObject(dra::Object object, Instant now) {
  parts_->Advance(now);
  const auto* const claim = std::get_if<dra::Claim>(&object);
  const std::vector<PodUid> users = claim == nullptr ? std::vector<PodUid>() : claim->reserved_for;
  parts_->claim_charges.Put(std::move(object), now);
  // Devices that are told of after the pod was.
  for (const PodUid& uid : users) parts_->run_limits.Note(uid);
}

void Engine::RemoveDraObject(const dra::ObjectRef& object, Instant now) {
  parts_->Advance(now);
  parts_->claim_charges.Remove(object, now);
}

void Engine::SetGangSize(const std::string& ns, const std::string& gang, int size, Instant now) {
  parts_->Advance(now);
  parts_->gangs.SetSize(ns + "/" + gang, size);
}

void Engine::NoteScaleUp(const PodUid& pod, Instant told, Instant now) {
  parts_->Advance(now);
  parts_->awaited_nodes.Note(pod, told, now);
}

void Engine::NoteUse(std::span<const MeasuredPod> pods, Instant now) {
  parts_->Advance(now);
  for (const MeasuredPod& pod : pods) {
    PodRecord* const record = parts_->cluster.Find(pod.uid);
    if (!pod.permille || record == nullptr || record->node.empty()) continue;
    const GpuUse after = UseAfter(record->use, pod, now);
    const bool other = !record->use || record->use->idle_since != after.idle_since;
    record->use = after;
    if (other) parts_->run_limits.Note(pod.uid);
  }
}

void Engine::SetPolicies(std::shared_ptr<const PolicySet> set, const GpuPolicy& defaults,
                         Instant now, const NamespaceMoves& moves) {
  EngineParts& parts = *parts_;
  ClusterState& cluster = parts.cluster;
  parts.Advance(now);
  if (parts.TakeNamespaces(set, defaults, moves)) return;
  parts.has_policies = true;
  const int hami_before = cluster.default_policy().hami_minor;
  const std::shared_ptr<const PolicySet> before = std::exchange(cluster.set, set);
  cluster.policies = set->policies;
  const bool covers_all = !cluster.policies.empty() && !cluster.policies.back().namespaces;
  if (!covers_all) cluster.policies.push_back(defaults);
  parts.ForgetTeams();
  cluster.book.SetPolicies(std::move(set), now);
  const bool other_pools = before->pools != cluster.set->pools;
  const bool other_rules = cluster.default_policy().hami_minor != hami_before ||
                           before->node_policies != cluster.set->node_policies;
  const bool other_meters = before->metered_pools != cluster.set->metered_pools ||
                            (other_pools && !cluster.set->metered_pools.empty());
  for (NodeId id{0}; (other_rules || other_meters) && id < cluster.nodes.size(); ++id) {
    NodeEntry* const entry = cluster.nodes[id].get();
    if (entry == nullptr || !entry->state.present()) continue;
    const std::string& pool = MeteredPoolOf(*cluster.set, entry->state.facts());
    if (!other_rules && pool == entry->state.inventory().metered_pool) continue;
    cluster.CountCards(*entry, -1);
    parts.TakeFacts(id, entry->state.facts());
    cluster.CountCards(*entry, 1);
    cluster.Refresh(id, cluster.latest);
  }
  parts.metering.Adopt(now);
  parts.claim_charges.Adopt(now);
  parts.releases.NoteShrunk(*before);
  const bool other_prices = cluster.prices.Declare(cluster.set, cluster.policies, now);
  if (other_pools || other_prices) parts.NotePools(now);
  parts.run_limits.Regroup();
  cluster.NoteChange();
  parts.preemptors.Regroup();
  // An edit is no event to kube-scheduler.
  parts.requeue.Admitted(now);
  const bool other_policies = before->policies != cluster.set->policies ||
                              before->node_policies != cluster.set->node_policies;
  if (before->classes != cluster.set->classes || other_pools || other_policies)
    parts.requeue.NoteOtherRules(now);
}

void Engine::SetNamespaceCap(NamespaceCap cap, Instant now) {
  parts_->Advance(now);
  if (!parts_->cluster.options.namespace_caps) return;
  const std::string ns = cap.ns;
  if (parts_->namespaces.caps.Set(std::move(cap))) parts_->requeue.Capped(ns, now);
}

void Engine::RemoveNamespaceCap(const NamespacedName& cap, Instant now) {
  parts_->Advance(now);
  if (parts_->namespaces.caps.Remove(cap)) parts_->requeue.Capped(cap.ns, now);
}

void Engine::SetDisruptionBudget(DisruptionBudget budget, Instant now) {
  parts_->Advance(now);
  const std::pair key(budget.ns, budget.name);
  const auto found = parts_->reclaims.disruption_budgets.find(key);
  if (found != parts_->reclaims.disruption_budgets.end() && found->second == budget) return;
  parts_->reclaims.disruption_budgets.insert_or_assign(key, std::move(budget));
  parts_->cluster.NoteChange();
}

void Engine::RemoveDisruptionBudget(const NamespacedName& budget) {
  parts_->reclaims.disruption_budgets.erase({budget.ns, budget.name});
  parts_->cluster.NoteChange();
}

void Engine::SetHeld(const NodeName& node, std::string why, Instant now) {
  ClusterState& cluster = parts_->cluster;
  parts_->Advance(now);
  const NodeId id = cluster.names.Find(node.str());
  if (id == kNoNode || cluster.nodes[id] == nullptr) return;
  NodeEntry& entry = *cluster.nodes[id];
  const bool opens = why.empty() && !entry.held.empty();
  entry.held = std::move(why);
  cluster.Refresh(id, now);
  if (opens) parts_->requeue.NoteReopened(id, now);
}

bool Engine::SetEmptied(const NodeName& node, std::optional<ReclaimRule> rule, Instant now) {
  ClusterState& cluster = parts_->cluster;
  parts_->Advance(now);
  const NodeId id = cluster.names.Find(node.str());
  if (id == kNoNode || cluster.nodes[id] == nullptr) return false;
  NodeEntry& entry = *cluster.nodes[id];
  const bool goes_on = entry.emptying && rule == entry.emptying->rule;
  if (!goes_on) {
    // Later on it may be what left before that used the budget up.
    const bool blocked =
        rule && std::ranges::any_of(entry.state.holdings(), [&](const Holding& holding) {
          const PodRecord* record = cluster.Find(holding.uid);
          return record != nullptr && parts_->guards.IsProtected(*record);
        });
    if (blocked) return false;
    cluster.emptied_nodes +=
        static_cast<int64_t>(rule.has_value()) - static_cast<int64_t>(entry.emptying.has_value());
    entry.emptying = rule ? std::optional(NodeEmptying{*rule, now}) : std::nullopt;
  }
  // What is borrowed may be other work by now.
  if (rule) cluster.book.RefreshMarks();
  parts_->run_limits.NoteNode(id);
  return true;
}

void Engine::TakeLearned(const ScorerMemory& learned, std::span<const PodUid> counted) {
  ClusterState& cluster = parts_->cluster;
  for (const PodUid& uid : counted) {
    const auto found = cluster.pods.find(uid);
    if (found != cluster.pods.end()) found->second.counted = true;
  }
  cluster.scorer.Take(learned);
}

bool Engine::Learn() { return parts_->cluster.scorer.Work(); }

Effects& Engine::effects() {
  ClusterState& cluster = parts_->cluster;
  AgentWork& work = cluster.outbox.agents();
  const auto move_to_end = [](auto&& from, auto& to) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  move_to_end(cluster.agents.TakeTurns(), work.turns);
  move_to_end(std::exchange(work.placeholder_turns, {}), work.turns);
  move_to_end(cluster.placeholders.books().TakeEnds(), work.placeholder_ends);
  for (BookFault& fault : cluster.book.TakeFaults()) cluster.outbox.Tell(std::move(fault));
  return cluster.outbox.effects();
}

std::optional<Instant> Engine::Tick(Instant now) {
  EngineParts& parts = *parts_;
  parts.Advance(now);
  parts.ForgetOldest();
  std::optional<Instant> next;
  const auto sooner = [&next](std::optional<Instant> due) {
    if (due) next = next ? std::min(*next, *due) : due;
  };
  const ClusterState& cluster = parts.cluster;
  if (!cluster.tentative_ends.empty()) sooner(std::get<0>(cluster.tentative_ends.front()));
  if (!cluster.reopenings.empty()) sooner(cluster.reopenings.begin()->first);
  sooner(parts.team_queue.NextWake());
  parts.runs.Tend(now);
  parts.run_limits.Tend(now);
  parts.TendGangs(now);
  parts.gates.Tend(now);
  parts.claim_pods.Tend(now);
  parts.requeue.Tend(now);
  parts.early_nominations.Tend(now);
  parts.early_nominations.TellNext(kToldAtOnce, now);
  for (const auto& due :
       {cluster.book.NextChange(now), parts.runs.Due(now), parts.preemptors.DueAt(now),
        parts.releases.DueAt(now), parts.run_limits.Due(), parts.gangs.Due(now),
        cluster.agents.Due(), parts.claim_pods.Due(), parts.requeue.Due(),
        parts.early_nominations.Due()}) {
    sooner(due);
  }
  return next;
}

void Engine::PlanSlice(PlanWalk& walk, Instant now) {
  EngineParts& parts = *parts_;
  parts.Advance(now);
  if (walk.uid) return parts.planner.Step(walk, now);
  parts.runs.Tend(now);
  if (const std::optional<PlanOutcome> outcome = parts.releases.Plan(now)) return walk.End(outcome);
  walk.uid = parts.preemptors.Next(now);
  if (!walk.uid) return walk.End(std::nullopt);
  parts.planner.Step(walk, now);
}

std::optional<PlanOutcome> Engine::PlanNext(Instant now) {
  PlanWalk walk;
  while (!walk.done()) PlanSlice(walk, now);
  return walk.outcome;
}

bool Engine::ReachSlice(Instant now) {
  parts_->Advance(now);
  return parts_->nominal_reach.GoOn(now);
}

void Engine::SettleEviction(const std::string& name, const PodUid& uid, EvictionOutcome outcome,
                            std::optional<Millis> retry_after, Instant now) {
  parts_->Advance(now);
  parts_->runs.Settle(name, uid, outcome, retry_after, now);
}

std::vector<PreemptNode> Engine::Preempt(const PodRequest& request,
                                         std::span<const PreemptNode> candidates, Instant now) {
  parts_->Advance(now);
  const PodRecord* record = parts_->cluster.Find(request.uid);
  // It has its node, or a bind to it is under way: nobody has to go for it.
  if (record != nullptr && !record->Place().empty()) return {};
  return parts_->preempt_answer.Of(request, candidates, now);
}

GateSet Engine::GatesFor(const PodRequest& request, Instant now) {
  parts_->Advance(now);
  return parts_->gates.For(request, now);
}

ClaimForecast Engine::ForecastClaims(const PodRequest& request, const dra::PodClaims& claims,
                                     Instant now) {
  parts_->Advance(now);
  return parts_->claim_pods.Forecast(request, claims, now);
}

}  // namespace tranche
