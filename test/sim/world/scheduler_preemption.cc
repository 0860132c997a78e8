// kube-scheduler's own preemption: a dry run by its own filters, the extender's word on it, and
// plain deletions.
//
// Source: kube-scheduler-extender section 3.5.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "test/sim/world/kube_scheduler.h"

namespace tranche::sim {
namespace {

using Failure = SchedulingQueue::Failure;

bool IsPreempted(const PodView& pod) {
  const Json& status = pod.stored->object().at("status");
  const auto conditions = status.find("conditions");
  if (!pod.deleting || conditions == status.end()) return false;
  return std::any_of(conditions->begin(), conditions->end(), [](const Json& condition) {
    return condition.value("reason", "") == "PreemptionByScheduler";
  });
}

// More important first.
bool Outranks(const PodViewPtr& one, const PodViewPtr& other) {
  if (one->priority != other->priority) return one->priority > other->priority;
  return one->stored->version() < other->stored->version();
}

}  // namespace

bool KubeScheduler::MayPreempt(const Attempt& attempt) const {
  const PodView& pod = *attempt.pod;
  if (pod.never_preempts) return false;
  const SchedulerCache::Node* const node = cache_.FindNode(pod.nominated);
  if (node == nullptr || attempt.unresolvable.contains(pod.nominated)) return true;
  return std::none_of(node->pods.begin(), node->pods.end(), [&](const auto& entry) {
    return entry.second->priority < pod.priority && IsPreempted(*entry.second);
  });
}

std::vector<KubeScheduler::Candidate> KubeScheduler::DryRun(const Attempt& attempt) const {
  std::vector<Candidate> out;
  for (const auto& [name, reason] : attempt.refused) {
    const SchedulerCache::Node* const node = cache_.FindNode(name);
    if (node == nullptr || attempt.unresolvable.contains(name)) continue;
    Amounts used = node->used;
    std::vector<PodViewPtr> lower;
    for (const auto& [uid, pod] : node->pods) {
      if (pod->priority >= attempt.pod->priority) continue;
      lower.push_back(pod);
      SubtractAmounts(used, pod->requests);
    }
    if (lower.empty() || !Lacks(*attempt.pod, *node->view, used).empty()) continue;
    std::sort(lower.begin(), lower.end(), Outranks);
    Candidate candidate{name, {}, 0};
    for (const PodViewPtr& pod : lower) {
      AddAmounts(used, pod->requests);
      if (Lacks(*attempt.pod, *node->view, used).empty()) continue;
      SubtractAmounts(used, pod->requests);
      candidate.victims.push_back(pod);
    }
    // Up to 1.37 a node that needs no victim is no candidate: only the extender stands against it.
    if (!candidate.victims.empty()) out.push_back(std::move(candidate));
  }
  return out;
}

void KubeScheduler::Preempt(const AttemptPtr& attempt) {
  if (!MayPreempt(*attempt)) return GiveUpPreemption(attempt, std::nullopt);
  std::vector<Candidate> candidates = DryRun(*attempt);
  if (candidates.empty()) return GiveUpPreemption(attempt, "");
  Json victims = Json::object();
  for (const Candidate& candidate : candidates) {
    Json pods = Json::array();
    for (const PodViewPtr& pod : candidate.victims) pods.push_back({{"UID", pod->uid}});
    victims[candidate.node] = {{"Pods", std::move(pods)},
                               {"NumPDBViolations", candidate.violations}};
  }
  static const ResourceType* const kType = FindResource("pods");
  const PodViewPtr newest = cache_.Pod(attempt->pod->uid);
  const PodView& shown = newest == nullptr ? *attempt->pod : *newest;
  std::string body = "{\"Pod\":" + BareText(*shown.stored, *kType) +
                     ",\"NodeNameToVictims\":null,\"NodeNameToMetaVictims\":" + victims.dump() +
                     "}";
  Ask("preempt", *attempt->pod, std::move(body),
      [this, attempt, candidates = std::move(candidates)](const Json& answer) mutable {
        Preempted(attempt, std::move(candidates), answer);
      });
}

void KubeScheduler::Preempted(const AttemptPtr& attempt, std::vector<Candidate> candidates,
                              const Json& answer) {
  const auto map = answer.is_object() ? answer.find("NodeNameToMetaVictims") : answer.end();
  if (!answer.is_object() || map == answer.end()) {
    return GiveUpPreemption(attempt, std::nullopt);
  }
  candidates.clear();
  for (auto it = map->begin(); map->is_object() && it != map->end(); ++it) {
    const SchedulerCache::Node* const node = cache_.FindNode(it.key());
    Candidate candidate{it.key(), {}, it->value("NumPDBViolations", int64_t{0})};
    const Json pods = it->value("Pods", Json::array());
    for (const Json& pod : pods) {
      const std::string uid = pod.value("UID", "");
      const auto found = node == nullptr ? std::map<std::string, PodViewPtr>::const_iterator{}
                                         : node->pods.find(uid);
      // A victim it does not know makes the whole call fail, and so does an empty list.
      if (node == nullptr || found == node->pods.end()) {
        return GiveUpPreemption(attempt, std::nullopt);
      }
      candidate.victims.push_back(found->second);
    }
    if (candidate.victims.empty()) return GiveUpPreemption(attempt, std::nullopt);
    candidates.push_back(std::move(candidate));
  }
  if (candidates.empty()) return GiveUpPreemption(attempt, std::nullopt);
  const auto cost = [](const Candidate& one) {
    int64_t sum = 0;
    for (const PodViewPtr& pod : one.victims) sum += pod->priority;
    return std::tuple(one.violations, one.victims.front()->priority, sum, one.victims.size());
  };
  const auto best = std::min_element(
      candidates.begin(), candidates.end(),
      [&](const Candidate& one, const Candidate& other) { return cost(one) < cost(other); });
  Execute(attempt, *best);
}

void KubeScheduler::Execute(const AttemptPtr& attempt, const Candidate& chosen) {
  for (const PodViewPtr& victim : chosen.victims) {
    if (victim->deleting || victim->node.empty()) continue;
    Write mark{loop_.NameOf(actor_), "PATCH", {FindResource("pods")}, ""};
    mark.path.ns = victim->stored->ns();
    mark.path.name = victim->stored->name();
    Write end = mark;
    mark.path.subresource = "status";
    mark.content_type = "application/strategic-merge-patch+json";
    mark.body = {{"metadata", {{"uid", victim->uid}}},
                 {"status",
                  {{"conditions", Json::array({{{"type", "DisruptionTarget"},
                                                {"status", "True"},
                                                {"reason", "PreemptionByScheduler"}}})}}}};
    end.method = "DELETE";
    end.body = {
        {"kind", "DeleteOptions"}, {"apiVersion", "v1"}, {"preconditions", {{"uid", victim->uid}}}};
    api_.Do(actor_, std::move(mark),
            [this, end = std::move(end)](const Answer&) { api_.Do(actor_, end); });
  }
  GiveUpPreemption(attempt, chosen.node);
}

// Ends the attempt: it failed, and `nominated` is where it may come later.
void KubeScheduler::GiveUpPreemption(const AttemptPtr& attempt,
                                     const std::optional<std::string>& nominated) {
  const PodViewPtr now = cache_.Pod(attempt->pod->uid);
  if (now != nullptr && now->node.empty()) {
    SayWaiting(*now, "Unschedulable", FitMessage(*attempt, cache_.nodes().size()), nominated);
    if (claims_ != nullptr && (!nominated || nominated->empty())) claims_->PostFilter(*now);
    queue_.Failed(now->uid, attempt->by_extender ? Failure::kExtender : Failure::kFit, loop_.now());
  } else {
    queue_.Remove(attempt->pod->uid);
  }
  busy_ = false;
  Pump();
}

}  // namespace tranche::sim
