// Binding: the one place where a pod gets devices for good.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/engine/engine.h"
#include "scheduler/engine/parts.h"
#include "scheduler/engine/selection/pool_windows.h"
#include "scheduler/engine/views/explain_text.h"
#include "scheduler/index/charge_of.h"
#include "topology/base/mark.h"
#include "topology/base/plant.h"

namespace tranche {
namespace {

// The plan is to refuse; false, for the step that found out.
bool Refuse(BindPlan& plan, Reason reason, std::string detail) {
  plan.kind = BindPlan::Kind::kRefused;
  plan.reason = reason;
  plan.detail = std::move(detail);
  return false;
}

// Are all of its devices cards that a placeholder has told of?
bool IsTold(const Allocation& allocation) {
  return std::ranges::all_of(allocation.containers, [](const ContainerDevices& container) {
    return std::ranges::all_of(container.devices, &Device::slot);
  });
}

// Could the node, where it is not held, hold it again: just these devices?
bool HasRoomAgain(const NodeState& node, const Holding& holding) {
  std::string problem;
  const auto devices =
      FromAllocation(node.inventory(), *holding.request, *holding.allocation, problem);
  return devices && HasRoomFor(node.inventory(), node.hard(), UseOf(*holding.request, *devices));
}

// The steps of Bind; false: the plan says how it ended.
class Binding {
 public:
  explicit Binding(EngineParts& parts) : parts_(parts), cluster_(parts.cluster) {}

  bool NeedsDevices(const PodRecord* record, NodeId id, BindPlan& plan);
  bool MayBind(const RequestContext& context, const PodRecord& record, NodeId id, BindPlan& plan,
               Instant now);
  bool Reserve(const RequestContext& context, PodRecord& record, NodeId id, BindPlan& plan,
               Instant now);
  void PlanWrite(PodRecord& record, NodeId id, BindPlan& plan, Instant now);

 private:
  bool AdmitPicks(const RequestContext& context, PodRecord& record, NodeId id, Admission& admission,
                  BindPlan& plan, Instant now);

  EngineParts& parts_;
  ClusterState& cluster_;
  Picks picks_;
};

}  // namespace

bool Binding::NeedsDevices(const PodRecord* record, NodeId id, BindPlan& plan) {
  if (record == nullptr && cluster_.IsPlain(plan.uid)) {
    plan.kind = BindPlan::Kind::kWrite;
    // A copy of a pod of ours, or a forgery: beside it nobody could tell what the node has.
    plan.clears = cluster_.marked.Has(plan.uid);
    plan.allocation.epoch = cluster_.epoch;
    return false;
  }
  if (record == nullptr || record->terminal || record->request->name != plan.pod) {
    return Refuse(plan, Reason::kPodGone,
                  fmt::format("expected a live pod {} with uid {}, found none", plan.pod.str(),
                              plan.uid.str()));
  }
  plan.request = record->request.get();
  plan.asks_gpu = true;
  if (!record->node.empty()) {
    if (record->node != plan.node) {
      return Refuse(plan, Reason::kPodElsewhere,
                    fmt::format("expected an unbound pod, found it on {}", record->node.str()));
    }
    plan.kind = BindPlan::Kind::kAlreadyBound;
    return false;
  }
  const bool elsewhere = !record->reserved.empty() && record->reserved != plan.node;
  if (elsewhere && !TRANCHE_PLANTED(bind_elsewhere_while_one_is_under_way)) {
    return Refuse(
        plan, Reason::kPodElsewhere,
        fmt::format("expected no bind under way, found one to {}", record->reserved.str()));
  }
  if (record->writing && !elsewhere) {
    plan.kind = BindPlan::Kind::kInFlight;
    return false;
  }
  if (id == kNoNode) return Refuse(plan, Reason::kUnknownNode, plan.node.str());
  if (record->reserved.empty() && parts_.claim_filter.IsServed(plan.uid, id) &&
      parts_.claim_wishes.HasOnlyDraGpus(id)) {
    // Its devices are in the claim that kube-scheduler has made for it.
    TRANCHE_MARK(bind_devices_in_claim);
    plan.kind = BindPlan::Kind::kWrite;
    plan.asks_gpu = false;
    return false;
  }
  return true;
}

bool Binding::MayBind(const RequestContext& context, const PodRecord& record, NodeId id,
                      BindPlan& plan, Instant now) {
  const Reason reason =
      context.whole != Reason::kNone ? context.whole : ShutTo(cluster_, context, id, now);
  if (reason != Reason::kNone) return Refuse(plan, reason, "");
  const GangTurn turn = parts_.gangs.TakeTurn(plan.uid, record, now);
  parts_.PassOnJudged();
  if (turn.reason != Reason::kNone && !TRANCHE_PLANTED(gang_member_binds_alone))
    return Refuse(plan, turn.reason, parts_.gangs.Describe(record));
  if (!turn.only.empty() && turn.only != plan.node) {
    return Refuse(plan, Reason::kGangElsewhere, parts_.gangs.Describe(record));
  }
  const GangHold& hold = parts_.held_nodes.hold;
  if (record.earmark == nullptr && parts_.held_nodes.IsHeldFrom(*record.request, id, now) &&
      !parts_.rules.MayPassHold(parts_.rules.ContextOf(*record.request), id, hold.rank, hold.leaf,
                                now)) {
    TRANCHE_MARK(bind_held_for_gang);
    return Refuse(plan, Reason::kHeldForGang, hold.gang);
  }
  return true;
}

bool Binding::Reserve(const RequestContext& context, PodRecord& record, NodeId id, BindPlan& plan,
                      Instant now) {
  const PodRequest& request = *record.request;
  const bool seated = parts_.gangs.IsSeated(plan.uid, record);
  cluster_.DropTentative(plan.uid, record, now);
  ScopedRemoval lift(cluster_, plan.uid, now, parts_.kept.SharesWith(plan.uid));
  if (cluster_.nodes[id] == nullptr) return Refuse(plan, Reason::kUnknownNode, plan.node.str());
  NodeEntry& entry = *cluster_.nodes[id];
  const Reason reason = parts_.selection.PickDevices(context, entry, picks_);
  if (reason != Reason::kNone) {
    return Refuse(plan, reason, DescribeMisfit(entry, request, *context.policy, reason, now));
  }
  // Of the devices that fit it takes those that were kept for it: others nearby may be counted on
  // by plans under way.
  if (const Earmark* kept = lift.earmark();
      kept != nullptr && (seated || parts_.kept.IsReserved(plan.uid, plan.node))) {
    std::string problem;
    auto devices = FromAllocation(entry.state.inventory(), request, kept->allocation, problem);
    // A plan that let victims go again may have kept what they still hold.
    const bool free = devices && HasRoomFor(entry.state.inventory(), entry.state.hard(),
                                            UseOf(request, *devices));
    if (free) picks_ = *std::move(devices);
  }
  Admission admission;
  if (!AdmitPicks(context, record, id, admission, plan, now)) return false;
  Holding holding;
  holding.uid = plan.uid;
  holding.kind = HoldingKind::kReservation;
  holding.request = record.request;
  holding.allocation = ToAllocation(entry.state.inventory(), request, picks_);
  holding.allocation->epoch = cluster_.epoch;
  if (context.membership.leaf != kNoQuota) {
    holding.allocation->leaf = cluster_.book.tree().name(context.membership.leaf);
  }
  lift.Discard();
  if (request.follows_placeholder && entry.state.inventory().placeholders)
    cluster_.placeholders.Wait(plan.uid);
  entry.state.Hold(std::move(holding));
  record.reserved = plan.node;
  record.reserved_since = now;
  cluster_.reservations.emplace(now, plan.uid);
  parts_.team_queue.contenders.erase(plan.uid);
  cluster_.pending.erase(plan.uid);
  cluster_.Refresh(id, now);
  parts_.namespaces.NoteCapUse(id);
  std::string demoted_by;
  if (admission.demoted) demoted_by = cluster_.book.set().budgets[*admission.budget].uid;
  parts_.metering.Open(plan.uid, record, id, {.at = now, .demoted_by = std::move(demoted_by)});
  const bool within_nominal = context.metered && !admission.borrows && !admission.demoted;
  record.starting =
      within_nominal ? PodRecord::Starting::kWithinNominal : PodRecord::Starting::kYes;
  parts_.gangs.NoteProgress(record, now);
  // With what a placeholder has told already.
  plan.allocation = *entry.state.Find(plan.uid)->allocation;
  return true;
}

bool Binding::AdmitPicks(const RequestContext& context, PodRecord& record, NodeId id,
                         Admission& admission, BindPlan& plan, Instant now) {
  if (context.capped && !parts_.namespaces.caps.Allows(plan.uid, plan.pod.ns, AmountOf(picks_))) {
    record.last_reason = Reason::kNamespaceQuota;
    return Refuse(plan, Reason::kNamespaceQuota,
                  parts_.namespaces.caps.Describe(plan.uid, plan.pod.ns, AmountOf(picks_)));
  }
  if (!context.metered) return true;
  // Filter's word is old by now: others may have taken what the team had left.
  const std::vector<ModelCharge> parts =
      ChargeOfPicks(cluster_.nodes[id]->state.inventory(), *record.request, picks_);
  const Reason reason = parts_.rules.Admit(context, parts, now, admission);
  if (reason == Reason::kNone || context.membership.mode == QuotaMode::kObserve ||
      TRANCHE_PLANTED(quota_not_asked_at_bind)) {
    return true;
  }
  record.asked = parts;
  record.last_reason = reason;
  record.eligible_at = admission.eligible_at;
  parts_.team_queue.contenders.insert(plan.uid);
  return Refuse(plan, reason, cluster_.book.Explain(context.membership, admission, parts, now));
}

void Binding::PlanWrite(PodRecord& record, NodeId id, BindPlan& plan, Instant now) {
  record.writing = true;
  const Inventory& inventory = cluster_.nodes[id]->state.inventory();
  plan.kind = BindPlan::Kind::kWrite;
  if (CallsAgent(inventory.agent, *record.request)) {
    plan.agent = inventory.agent;
    plan.agent_minor = inventory.agent_minor;
    plan.lock = NeedsNodeLock(inventory.agent, inventory.agent_minor);
  }
  plan.memory_unit = inventory.memory_unit;
  for (const Card& card : inventory.cards) plan.card_memory.push_back(card.memory);
  plan.stamp = cluster_.placeholders.NextStamp(now);
  if (const auto slot = SlotOf(plan.agent, *record.request)) {
    plan.turn = cluster_.agents.Enter(plan.node, *slot, plan.uid, now);
  }
  if (inventory.placeholders && record.request->follows_placeholder)
    plan.turn = IsTold(plan.allocation);
}

bool Engine::Knows(const PodUid& uid) const {
  return parts_->cluster.pods.contains(uid) || parts_->cluster.IsPlain(uid);
}

BindPlan Engine::Bind(const PodName& pod, const PodUid& uid, const NodeName& node, Instant now) {
  EngineParts& parts = *parts_;
  ClusterState& cluster = parts.cluster;
  Binding binding(parts);
  parts.Advance(now);
  BindPlan plan;
  plan.pod = pod;
  plan.uid = uid;
  plan.node = node;
  PodRecord* record = cluster.Find(uid);
  const NodeId id = cluster.names.Find(node.str());
  if (!binding.NeedsDevices(record, id, plan)) return plan;
  if (record->reserved != node) {
    const RequestContext context = parts.rules.ContextOf(*record->request);
    if (!binding.MayBind(context, *record, id, plan, now)) return plan;
    if (!binding.Reserve(context, *record, id, plan, now)) return plan;
  } else {
    // The last answer was lost: the same devices again, until it is known how that ended.
    TRANCHE_MARK(bind_again_after_lost_answer);
    plan.allocation = *cluster.nodes[id]->state.Find(uid)->allocation;
  }
  binding.PlanWrite(*record, id, plan, now);
  return plan;
}

Reason Engine::RecheckReserved(const PodUid& uid, const NodeName& node, Instant now) {
  EngineParts& parts = *parts_;
  ClusterState& cluster = parts.cluster;
  parts.Advance(now);
  const PodRecord* const record = cluster.Find(uid);
  if (record == nullptr || record->reserved != node) return Reason::kNone;
  const NodeId id = cluster.names.Find(node.str());
  if (id == kNoNode || cluster.nodes[id] == nullptr) return Reason::kUnknownNode;
  NodeEntry& entry = *cluster.nodes[id];
  const Holding* const found = entry.state.Find(uid);
  if (found == nullptr || !found->allocation) return Reason::kNone;
  const RequestContext context = parts.rules.ContextOf(*record->request);
  const Reason shut = ShutTo(cluster, context, id, now);
  if (shut != Reason::kNone) return shut;
  const Holding held = *found;
  entry.state.Release(uid);
  Picks any;
  Reason reason = parts.selection.PickDevices(context, entry, any);
  if (reason == Reason::kNone && !HasRoomAgain(entry.state, held)) reason = Reason::kNoRoom;
  entry.state.Hold(held);
  return reason;
}

void Engine::SettleBind(const PodUid& uid, const NodeName& node, BindOutcome outcome, Instant now) {
  EngineParts& parts = *parts_;
  ClusterState& cluster = parts.cluster;
  parts.Advance(now);
  PodRecord* record = cluster.Find(uid);
  if (record == nullptr && cluster.IsPlain(uid)) return;
  if (cluster.plain_seen.Has(uid) && TRANCHE_PLANTED(refusal_of_a_pod_annotated_later_is_lost))
    return;
  // Gone, or already seen bound by the watch: the proof was faster than the answer.
  if (record == nullptr || record->reserved != node) {
    TRANCHE_MARK(bind_answer_after_proof);
    return;
  }
  record->writing = false;
  switch (outcome) {
    case BindOutcome::kUnknown:
      return;
    case BindOutcome::kNotBound:
      TRANCHE_MARK(bind_proven_not_bound);
      if (!TRANCHE_PLANTED(refused_bind_keeps_its_place)) parts.DropReservation(uid, *record, now);
      cluster.agents.Leave(uid, now);
      // What was kept for it stays the gang's.
      if (!record->gang.empty()) parts.gangs.TakeTurn(uid, *record, now);
      parts.PassOnJudged();
      return;
    case BindOutcome::kBound:
      break;
  }
  const NodeId id = cluster.names.Find(node.str());
  Holding holding = *cluster.nodes[id]->state.Find(uid);
  holding.kind = HoldingKind::kAllocation;
  cluster.reservations.erase({record->reserved_since, uid});
  record->reserved = NodeName();
  record->node = node;
  record->seen = true;  // by the server that took the binding
  record->filtered = false;
  parts.demand_notes.Note(*record, now);
  cluster.nodes[id]->state.Hold(std::move(holding));
  cluster.Refresh(id, now);
  parts.runs.NoteMemberPlaced(uid, node, now);
  parts.gangs.NoteProgress(*record, now);
}

std::vector<std::pair<PodUid, NodeName>> Engine::StuckReservations(Instant now, Millis age) const {
  std::vector<std::pair<PodUid, NodeName>> stuck;
  for (const auto& [since, uid] : parts_->cluster.reservations) {
    if (now - since < age) break;
    stuck.emplace_back(uid, parts_->cluster.pods.at(uid).reserved);
  }
  return stuck;
}

void Engine::SettlePlaceholder(const PodName& placeholder, const NodeName& node, Instant now) {
  ClusterState& cluster = parts_->cluster;
  parts_->Advance(now);
  cluster.placeholders.books().NotMade(placeholder, now);
  const NodeId id = cluster.names.Find(node.str());
  if (id != kNoNode && cluster.nodes[id] != nullptr) cluster.Refresh(id, now);
}

}  // namespace tranche
