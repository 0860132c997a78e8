// Binding: the one place where a pod gets devices for good.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/engine/impl.h"
#include "scheduler/index/charge_of.h"

namespace tranche {
namespace {

BindPlan Refuse(BindPlan plan, Reason reason, std::string detail) {
  plan.kind = BindPlan::Kind::kRefused;
  plan.reason = reason;
  plan.detail = std::move(detail);
  return plan;
}

// Are all of its devices cards that a keeper has told of?
bool IsTold(const Allocation& allocation) {
  return std::ranges::all_of(allocation.containers, [](const ContainerDevices& container) {
    return std::ranges::all_of(container.devices, &Device::slot);
  });
}

}  // namespace

int64_t Engine::Impl::NextStamp(Instant now) {
  constexpr int64_t kNanosPerMilli = 1'000'000;
  stamp = std::max(stamp + 1, now.time_since_epoch().count() * kNanosPerMilli);
  return stamp;
}

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
  if (record == nullptr && impl.IsPlain(uid)) {
    plan.kind = BindPlan::Kind::kWrite;
    return plan;
  }
  if (record == nullptr || record->terminal || record->request->name != pod) {
    return Refuse(
        std::move(plan), Reason::kPodGone,
        fmt::format("expected a live pod {} with uid {}, found none", pod.str(), uid.str()));
  }
  plan.request = record->request.get();
  plan.asks_gpu = true;
  if (!record->node.empty()) {
    if (record->node != node) {
      return Refuse(std::move(plan), Reason::kPodElsewhere,
                    fmt::format("expected an unbound pod, found it on {}", record->node.str()));
    }
    plan.kind = BindPlan::Kind::kAlreadyBound;
    return plan;
  }
  if (!record->reserved.empty() && record->reserved != node) {
    return Refuse(
        std::move(plan), Reason::kPodElsewhere,
        fmt::format("expected no bind under way, found one to {}", record->reserved.str()));
  }
  if (record->writing) {
    plan.kind = BindPlan::Kind::kInFlight;
    return plan;
  }
  const NodeId id = impl.names.Find(node.str());
  if (id == kNoNode) return Refuse(std::move(plan), Reason::kUnknownNode, node.str());
  if (record->reserved.empty() && DraDesk(impl).IsServed(uid, id) &&
      DraDesk(impl).HasOnlyDraGpus(id)) {
    // Its devices are in the claim that kube-scheduler has made for it.
    plan.kind = BindPlan::Kind::kWrite;
    plan.asks_gpu = false;
    return plan;
  }
  if (!record->reserved.empty()) {
    // The last answer was lost: the same devices again, until it is known how that ended.
    plan.allocation = *impl.nodes[id]->state.Find(uid)->allocation;
  } else {
    const PodRequest& request = *record->request;
    const Question question = impl.QuestionOf(request);
    Reason reason = question.whole != Reason::kNone ? question.whole : impl.hot[id].closed;
    if (reason != Reason::kNone) return Refuse(std::move(plan), reason, "");
    const GangTurn turn = impl.TakeTurn(uid, *record, now);
    if (turn.reason != Reason::kNone) {
      return Refuse(std::move(plan), turn.reason, impl.DescribeGang(*record));
    }
    if (!turn.only.empty() && turn.only != node) {
      return Refuse(std::move(plan), Reason::kGangElsewhere, impl.DescribeGang(*record));
    }
    if (record->earmark == nullptr && impl.IsHeldFrom(request, id, now)) {
      return Refuse(std::move(plan), Reason::kHeldForGang, impl.gangs.hold.gang);
    }
    const bool seated = impl.IsSeated(uid, *record);
    impl.DropClaim(uid, *record, now);
    Impl::Lift lift(impl, uid, now);
    if (impl.nodes[id] == nullptr) return Refuse(std::move(plan), Reason::kUnknownNode, node.str());
    NodeEntry& entry = *impl.nodes[id];
    reason = impl.PickDevices(question, entry, impl.picks);
    if (reason != Reason::kNone) {
      return Refuse(std::move(plan), reason,
                    DescribeMisfit(entry, request, *question.policy, reason, now));
    }
    // Of the devices that fit it takes those that were kept for it: others nearby may be counted on
    // by plans under way.
    if (const Earmark* kept = lift.earmark();
        kept != nullptr && (seated || impl.IsReserved(uid, node))) {
      std::string problem;
      auto devices = FromAllocation(entry.state.inventory(), request, kept->allocation, problem);
      if (devices) impl.picks = *std::move(devices);
    }
    if (question.capped && !impl.caps.Allows(uid, pod.ns, AmountOf(impl.picks))) {
      record->last_reason = Reason::kNamespaceQuota;
      return Refuse(std::move(plan), Reason::kNamespaceQuota,
                    impl.caps.Describe(uid, pod.ns, AmountOf(impl.picks)));
    }
    // Filter's word is old by now: others may have taken what the team had left.
    Admission admission;
    if (question.metered) {
      const std::vector<ModelCharge> parts =
          ChargeOfPicks(entry.state.inventory(), request, impl.picks);
      reason = impl.Admit(question, parts, now, admission);
      if (reason != Reason::kNone && question.standing.mode != QuotaMode::kObserve) {
        record->asked = parts;
        record->last_reason = reason;
        record->eligible_at = admission.eligible_at;
        impl.contenders.insert(uid);
        return Refuse(std::move(plan), reason,
                      impl.book.Explain(question.standing, admission, parts, now));
      }
    }
    Holding holding;
    holding.uid = uid;
    holding.kind = HoldingKind::kReservation;
    holding.request = record->request;
    holding.allocation = ToAllocation(entry.state.inventory(), request, impl.picks);
    holding.allocation->epoch = impl.options.epoch;
    if (question.standing.leaf != kNoQuota) {
      holding.allocation->leaf = impl.book.tree().name(question.standing.leaf);
    }
    lift.Discard();
    if (request.follows_keeper && entry.state.inventory().keepers) impl.keeper_waits.insert(uid);
    entry.state.Hold(std::move(holding));
    record->reserved = node;
    record->reserved_since = now;
    impl.reservations.emplace(now, uid);
    impl.contenders.erase(uid);
    impl.pending.erase(uid);
    impl.Refresh(id, now);
    impl.NoteCapUse(id);
    impl.Open(uid, *record, id, now, admission.demoted, false);
    record->within_nominal = question.metered && !admission.borrows && !admission.demoted;
    impl.NoteGangProgress(*record, now);
    // With what a keeper has told already.
    plan.allocation = *entry.state.Find(uid)->allocation;
  }
  record->writing = true;
  const Inventory& inventory = impl.nodes[id]->state.inventory();
  plan.kind = BindPlan::Kind::kWrite;
  if (CallsAgent(inventory.agent, *record->request)) {
    plan.agent = inventory.agent;
    plan.agent_minor = inventory.agent_minor;
    plan.lock = NeedsNodeLock(inventory.agent, inventory.agent_minor);
  }
  plan.memory_unit = inventory.memory_unit;
  for (const Card& card : inventory.cards) plan.card_memory.push_back(card.memory);
  plan.stamp = impl.NextStamp(now);
  if (const auto slot = SlotOf(plan.agent, *record->request)) {
    plan.turn = impl.agents.Enter(node, *slot, uid, now);
  }
  if (inventory.keepers && record->request->follows_keeper) plan.turn = IsTold(plan.allocation);
  return plan;
}

void Engine::SettleBind(const PodUid& uid, const NodeName& node, BindOutcome outcome, Instant now) {
  Impl& impl = *impl_;
  impl.Advance(now);
  if (impl.IsPlain(uid)) return;
  PodRecord* record = impl.Find(uid);
  // Gone, or already seen bound by the watch: the proof was faster than the answer.
  if (record == nullptr || record->reserved != node) return;
  record->writing = false;
  switch (outcome) {
    case BindOutcome::kUnknown:
      return;
    case BindOutcome::kNotBound:
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
  agent_orphans.push_back({record.request->name, uid, nodes[id]->state.inventory().agent});
}

AgentWork Engine::TakeAgentWork() {
  AgentWork work{impl_->agents.TakeTurns(), std::exchange(impl_->agent_orphans, {}),
                 std::exchange(impl_->keeper_orders, {}), impl_->keepers.TakeEnds()};
  work.turns.insert(work.turns.end(), std::make_move_iterator(impl_->keeper_turns.begin()),
                    std::make_move_iterator(impl_->keeper_turns.end()));
  impl_->keeper_turns.clear();
  return work;
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
