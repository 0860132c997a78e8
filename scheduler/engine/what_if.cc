// What would happen to pods that do not exist: placed one after another, with room made for them
// where the rules allow it, and everything taken back.
#include <fmt/format.h>

#include <utility>

#include "scheduler/engine/reclaim_case.h"
#include "scheduler/index/charge_of.h"

namespace tranche {

// Places one more pod of a what-if and takes its devices for those that come after it.
void Engine::Impl::Try(Trial& trial, const PodRequest& request, WhatIfResult& result, Instant now) {
  result.name = request.name;
  if (!request.asks_gpu()) {
    result.fits = true;
    return;
  }
  const RequestContext context = ContextOf(request);
  result.reason = context.whole;
  if (result.reason != Reason::kNone) {
    result.detail = request.refusal ? request.refusal->detail : "";
    return;
  }
  NodeId id = kNoNode;
  Picks chosen;
  Select(context, trial.nodes, 1, now, nullptr);
  if (!best.empty()) {
    id = best.front().node;
    result.reason = PickDevices(context, *nodes[id], chosen);
    result.fits = result.reason == Reason::kNone;
  } else {
    result.reason = NearestReason();
    result.detail = DescribeQuotaAnswers(context, now);
    if (result.detail.empty()) result.detail = "asks " + DescribeRequest(request);
    const auto seat = SeatByEvicting(trial, request, result, now);
    if (!seat) return;
    id = seat->first;
    chosen = seat->second;
    result.fits = true;
    result.reason = Reason::kNone;
    result.detail.clear();
  }
  const Inventory& inventory = nodes[id]->state.inventory();
  result.node = names.name(id);
  result.allocation = ToAllocation(inventory, request, chosen);
  HeldWork work = WorkOf(request, context.standing, now);
  work.parts = ChargeOfPicks(inventory, request, chosen);
  result.allocation->leaf = work.leaf;
  Holding holding;
  // No UID of the cluster looks like this, so nothing real is touched.
  holding.uid = PodUid(fmt::format("what-if/{}", trial.placed.size()));
  holding.kind = HoldingKind::kReservation;
  holding.request = std::make_shared<const PodRequest>(request);
  holding.allocation = result.allocation;
  trial.placed.emplace_back(id, holding.uid);
  book.Hold(holding.uid, std::move(work));
  nodes[id]->state.Hold(std::move(holding));
  Refresh(id, now);
}

std::optional<std::pair<NodeId, Picks>> Engine::Impl::SeatByEvicting(Trial& trial,
                                                                     const PodRequest& request,
                                                                     WhatIfResult& result,
                                                                     Instant now) {
  Aggressor aggressor;
  aggressor.members.push_back(std::make_shared<const PodRequest>(request));
  aggressor.context = ContextOf(*aggressor.members.front());
  if (!MayPlan(aggressor.context)) return std::nullopt;
  if (!request.gang.empty()) aggressor.gang = request.name.ns + "/" + request.gang;
  ReclaimCase reclaim_case(*this, aggressor, now, {.gone = &trial.gone});
  const ReclaimAnswer answer = PlanReclaim(reclaim_case.problem(), reclaim_case);
  if (!answer.plan || answer.plan->cost.pdb_violations > 0) {
    if (const auto block = FindBlock(aggressor, now)) {
      result.detail += "; " + block->detail;
    }
    return std::nullopt;
  }
  result.victims = VictimsOf(reclaim_case, *answer.plan, now);
  result.rule = answer.plan->rule;
  result.cost = answer.plan->cost;
  result.optimal = answer.plan->optimal;
  for (const ReclaimVictim& victim : result.victims) trial.gone.insert(victim.uid);
  const auto seats = reclaim_case.Seats(answer.plan->region, answer.plan->victims);
  return std::pair(seats.front().node, seats.front().picks);
}

std::vector<WhatIfResult> Engine::WhatIf(std::span<const PodRequest> pods, Instant now) {
  Impl& impl = *impl_;
  impl.Advance(now);
  Impl::Trial trial;
  for (const NodeId id : impl.names.ascending()) {
    if (impl.nodes[id] != nullptr && impl.nodes[id]->state.present()) trial.nodes.push_back(id);
  }
  const uint64_t version = impl.version();
  std::vector<WhatIfResult> results;
  for (const PodRequest& request : pods) impl.Try(trial, request, results.emplace_back(), now);
  for (const auto& [id, uid] : trial.placed) {
    impl.book.Release(uid, now);
    impl.nodes[id]->state.Release(uid);
    impl.Refresh(id, now);
  }
  impl.RestoreVersion(version);
  return results;
}

// What is under way for the pod or against it, or what stands in the way of a plan.
void Engine::Impl::ExplainReclaim(const PodUid& uid, Explanation& explanation) {
  for (const auto* index : {&reclaims.of_member, &reclaims.of_victim}) {
    const auto found = index->find(uid);
    if (found != index->end()) explanation.reclaim = reclaims.all.at(found->second);
  }
  if (explanation.reclaim) return;
  explanation.blocked = BlockOf(uid);
}

std::optional<PlanBlock> Engine::Impl::BlockOf(const PodUid& uid) const {
  const auto key = reclaims.hungry_key.find(uid);
  if (key == reclaims.hungry_key.end()) return std::nullopt;
  const auto memory = reclaims.memory.find(key->second);
  return memory == reclaims.memory.end() ? std::nullopt : memory->second.block;
}

}  // namespace tranche
