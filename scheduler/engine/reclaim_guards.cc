// Which pods may be victims: what the cluster shows of pods, and the guards over running work
// (quota-model section 4, "Against thrash").
#include <algorithm>
#include <utility>

#include "scheduler/engine/reclaim_case.h"

namespace tranche {
namespace {

// A terminating pod that outlives its grace by this much is no longer expected to leave.
constexpr Millis kLeaveSlack{60'000};

std::string OwnerOf(const PodFacts& pod) {
  const PodRequest& request = pod.request;
  if (!request.gang.empty()) return request.name.ns + "/gang/" + request.gang;
  if (!pod.owner.empty()) return pod.owner;
  return request.name.str();
}

}  // namespace

void Engine::Impl::NoteTraits(const PodUid& uid, PodRecord& record, const PodFacts& pod,
                              Instant now) {
  PodTraits& traits = record.traits;
  traits.owner = OwnerOf(pod);
  traits.labels = pod.labels;
  traits.checkpoint = pod.checkpointed_at;
  traits.evictable = pod.evictable;
  traits.gated = pod.gated;
  traits.gates = pod.our_gates;
  traits.foreign_gates = pod.foreign_gates;
  traits.unschedulable = pod.unschedulable;
  if (pod.terminating && !traits.leaves_at) {
    traits.leaves_at = pod.deletion_at.value_or(now);
    NoteChange();
    NoteVictimLeaving(uid, now);
    if (!record.node.empty()) KeepNominated(record.node, now);
  }
  if (record.node.empty() && pod.node.empty() && !pod.terminating) {
    if (reclaims.returning.contains(traits.owner)) reclaims.returned.insert(uid);
    NoteHungry(uid, record);
    NoteNominated(uid, record, pod.nominated, now);
  }
}

bool Engine::Impl::IsLeaving(const PodRecord& record, Instant now) const {
  return record.traits.leaves_at && now <= *record.traits.leaves_at + kLeaveSlack;
}

void Engine::SetDisruptionBudget(DisruptionBudget budget, Instant now) {
  impl_->Advance(now);
  const std::pair key(budget.ns, budget.name);
  const auto found = impl_->reclaims.disruption_budgets.find(key);
  if (found != impl_->reclaims.disruption_budgets.end() && found->second == budget) return;
  impl_->reclaims.disruption_budgets.insert_or_assign(key, std::move(budget));
  impl_->NoteChange();
}

void Engine::RemoveDisruptionBudget(const std::string& ns, const std::string& name) {
  impl_->reclaims.disruption_budgets.erase({ns, name});
  impl_->NoteChange();
}

}  // namespace tranche
