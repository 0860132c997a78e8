// An engine that takes devices back, and a cluster that does as it is told.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "test/unit/scheduler/engine/engine_quota_fixture.h"

namespace tranche {

class EngineReclaimTest : public EngineQuotaTest {
 protected:
  // Pods run from the moment they are bound, and may be evicted.
  void Run(const PodRequest& request, const std::string& node, const std::string& owner = "",
           std::optional<Instant> checkpoint = std::nullopt) {
    ASSERT_TRUE(Place(request, node)) << request.name.str();
    PodFacts pod = BoundFacts(request, node);
    pod.running_at = now_;
    pod.evictable = true;
    pod.owner = owner;
    pod.checkpointed_at = checkpoint;
    pod.labels = std::make_shared<const Labels>(Labels{{"app", request.name.name}});
    running_[request.uid] = pod;
    engine_.UpsertPod(pod, now_);
  }
  void Checkpoint(const PodRequest& request, Instant at) {
    PodFacts& pod = running_.at(request.uid);
    pod.checkpointed_at = at;
    engine_.UpsertPod(pod, now_);
  }

  // Plans until there is nothing to plan; what was asked for is kept in evictions_.
  std::string Plan() {
    std::string outcomes;
    while (const auto outcome = engine_.PlanNext(now_)) {
      static constexpr const char* kNames[] = {"plan", "fits", "impossible", "blocked",
                                               "unresolved"};
      outcomes +=
          (outcomes.empty() ? "" : " ") + std::string(kNames[static_cast<int>(outcome->result)]);
      Collect();
    }
    Collect();
    return outcomes;
  }
  void Collect() {
    ReclaimWork work = std::exchange(engine_.effects().reclaims, {});
    for (EvictionOrder& order : work.evictions) evictions_.push_back(std::move(order));
    for (Nomination& nomination : work.nominations) {
      nominated_[nomination.pod.name] = nomination.node.str();
    }
  }
  // The API server takes the next eviction that was asked for; the pod's name.
  std::string Evict(EvictionOutcome outcome = EvictionOutcome::kAccepted,
                    Millis grace = std::chrono::seconds(30)) {
    Collect();
    if (evictions_.empty()) return "nobody";
    const EvictionOrder order = evictions_.front();
    evictions_.erase(evictions_.begin());
    if (outcome == EvictionOutcome::kAccepted) {
      PodFacts& pod = running_.at(order.uid);
      pod.terminating = true;
      pod.deletion_at = now_ + grace;
      engine_.UpsertPod(pod, now_);
    }
    engine_.SettleEviction(order.reclaim, order.uid, outcome, std::nullopt, now_);
    Collect();
    return order.pod.name;
  }
  // Everything that is asked for, in order.
  std::string EvictAll() {
    std::string names;
    for (std::string name = Evict(); name != "nobody"; name = Evict()) {
      names += (names.empty() ? "" : " ") + name;
    }
    return names;
  }
  void Leave(const PodRequest& request) {
    running_.erase(request.uid);
    engine_.DeletePod(request.uid, now_);
    Collect();
  }
  // "R1 Evicting 1/2 for b1 from a1 a2"
  std::vector<std::string> Reclaims() {
    std::vector<std::string> texts;
    for (const Reclaim& reclaim : engine_.Reclaims()) {
      std::string text = fmt::format("{} {}{} {}/{} for", ReclaimRuleName(reclaim.rule),
                                     ReclaimPhaseName(reclaim.phase),
                                     reclaim.reason.empty() ? "" : "(" + reclaim.reason + ")",
                                     reclaim.gone(), reclaim.victims.size());
      for (const ReclaimMember& member : reclaim.members) text += " " + member.pod.name;
      if (reclaim.members.empty()) text += " " + reclaim.source;
      text += " from";
      for (const ReclaimVictim& victim : reclaim.victims) text += " " + victim.pod.name;
      texts.push_back(std::move(text));
    }
    return texts;
  }

  std::map<PodUid, PodFacts> running_;
  std::vector<EvictionOrder> evictions_;
  std::map<std::string, std::string> nominated_;  // pod -> node
};

}  // namespace tranche
