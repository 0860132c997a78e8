// Evictions and the disruption budgets that stand in their way, and nominations.
//
// Source: kube-client-protocol section 12.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "policy/disruption_budget.h"
#include "scheduler/embedded/answers.h"
#include "scheduler/embedded/cluster_impl.h"
#include "scheduler/embedded/kinds.h"
#include "scheduler/embedded/object_edits.h"
#include "topology/base/check.h"

namespace tranche::embedded {
namespace {

// Pods that serve nobody yet or any more, as far as budgets go.
bool SkipsBudgets(const PodFacts& pod) {
  return pod.phase == PodPhase::kPending || pod.phase == PodPhase::kSucceeded ||
         pod.phase == PodPhase::kFailed || pod.terminating;
}

}  // namespace

WriteResult Cluster::State::CheckPod(const PodName& pod, const PodUid& uid) const {
  const ObjectKey key = KeyOf(pod);
  const StoredObject* stored = store.Find(key);
  if (stored == nullptr) return NotFound(key);
  if (stored->uid == uid.str()) return Done(200);
  return Rejected(
      409, fmt::format("expected {} with uid {}, found uid {}", key.str(), uid.str(), stored->uid));
}

void Cluster::State::DeriveBudget(const ManifestObject& object, JsonPatch& patch) {
  derived.erase(object.key);
  if (DerivedBudget::IsStated(object.element)) return;
  absl::StatusOr<DerivedBudget> budget = DerivedBudget::Read(object.element);
  TRANCHE_CHECK(budget.ok());  // ReadManifest refuses others
  for (const ObjectKey& key : store.Keys(kPodKind, object.key.ns)) {
    wire::Element element;
    const absl::StatusOr<PodFacts> pod = ReadPod(*store.Find(key), element);
    if (pod.ok()) budget->See(*pod, StatedLabels(element));
  }
  patch.Set({"status"}, budget->TakeStatus().value_or("{}"));
  derived.emplace(object.key, *std::move(budget));
}

void Cluster::State::FollowPod(const PodFacts& pod, wire::Element element) {
  if (derived.empty()) return;
  const Labels labels = StatedLabels(element);
  for (auto& [key, budget] : derived) {
    if (key.ns == pod.request.name.ns) budget.See(pod, labels);
  }
}

void Cluster::State::SettleBudgets() {
  for (auto& [key, budget] : derived) {
    std::optional<std::string> status = budget.TakeStatus();
    if (!status) continue;
    JsonPatch patch;
    patch.Set({"status"}, *std::move(status));
    SaveBudget(key, patch);
  }
  SettlePolicyObjects();
}

void Cluster::State::SaveBudget(const ObjectKey& key, JsonPatch& patch) {
  const StoredObject& stored = *store.Find(key);
  Save(key, stored, ElementOf(stored), patch);
  PushPolicyObject(key, *store.Find(key));
}

WriteResult Cluster::State::ChargeBudget(const PodName& pod, const Labels& labels, Instant now) {
  std::vector<std::pair<ObjectKey, DisruptionBudget>> covering;
  for (ObjectKey& key : store.Keys(kDisruptionBudgetKind, pod.ns)) {
    absl::StatusOr<DisruptionBudget> budget = DecodeDisruptionBudget(store.Find(key)->text);
    TRANCHE_CHECK(budget.ok());
    if (budget->selector && budget->selector->Matches(labels)) {
      covering.emplace_back(std::move(key), *std::move(budget));
    }
  }
  if (covering.empty()) return Done(201);
  if (covering.size() > 1) {
    return Rejected(500, fmt::format("expected at most one budget over pod {}, found {} and {}",
                                     pod.str(), covering[0].first.str(), covering[1].first.str()));
  }
  const auto& [key, budget] = covering.front();
  if (budget.allowed == 0) {
    return Rejected(429, fmt::format("{} allows no eviction of pod {} now", key.str(), pod.str()));
  }
  // One that is derived follows the pod by itself.
  if (derived.contains(key)) return Done(201);
  JsonPatch patch;
  patch.Set({"status", "disruptionsAllowed"}, fmt::format("{}", budget.allowed - 1));
  patch.SetText({"status", "disruptedPods", pod.name}, wire::FormatTime(now));
  SaveBudget(key, patch);
  return Done(201);
}

WriteResult Cluster::State::TryEvict(const EvictionWrite& write) {
  WriteResult result = CheckPod(write.pod, write.uid);
  if (result.kind != WriteResult::Kind::kDone) return result;
  const ObjectKey key = KeyOf(write.pod);
  const Instant now = clock.Now();
  wire::Element element;
  const absl::StatusOr<PodFacts> pod = ReadPod(*store.Find(key), element);
  if (!pod.ok()) return Rejected(422, std::string(pod.status().message()));
  if (!SkipsBudgets(*pod)) {
    result = ChargeBudget(write.pod, StatedLabels(element), now);
    if (result.kind != WriteResult::Kind::kDone) return result;
  }
  std::optional<int64_t> grace;
  if (write.grace) {
    const int64_t seconds = std::chrono::ceil<std::chrono::seconds>(*write.grace).count();
    grace = std::clamp<int64_t>(seconds, 0, kMaxGraceSeconds);
  }
  const wire::ConditionText evicted{"DisruptionTarget", true, "EvictionByEvictionAPI",
                                    "Eviction API: evicting", now};
  DeletePod(key, grace, evicted, now);
  return Done(201);
}

void Cluster::Evict(EvictionWrite write, std::function<void(EvictionResult)> done) {
  impl_->Do(
      [&](State& state) {
        return EvictionResult{state.TryEvict(write), std::nullopt};
      },
      std::move(done));
}

void Cluster::Nominate(PodName pod, PodUid uid, NodeName node,
                       std::function<void(WriteResult)> done) {
  const auto nominate = [&node](wire::Element /*pod*/, JsonPatch& patch) {
    patch.SetText({"status", "nominatedNodeName"}, node.str());
    return true;
  };
  impl_->Do([&](State& state) { return state.TryChangePod(pod, uid, nominate); }, std::move(done));
}

}  // namespace tranche::embedded
