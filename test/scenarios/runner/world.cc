#include "test/scenarios/runner/world.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "test/builders/policies.h"
#include "test/scenarios/runner/world_facts.h"

namespace tranche::scenario {
namespace {

// Advance looks at the engine's timers at most this often; each look costs microseconds.
constexpr Millis kLeastStep{1'000};
// What a victim is given to end, as Kubernetes does by default.
constexpr Millis kGrace{30'000};

}  // namespace

World::World() : engine_(std::make_unique<Engine>(EngineOptions())) {
  SetPolicies();
  engine_->FinishRestore(now_);
}

// ---- facts

Result World::DeclareNode(const std::string& name, Options& options) {
  const NodeFacts node = NodeOf(name, options);
  if (const Result problem = options.Done()) return problem;
  nodes_[name] = node;
  engine_->UpsertNode(node, now_);
  Collect();
  return std::nullopt;
}

Result World::DeclarePod(const std::string& name, Options& options) {
  const PodFacts facts = PodOf(name, options);
  if (const Result problem = options.Done()) return problem;
  if (!pods_.emplace(NameOf(facts.request.name), Pod{facts, false, {}, false}).second) {
    return Problem{"a pod of another name", name + ", which is there already"};
  }
  return std::nullopt;
}

Result World::DeclareQuota(const std::string& name, Options& options) {
  quotas_[name] = QuotaOf(name, options);
  SetPolicies();
  return options.Done();
}

Result World::DeclareBudget(const std::string& name, Options& options) {
  budgets_[name] = BudgetOf(name, options);
  SetPolicies();
  return options.Done();
}

Result World::DeclareClass(const std::string& name, Options& options) {
  classes_[name] = ClassOf(name, options);
  SetPolicies();
  return options.Done();
}

Result World::DeclarePolicy(Options& options) {
  policy_ = PolicyOf(options);
  SetPolicies();
  return options.Done();
}

Result World::DeclareDisruptionBudget(const std::string& name, Options& options) {
  disruption_budgets_[name] = DisruptionBudgetOf(name, options);
  engine_->SetDisruptionBudget(disruption_budgets_[name], now_);
  return options.Done();
}

Result World::Remove(const std::string& kind, const std::string& name) {
  if (kind == "node") {
    if (Result problem = NoNode(name)) return problem;
    nodes_.erase(name);
    engine_->DeleteNode(NodeName(name), now_);
  } else if (kind == "quota" && quotas_.erase(name) > 0) {
    SetPolicies();
  } else if (kind == "budget" && budgets_.erase(name) > 0) {
    SetPolicies();
  } else if (kind == "pdb" && disruption_budgets_.contains(name)) {
    engine_->RemoveDisruptionBudget({disruption_budgets_.at(name).ns, name});
    disruption_budgets_.erase(name);
  } else {
    return Problem{"a node, quota, budget or pdb that is there", kind + " " + name};
  }
  Collect();
  return std::nullopt;
}

void World::SetPolicies() {
  test::Objects objects;
  for (const auto& [name, quota] : quotas_) objects.quotas.push_back(quota);
  for (const auto& [name, budget] : budgets_) objects.budgets.push_back(budget);
  for (const auto& [name, made] : classes_) objects.classes.push_back(made);
  engine_->SetPolicies(test::Declare(std::move(objects)), policy_, now_);
  Collect();
}

// ---- steps

World::Pod* World::FindPod(const std::string& name, Result& problem) {
  const auto found = pods_.find(name);
  if (found != pods_.end()) return &found->second;
  problem = Problem{"a pod: " + NamesOf(pods_), name};
  return nullptr;
}

Result World::NoNode(const std::string& name) const {
  if (nodes_.contains(name)) return std::nullopt;
  return Problem{"a node: " + NamesOf(nodes_), name};
}

void World::Show(Pod& pod) {
  pod.shown = true;
  engine_->UpsertPod(pod.facts, now_);
  Collect();
}

// Takes out all that the engine wants done: what is news to a scenario is kept.
void World::Collect() {
  journal_.Take(*engine_);
  Effects effects = std::exchange(engine_->effects(), {});
  for (const auto& [name, uid] : effects.requeue) requeued_.insert(NameOf(name));
  for (EvictionOrder& order : effects.reclaims.evictions) evictions_.push_back(std::move(order));
  for (const Nomination& nomination : effects.reclaims.nominations) {
    nominated_[NameOf(nomination.pod)] = nomination.node.str();
  }
}

Result World::Arrive(const std::string& name) {
  Result problem;
  Pod* const pod = FindPod(name, problem);
  if (pod != nullptr) Show(*pod);
  return problem;
}

Result World::Filter(const std::string& name) {
  Result problem;
  Pod* const pod = FindPod(name, problem);
  if (pod == nullptr) return problem;
  if (!pod->shown) Show(*pod);
  std::vector<std::string_view> candidates;
  for (const auto& [node, facts] : nodes_) candidates.push_back(node);
  FilterAnswer answer;
  engine_->Filter(pod->facts.request, candidates, now_, answer);
  pod->asked = true;
  pod->fit = Fit{answer.untouched, {}, {}, CodeOf(answer.reason)};
  for (const uint32_t chosen : answer.chosen) pod->fit.nodes.emplace_back(candidates[chosen]);
  for (const auto& [position, reason] : answer.refused) {
    pod->fit.refused[std::string(candidates[position])] = CodeOf(reason);
  }
  Collect();
  return std::nullopt;
}

Result World::Bind(const std::string& name, const std::string& node, BindingAnswer answer,
                   std::string& outcome) {
  Result problem;
  Pod* const pod = FindPod(name, problem);
  if (pod == nullptr) return problem;
  if ((problem = NoNode(node))) return problem;
  if (!pod->shown) Show(*pod);
  const PodRequest& request = pod->facts.request;
  const BindPlan plan = engine_->Bind(request.name, request.uid, NodeName(node), now_);
  switch (plan.kind) {
    case BindPlan::Kind::kAlreadyBound:
      outcome = "already-bound";
      break;
    case BindPlan::Kind::kInFlight:
      outcome = "in-flight";
      break;
    case BindPlan::Kind::kRefused:
      outcome = CodeOf(plan.reason);
      break;
    case BindPlan::Kind::kWrite: {
      outcome = "written";
      if (answer == BindingAnswer::kLate) break;
      const BindOutcome told = answer == BindingAnswer::kOk     ? BindOutcome::kBound
                               : answer == BindingAnswer::kLost ? BindOutcome::kUnknown
                                                                : BindOutcome::kNotBound;
      engine_->SettleBind(request.uid, NodeName(node), told, now_);
      if (answer == BindingAnswer::kOk) Confirm(*pod, NodeName(node), plan.allocation);
      break;
    }
  }
  Collect();
  return std::nullopt;
}

// The watch shows the pod bound, and it runs at once.
void World::Confirm(Pod& pod, const NodeName& node, const Allocation& allocation) {
  pod.facts.node = node;
  pod.facts.phase = PodPhase::kRunning;
  pod.facts.bound_at = pod.facts.running_at = now_;
  if (!allocation.containers.empty()) pod.facts.allocation = allocation;
  if (nodes_.at(node.str()).agent) pod.facts.progress = AgentProgress::kServed;
  Show(pod);
}

Result World::Appear(const std::string& name, const std::string& node, bool unreadable) {
  Result problem;
  Pod* const pod = FindPod(name, problem);
  if (pod == nullptr) return problem;
  if ((problem = NoNode(node))) return problem;
  if (unreadable) pod->facts.allocation_problem = "expected JSON, in tranche.dev/allocation";
  Confirm(*pod, NodeName(node), Allocation());
  return std::nullopt;
}

Result World::Delete(const std::string& name) {
  Result problem;
  Pod* const pod = FindPod(name, problem);
  if (pod == nullptr) return problem;
  pod->facts.terminating = true;
  pod->facts.deletion_at = now_ + kGrace;
  Show(*pod);
  return std::nullopt;
}

Result World::Gone(const std::string& name) {
  Result problem;
  Pod* const pod = FindPod(name, problem);
  if (pod == nullptr) return problem;
  engine_->DeletePod(pod->facts.request.uid, now_);
  pods_.erase(name);
  Collect();
  return std::nullopt;
}

Result World::Finish(const std::string& name) {
  Result problem;
  Pod* const pod = FindPod(name, problem);
  if (pod == nullptr) return problem;
  pod->facts.phase = PodPhase::kSucceeded;
  pod->facts.finished_at = now_;
  Show(*pod);
  return std::nullopt;
}

void World::Advance(Millis span) {
  const Instant until = now_ + span;
  for (std::optional<Instant> next = engine_->Tick(now_); next && *next < until;
       next = engine_->Tick(now_)) {
    now_ = std::min(std::max(*next, now_ + kLeastStep), until);
    if (now_ == until) break;
    Collect();
  }
  now_ = until;
  engine_->Tick(now_);
  Collect();
}

void World::Plan() {
  while (engine_->PlanNext(now_)) Collect();
  Collect();
}

Result World::Evict(const std::string& outcome) {
  static const std::map<std::string, EvictionOutcome> outcomes = {
      {"accepted", EvictionOutcome::kAccepted},
      {"blocked", EvictionOutcome::kBlocked},
      {"failed", EvictionOutcome::kFailed},
      {"forbidden", EvictionOutcome::kForbidden}};
  const auto told = outcomes.find(outcome);
  if (told == outcomes.end()) return Problem{NamesOf(outcomes), outcome};
  if (evictions_.empty()) return Problem{"an eviction that was asked for", "none"};
  const EvictionOrder order = evictions_.front();
  evictions_.erase(evictions_.begin());
  if (told->second == EvictionOutcome::kAccepted) {
    if (Result problem = Delete(NameOf(order.pod))) return problem;
  }
  engine_->SettleEviction(order.reclaim, order.uid, told->second, std::nullopt, now_);
  Collect();
  return std::nullopt;
}

void World::Settle() {
  std::vector<std::string> leaving;
  while (!evictions_.empty()) {
    leaving.push_back(NameOf(evictions_.front().pod));
    if (Evict("accepted")) break;
  }
  for (const std::string& pod : leaving) Gone(pod);
}

void World::Restart() {
  Collect();
  const std::vector<Reclaim> reclaims = engine_->Reclaims();
  engine_ = std::make_unique<Engine>(EngineOptions());
  evictions_.clear();
  nominated_.clear();
  engine_->Restore(journal_.History(now_));
  SetPolicies();
  for (const auto& [name, node] : nodes_) engine_->UpsertNode(node, now_);
  for (const auto& [name, budget] : disruption_budgets_) {
    engine_->SetDisruptionBudget(budget, now_);
  }
  for (const auto& [name, pod] : pods_) {
    if (pod.shown) engine_->UpsertPod(pod.facts, now_);
  }
  engine_->RestoreReclaims(reclaims);
  engine_->FinishRestore(now_);
  Collect();
}

}  // namespace tranche::scenario
