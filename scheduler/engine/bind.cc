// Binding: the one place where a pod gets devices for good.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/engine/impl.h"
#include "scheduler/index/charge_of.h"
#include "topology/base/mark.h"

namespace tranche {
namespace {

// The plan is to refuse; false, for the step that found out.
bool Refuse(BindPlan& plan, Reason reason, std::string detail) {
  plan.kind = BindPlan::Kind::kRefused;
  plan.reason = reason;
  plan.detail = std::move(detail);
  return false;
}

// Are all of its devices cards that a keeper has told of?
bool IsTold(const Allocation& allocation) {
  return std::ranges::all_of(allocation.containers, [](const ContainerDevices& container) {
    return std::ranges::all_of(container.devices, &Device::slot);
  });
}

}  // namespace

bool Engine::Knows(const PodUid& uid) const {
  return impl_->pods.contains(uid) || impl_->IsPlain(uid);
}

BindPlan Engine::Bind(const PodName& pod, const PodUid& uid, const NodeName& node, Instant now) {
  Impl& impl = *impl_;
  impl.Advance(now);
  BindPlan plan;
  plan.pod = pod;
  plan.uid = uid;
  plan.node = node;
  PodRecord* record = impl.Find(uid);
  const NodeId id = impl.names.Find(node.str());
  if (!impl.NeedsDevices(record, id, plan)) return plan;
  if (record->reserved.empty()) {
    const RequestContext context = impl.ContextOf(*record->request);
    if (!impl.MayBind(context, *record, id, plan, now)) return plan;
    if (!impl.Reserve(context, *record, id, plan, now)) return plan;
  } else {
    // The last answer was lost: the same devices again, until it is known how that ended.
    TRANCHE_MARK(bind_again_after_lost_answer);
    plan.allocation = *impl.nodes[id]->state.Find(uid)->allocation;
  }
  impl.PlanWrite(*record, id, plan, now);
  return plan;
}

bool Engine::Impl::NeedsDevices(const PodRecord* record, NodeId id, BindPlan& plan) {
  if (record == nullptr && IsPlain(plan.uid)) {
    plan.kind = BindPlan::Kind::kWrite;
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
  if (!record->reserved.empty() && record->reserved != plan.node) {
    return Refuse(
        plan, Reason::kPodElsewhere,
        fmt::format("expected no bind under way, found one to {}", record->reserved.str()));
  }
  if (record->writing) {
    plan.kind = BindPlan::Kind::kInFlight;
    return false;
  }
  if (id == kNoNode) return Refuse(plan, Reason::kUnknownNode, plan.node.str());
  if (record->reserved.empty() && DraDesk(*this).IsServed(plan.uid, id) &&
      DraDesk(*this).HasOnlyDraGpus(id)) {
    // Its devices are in the claim that kube-scheduler has made for it.
    TRANCHE_MARK(bind_devices_in_claim);
    plan.kind = BindPlan::Kind::kWrite;
    plan.asks_gpu = false;
    return false;
  }
  return true;
}

bool Engine::Impl::MayBind(const RequestContext& context, const PodRecord& record, NodeId id,
                           BindPlan& plan, Instant now) {
  const Reason reason = context.whole != Reason::kNone ? context.whole : hot[id].closed;
  if (reason != Reason::kNone) return Refuse(plan, reason, "");
  const GangTurn turn = TakeTurn(plan.uid, record, now);
  if (turn.reason != Reason::kNone) return Refuse(plan, turn.reason, DescribeGang(record));
  if (!turn.only.empty() && turn.only != plan.node) {
    return Refuse(plan, Reason::kGangElsewhere, DescribeGang(record));
  }
  if (record.earmark == nullptr && IsHeldFrom(*record.request, id, now)) {
    TRANCHE_MARK(bind_held_for_gang);
    return Refuse(plan, Reason::kHeldForGang, gangs.hold.gang);
  }
  return true;
}

bool Engine::Impl::Reserve(const RequestContext& context, PodRecord& record, NodeId id,
                           BindPlan& plan, Instant now) {
  const PodRequest& request = *record.request;
  const bool seated = IsSeated(plan.uid, record);
  DropClaim(plan.uid, record, now);
  ScopedRemoval lift(*this, plan.uid, now, SharesWith(plan.uid));
  if (nodes[id] == nullptr) return Refuse(plan, Reason::kUnknownNode, plan.node.str());
  NodeEntry& entry = *nodes[id];
  const Reason reason = PickDevices(context, entry, picks);
  if (reason != Reason::kNone) {
    return Refuse(plan, reason, DescribeMisfit(entry, request, *context.policy, reason, now));
  }
  // Of the devices that fit it takes those that were kept for it: others nearby may be counted on
  // by plans under way.
  if (const Earmark* kept = lift.earmark();
      kept != nullptr && (seated || IsReserved(plan.uid, plan.node))) {
    std::string problem;
    auto devices = FromAllocation(entry.state.inventory(), request, kept->allocation, problem);
    if (devices) picks = *std::move(devices);
  }
  Admission admission;
  if (!AdmitPicks(context, record, id, admission, plan, now)) return false;
  Holding holding;
  holding.uid = plan.uid;
  holding.kind = HoldingKind::kReservation;
  holding.request = record.request;
  holding.allocation = ToAllocation(entry.state.inventory(), request, picks);
  holding.allocation->epoch = options.epoch;
  if (context.standing.leaf != kNoQuota) {
    holding.allocation->leaf = book.tree().name(context.standing.leaf);
  }
  lift.Discard();
  if (request.follows_keeper && entry.state.inventory().keepers) placeholders.Wait(plan.uid);
  entry.state.Hold(std::move(holding));
  record.reserved = plan.node;
  record.reserved_since = now;
  reservations.emplace(now, plan.uid);
  contenders.erase(plan.uid);
  pending.erase(plan.uid);
  Refresh(id, now);
  NoteCapUse(id);
  Open(plan.uid, record, id, now, admission.demoted, false);
  record.within_nominal = context.metered && !admission.borrows && !admission.demoted;
  NoteGangProgress(record, now);
  // With what a keeper has told already.
  plan.allocation = *entry.state.Find(plan.uid)->allocation;
  return true;
}

bool Engine::Impl::AdmitPicks(const RequestContext& context, PodRecord& record, NodeId id,
                              Admission& admission, BindPlan& plan, Instant now) {
  if (context.capped && !caps.Allows(plan.uid, plan.pod.ns, AmountOf(picks))) {
    record.last_reason = Reason::kNamespaceQuota;
    return Refuse(plan, Reason::kNamespaceQuota,
                  caps.Describe(plan.uid, plan.pod.ns, AmountOf(picks)));
  }
  if (!context.metered) return true;
  // Filter's word is old by now: others may have taken what the team had left.
  const std::vector<ModelCharge> parts =
      ChargeOfPicks(nodes[id]->state.inventory(), *record.request, picks);
  const Reason reason = Admit(context, parts, now, admission);
  if (reason == Reason::kNone || context.standing.mode == QuotaMode::kObserve) return true;
  record.asked = parts;
  record.last_reason = reason;
  record.eligible_at = admission.eligible_at;
  contenders.insert(plan.uid);
  return Refuse(plan, reason, book.Explain(context.standing, admission, parts, now));
}

void Engine::Impl::PlanWrite(PodRecord& record, NodeId id, BindPlan& plan, Instant now) {
  record.writing = true;
  const Inventory& inventory = nodes[id]->state.inventory();
  plan.kind = BindPlan::Kind::kWrite;
  if (CallsAgent(inventory.agent, *record.request)) {
    plan.agent = inventory.agent;
    plan.agent_minor = inventory.agent_minor;
    plan.lock = NeedsNodeLock(inventory.agent, inventory.agent_minor);
  }
  plan.memory_unit = inventory.memory_unit;
  for (const Card& card : inventory.cards) plan.card_memory.push_back(card.memory);
  plan.stamp = placeholders.NextStamp(now);
  if (const auto slot = SlotOf(plan.agent, *record.request)) {
    plan.turn = agents.Enter(plan.node, *slot, plan.uid, now);
  }
  if (inventory.keepers && record.request->follows_keeper) plan.turn = IsTold(plan.allocation);
}

void Engine::SettleBind(const PodUid& uid, const NodeName& node, BindOutcome outcome, Instant now) {
  Impl& impl = *impl_;
  impl.Advance(now);
  if (impl.IsPlain(uid)) return;
  PodRecord* record = impl.Find(uid);
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
      impl.DropReservation(uid, *record, now);
      impl.agents.Leave(uid, now);
      // What was kept for it stays the gang's.
      if (!record->gang.empty()) impl.TakeTurn(uid, *record, now);
      return;
    case BindOutcome::kBound:
      break;
  }
  const NodeId id = impl.names.Find(node.str());
  Holding holding = *impl.nodes[id]->state.Find(uid);
  holding.kind = HoldingKind::kAllocation;
  impl.reservations.erase({record->reserved_since, uid});
  record->reserved = NodeName();
  record->node = node;
  record->seen = true;  // by the server that took the binding
  record->filtered = false;
  impl.NoteDemand(*record, now);
  impl.nodes[id]->state.Hold(std::move(holding));
  impl.Refresh(id, now);
  impl.NoteMemberPlaced(uid, node, now);
  impl.NoteGangProgress(*record, now);
}

void Engine::Impl::FollowAgent(const PodUid& uid, const PodRecord& record, const PodFacts& pod,
                               Instant now) {
  const NodeState& state = nodes[names.Find(record.node.str())]->state;
  const auto slot = SlotOf(state.inventory().agent, *record.request);
  if (slot && pod.phase == PodPhase::kPending && pod.progress == AgentProgress::kWaiting) {
    agents.NoteServing(record.node, *slot, uid, record.held_since.value_or(now), now);
  } else {
    agents.Leave(uid, now);
  }
}

void Engine::Impl::EndAgent(const PodUid& uid, const PodRecord& record, const PodFacts& pod,
                            Instant now) {
  const NodeId id = names.Find(pod.node.str());
  const bool outlives =
      id != kNoNode && nodes[id] != nullptr && OutlivesItsPod(nodes[id]->state.inventory().agent);
  if (!outlives || pod.progress != AgentProgress::kWaiting || !agents.Knows(uid)) {
    agents.Leave(uid, now);
    return;
  }
  // It stays in line until the agent is sure not to take it for the next one.
  outbox.agents().orphans.push_back(
      {record.request->name, uid, nodes[id]->state.inventory().agent});
}

std::vector<std::pair<PodUid, NodeName>> Engine::StuckReservations(Instant now, Millis age) const {
  std::vector<std::pair<PodUid, NodeName>> stuck;
  for (const auto& [since, uid] : impl_->reservations) {
    if (now - since < age) break;
    stuck.emplace_back(uid, impl_->pods.at(uid).reserved);
  }
  return stuck;
}

}  // namespace tranche
