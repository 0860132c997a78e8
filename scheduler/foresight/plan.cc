#include "scheduler/foresight/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "scheduler/foresight/rehearsal.h"
#include "scheduler/foresight/replica.h"

namespace tranche {
namespace {

// The longest an eviction is waited for, and how long the next step after it may take.
constexpr std::chrono::hours kLongestGrace{1};
constexpr std::chrono::seconds kAfterwards{10};
constexpr std::size_t kPodsAtOnce = 1'000;

// Those that hold more than the own of their team.
std::set<PodUid> BorrowersOf(Engine& engine) {
  std::set<PodUid> borrowers;
  PodName name;
  PodUid uid;
  for (;;) {
    const std::vector<PodView> page = engine.Pods(name, uid, kPodsAtOnce);
    for (const PodView& pod : page) {
      if (pod.quota_state && *pod.quota_state != QuotaState::kInQuota) borrowers.insert(pod.uid);
    }
    if (page.size() < kPodsAtOnce) return borrowers;
    name = page.back().name;
    uid = page.back().uid;
  }
}

Millis GraceIn(const ClusterCopy& copy) {
  Millis grace = std::chrono::seconds(30);
  for (const auto& [uid, pod] : copy.pods) {
    if (!pod.facts.node.empty()) grace = std::max(grace, pod.facts.grace);
  }
  return std::min<Millis>(grace, kLongestGrace);
}

}  // namespace

PlanAnswer PlanEdit(const ClusterCopy& copy, const PlanEdits& edits,
                    const std::function<bool()>& may_go_on) {
  const std::unique_ptr<Engine> engine = MakeReplica(copy);
  const std::set<PodUid> before = BorrowersOf(*engine);
  RehearsalRules rules;
  rules.evicted_return = false;
  rules.may_go_on = may_go_on;
  Rehearsal rehearsal(*engine, copy, std::move(rules));
  if (edits.set != nullptr) engine->SetPolicies(edits.set, edits.defaults, copy.at);
  for (const NodeFacts& node : edits.nodes) {
    engine->UpsertNode(node, copy.at);
    rehearsal.NodeCame(node);
  }
  for (const NodeName& node : edits.gone) {
    engine->DeleteNode(node, copy.at);
    rehearsal.NodeWent(node);
  }
  rehearsal.Run(copy.at + GraceIn(copy) + kAfterwards);

  PlanAnswer answer;
  answer.complete = !rehearsal.gave_up();
  const std::map<PodUid, PodName>& gone = rehearsal.evicted();
  const auto evicted = [&gone](const PodUid& uid) { return gone.contains(uid); };
  for (const auto& [uid, at] : rehearsal.starts()) {
    if (!evicted(uid)) answer.starts.push_back(copy.pods.at(uid).facts.request.name);
  }
  for (const auto& [uid, name] : gone) answer.evicted.push_back(name);
  for (const PodUid& uid : BorrowersOf(*engine)) {
    const auto pod = copy.pods.find(uid);
    if (before.contains(uid) || evicted(uid) || pod == copy.pods.end()) continue;
    answer.borrowed.push_back(pod->second.facts.request.name);
  }
  for (const auto& [uid, reason] : rehearsal.Waiting()) {
    answer.waits.push_back(copy.pods.at(uid).facts.request.name);
  }
  for (std::vector<PodName>* names :
       {&answer.starts, &answer.evicted, &answer.borrowed, &answer.waits}) {
    std::ranges::sort(*names);
  }
  return answer;
}

}  // namespace tranche
