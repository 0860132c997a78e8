#include "scheduler/engine/preemption/preempt_answer.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "scheduler/engine/selection/pool_windows.h"

namespace tranche {
namespace {

// One region of a case, and only the units that hold devices there and nowhere else: more
// kube-scheduler cannot evict on a node.
class NodeCase : public ReclaimGeometry {
 public:
  NodeCase(ReclaimCase& whole, std::size_t region) : whole_(whole), region_(region) {
    problem_ = whole.problem();
    problem_.regions = {whole.problem().regions[region]};
    std::vector<VictimUnit> units;
    for (std::size_t i = 0; i < problem_.units.size(); ++i) {
      VictimUnit& unit = problem_.units[i];
      const bool here = std::ranges::all_of(
          unit.pods, [region](const VictimPod& pod) { return pod.region == region; });
      if (!here) continue;
      for (VictimPod& pod : unit.pods) pod.region = 0;
      units.push_back(std::move(unit));
      numbers_.push_back(static_cast<int>(i));
    }
    problem_.units = std::move(units);
  }

  bool Fits(std::size_t, std::span<const int> gone) override {
    gone_.clear();
    for (const int unit : gone) gone_.push_back(numbers_[static_cast<std::size_t>(unit)]);
    return whole_.Fits(region_, gone_);
  }
  const ReclaimProblem& problem() const { return problem_; }
  std::vector<PodUid> PodsOf(const std::vector<int>& units) const {
    std::vector<PodUid> pods;
    for (const int unit : units) {
      const auto& of = whole_.pods_of(numbers_[static_cast<std::size_t>(unit)]);
      pods.insert(pods.end(), of.begin(), of.end());
    }
    return pods;
  }

 private:
  ReclaimCase& whole_;
  const std::size_t region_;
  ReclaimProblem problem_;
  std::vector<int> numbers_;
  std::vector<int> gone_;
};

}  // namespace

std::vector<PreemptNode> PreemptAnswer::Of(const PodRequest& request,
                                           std::span<const PreemptNode> candidates, Instant now) {
  std::vector<PreemptNode> answer;
  const RequestContext context = rules_.ContextOf(request);
  // A plan of ours is under way, or nobody is to be evicted.
  if (context.whole != Reason::kNone || reclaims_.of_member.contains(request.uid) ||
      context.policy->actor == PreemptionActor::kOff ||
      context.membership.mode == QuotaMode::kObserve) {
    return answer;
  }
  const bool ruled =
      context.membership.leaf != kNoQuota && context.membership.mode == QuotaMode::kEnforce;
  std::vector<NodeId> ids;
  for (const PreemptNode& candidate : candidates) {
    const NodeId id = cluster_.names.Find(candidate.node);
    if (id != kNoNode && ShutTo(cluster_, context, id, now) == Reason::kNone) ids.push_back(id);
  }
  Preemptor preemptor;
  preemptor.members.push_back(std::make_shared<const PodRequest>(request));
  preemptor.context = context;
  preemptor.context.request = preemptor.members.front().get();
  preemptor.gang = GangKeyOf(request);
  // Kube-scheduler alone would not ask again when the time is over.
  const bool plans = context.policy->actor == PreemptionActor::kPlanner;
  if (plans && awaited_.HoldOf(preemptor, now)) return answer;
  std::optional<ReclaimCase> whole;
  if (ruled) {
    whole.emplace(parts_, preemptor, now,
                  ReclaimCase::Options{.only = &ids, .one_node_units = true});
  }
  for (const PreemptNode& candidate : candidates) {
    const NodeId id = cluster_.names.Find(candidate.node);
    if (id == kNoNode || ShutTo(cluster_, context, id, now) != Reason::kNone) continue;
    std::optional<std::vector<PodUid>> needed;
    if (ruled) {
      const auto region = whole->RegionOf(cluster_.names.name(id));
      if (!region) continue;
      NodeCase node_case(*whole, *region);
      const ReclaimAnswer found = PlanReclaim(node_case.problem(), node_case);
      if (found.result == ReclaimAnswer::Result::kFits) needed.emplace();
      if (found.plan) needed = node_case.PodsOf(found.plan->victims);
    } else {
      needed = NeededOf(context, id, candidate.victims);
    }
    if (!needed) continue;
    PreemptNode kept{candidate.node, InOrder(candidate.victims, *needed), 0};
    if (kept.victims.empty()) continue;
    kept.pdb_violations = CountViolations(kept.victims) + PlainViolations(candidate, kept.victims);
    answer.push_back(std::move(kept));
  }
  return answer;
}

// Without a quota priorities alone decide, and they are kube-scheduler's to compare. What quotas
// own, and what is never preempted, stays.
std::optional<std::vector<PodUid>> PreemptAnswer::NeededOf(const RequestContext& context, NodeId id,
                                                           std::span<const PodUid> victims) {
  std::vector<PodUid> kept;
  for (const PodUid& uid : victims) {
    const PodRecord* record = cluster_.Find(uid);
    if (record == nullptr || record->node != cluster_.names.name(id)) continue;
    const GpuClass* gpu_class = cluster_.set->ClassOf(record->request->priority_class);
    const bool never = gpu_class != nullptr && gpu_class->preemptible == Preemptible::kNever;
    const HeldWork* work = cluster_.book.Find(uid);
    const bool owned = work != nullptr && cluster_.set->QuotaNamed(work->leaf) != nullptr;
    if (!never && !owned && record->traits.evictable) kept.push_back(uid);
  }
  const NodeState& state = cluster_.nodes[id]->state;
  const auto fits_without = [&](std::span<const PodUid> gone) {
    const Load load = state.LoadWithout([&](const PodUid& uid) {
      return uid == context.request->uid || std::ranges::find(gone, uid) != gone.end();
    });
    Worth worth;
    return cluster_.scorer.Evaluate(RoomOf(state, load), *context.request, *context.policy, picks_,
                                    worth, context.sharing) == Reason::kNone;
  };
  if (!fits_without(kept)) return std::nullopt;
  // The most important are given back first, as kube-scheduler does.
  std::ranges::stable_sort(kept, std::greater<>(), [&](const PodUid& uid) {
    return cluster_.Find(uid)->request->priority;
  });
  for (std::size_t i = 0; i < kept.size();) {
    std::vector<PodUid> without = kept;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    if (fits_without(without)) {
      kept = std::move(without);
    } else {
      ++i;
    }
  }
  return kept;
}

// kube-scheduler's own count: pods evicted beyond what their budgets allow.
int64_t PreemptAnswer::CountViolations(std::span<const PodUid> victims) const {
  std::map<std::pair<std::string, std::string>, int64_t> left;
  int64_t violations = 0;
  for (const PodUid& uid : victims) {
    const auto found = cluster_.pods.find(uid);
    if (found == cluster_.pods.end() || found->second.traits.labels == nullptr) continue;
    const PodName& name = found->second.request->name;
    bool violates = false;
    for (auto at = reclaims_.disruption_budgets.lower_bound({name.ns, ""});
         at != reclaims_.disruption_budgets.end() && at->first.first == name.ns; ++at) {
      const DisruptionBudget& budget = at->second;
      if (!budget.Covers(name.ns, name.name, *found->second.traits.labels)) continue;
      if (budget.disrupted.contains(name.name)) continue;
      int64_t& allowed = left.try_emplace(at->first, budget.allowed).first->second;
      violates |= --allowed < 0;
    }
    violations += violates;
  }
  return violations;
}

// Of pods without GPUs nothing is known but what kube-scheduler counted: what it counted beyond the
// pods we know.
int64_t PreemptAnswer::PlainViolations(const PreemptNode& candidate,
                                       std::span<const PodUid> victims) const {
  const auto plain = std::ranges::count_if(
      victims, [this](const PodUid& uid) { return !cluster_.pods.contains(uid); });
  const int64_t beyond = candidate.pdb_violations - CountViolations(candidate.victims);
  return std::clamp<int64_t>(beyond, 0, plain);
}

// The pods that are needed by falling priority, since kube-scheduler compares nodes by the first;
// behind each the pods without GPUs that it was named before, whose priority we do not know.
std::vector<PodUid> PreemptAnswer::InOrder(std::span<const PodUid> named,
                                           std::span<const PodUid> needed) {
  struct Group {
    int64_t priority = INT64_MAX;
    std::vector<PodUid> pods;
  };
  std::vector<Group> groups(1);
  const auto add = [&](const PodUid& uid) {
    groups.push_back({cluster_.Find(uid)->request->priority, {uid}});
  };
  for (const PodUid& uid : named) {
    if (std::ranges::find(needed, uid) != needed.end()) add(uid);
    const bool plain_pod = cluster_.Find(uid) == nullptr && cluster_.IsPlain(uid);
    if (plain_pod) groups.back().pods.push_back(uid);
  }
  for (const PodUid& uid : needed) {
    if (std::ranges::find(named, uid) == named.end()) add(uid);
  }
  std::ranges::stable_sort(groups, std::greater<>(), &Group::priority);
  std::vector<PodUid> order;
  for (const Group& group : groups) {
    order.insert(order.end(), group.pods.begin(), group.pods.end());
  }
  return order;
}

}  // namespace tranche
