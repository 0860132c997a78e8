#include "scheduler/host/policy_intake.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/protocol/resource_quota.h"
#include "scheduler/wire/records/reclaim_json.h"

namespace tranche {
namespace {

// Specs that people write, for whom the others are.
bool IsOurs(const std::string& kind) {
  constexpr std::string_view kKinds[] = {"GPUQuota",  "GPUBudget", "GPUClass",
                                         "GPUPolicy", "GPUPool",   "GPUPrice"};
  return std::ranges::find(kKinds, kind) != std::end(kKinds);
}

}  // namespace

PolicyIntake::PolicyIntake(EngineHost& engine, GpuPolicy defaults, LedgerFile ledger,
                           UseReading use)
    : engine_(engine),
      defaults_(std::move(defaults)),
      ledger_(std::move(ledger)),
      store_(defaults_, use) {
  Settled();
}

void PolicyIntake::TakeDisruptionBudget(const PolicyObject& object) {
  absl::StatusOr<DisruptionBudget> budget = DecodeDisruptionBudget(object.json);
  {
    const absl::MutexLock lock(&mutex_);
    const bool known = !disruption_budgets_.insert({object.ns, object.name}).second;
    if (!budget.ok()) {
      spdlog::warn("PodDisruptionBudget {}/{} cannot be read, {}: {}", object.ns, object.name,
                   known ? "its last version stays" : "it is not known whom it protects",
                   std::string(budget.status().message()));
      if (known) return;
      budget = DisruptionBudget{object.ns, object.name, std::nullopt, 0, {}};
    }
  }
  engine_.With(EngineCaller::kPolicies, [&budget](Engine& engine, Instant now) {
    engine.SetDisruptionBudget(*std::move(budget), now);
  });
}

void PolicyIntake::TakeResourceQuota(const PolicyObject& object) {
  absl::StatusOr<wire::QuotaReading> reading = wire::DecodeResourceQuota(object.json);
  const std::string problem = reading.ok() ? reading->problem : reading.status().ToString();
  if (!problem.empty()) spdlog::warn("ResourceQuota {}/{}: {}", object.ns, object.name, problem);
  if (!reading.ok()) return;
  engine_.With(EngineCaller::kPolicies, [&reading](Engine& engine, Instant now) {
    engine.SetNamespaceCap(std::move(reading->cap), now);
  });
}

// Ours: read once, at start.
void PolicyIntake::TakeReclaim(const PolicyObject& object) {
  if (restored_) return;
  absl::StatusOr<Reclaim> reclaim = wire::DecodeReclaim(object.json);
  if (!reclaim.ok()) {
    spdlog::warn("GPUReclaim {} cannot be read and is left alone: {}", object.name,
                 std::string(reclaim.status().message()));
    return;
  }
  // Somebody may have edited it.
  if (reclaim->finished() && !reclaim->finished_at) reclaim->finished_at = reclaim->planned_at;
  found_reclaims_[object.name] = *std::move(reclaim);
}

std::string PolicyIntake::TakeChanged(const PolicyObject& object) {
  if (object.kind == "GPUReclaim") {
    TakeReclaim(object);
    return "";
  }
  if (object.kind == "GPUQuotaView") {
    if (objects_.views.insert({object.ns, object.name}).second) shown_ = nullptr;
    return "";
  }
  if (object.kind == "Namespace") objects_.namespaces.insert(object.name);
  // Ours as well: how its status stood before this process wrote it.
  if (!restored_) recovery_.Upsert(object);
  std::pair<std::string, int64_t>& known = objects_.objects[{object.kind, object.name}];
  const std::pair<std::string, int64_t> told{object.uid, object.generation};
  // Most news are of statuses, our own among them.
  const bool is_new = std::exchange(known, told) != told;
  if (is_new) shown_ = nullptr;
  store_.Upsert(object.kind, object.name, object.json);
  if (!is_new || !IsOurs(object.kind)) return "";
  return trail_.Changed(object.kind, object.name, object.json);
}

void PolicyIntake::Changed(PolicyObject object) {
  if (object.kind == "PodDisruptionBudget") return TakeDisruptionBudget(object);
  if (object.kind == "ResourceQuota") return TakeResourceQuota(object);
  std::string said;
  {
    const absl::MutexLock lock(&mutex_);
    said = TakeChanged(object);
  }
  Tell(object.kind, object.name, said);
}

void PolicyIntake::Reviewed(const std::string& kind, const std::string& name,
                            const std::string& spec, const std::string& user) {
  const absl::MutexLock lock(&mutex_);
  trail_.Reviewed(kind, name, spec, user);
}

void PolicyIntake::Tell(const std::string& kind, const std::string& name, const std::string& said) {
  if (said.empty() || !restored_) return;
  // Without the lock: the engine's effects may ask for objects.
  spdlog::info("edited: {}", said);
  const Instant now =
      engine_.With(EngineCaller::kPolicies, [](Engine&, Instant moment) { return moment; });
  engine_.recent().NoteEdit(kind == "GPUQuota" ? name : "", said, now);
}

void PolicyIntake::Gone(const std::string& kind, const NamespacedName& object) {
  if (kind == "PodDisruptionBudget") {
    {
      const absl::MutexLock lock(&mutex_);
      disruption_budgets_.erase(object);
    }
    engine_.With(EngineCaller::kPolicies,
                 [&](Engine& engine, Instant) { engine.RemoveDisruptionBudget(object); });
    return;
  }
  if (kind == "ResourceQuota") {
    engine_.With(EngineCaller::kPolicies,
                 [&](Engine& engine, Instant now) { engine.RemoveNamespaceCap(object, now); });
    return;
  }
  std::string said;
  {
    const absl::MutexLock lock(&mutex_);
    said = TakeGone(kind, object);
  }
  Tell(kind, object.name, said);
}

std::string PolicyIntake::TakeGone(const std::string& kind, const NamespacedName& object) {
  if (kind == "GPUReclaim") {
    found_reclaims_.erase(object.name);
    return "";
  }
  shown_ = nullptr;
  if (kind == "GPUQuotaView") {
    objects_.views.erase(object);
    return "";
  }
  if (kind == "Namespace") objects_.namespaces.erase(object.name);
  objects_.objects.erase({kind, object.name});
  recovery_.Remove(kind, object.name);
  store_.Remove(kind, object.name);
  return trail_.Gone(kind, object.name);
}

void PolicyIntake::Settled() {
  std::shared_ptr<const PolicySet> set;
  NamespaceMoves moves;
  {
    const absl::MutexLock lock(&mutex_);
    const bool first = objects_.version == 0;
    if (!store_.Commit() && !first) return;
    ++objects_.version;
    shown_ = nullptr;
    objects_.findings = store_.findings();
    for (const Finding& finding : objects_.findings) {
      if (finding.type == "Ready" && !finding.status) {
        spdlog::warn("{} {} is not in force as written: {}: {}", finding.kind, finding.name,
                     finding.reason, finding.message);
      }
    }
    invalid_objects_ = store_.invalid();
    set = std::make_shared<const PolicySet>(store_.set());
    moves.before = std::exchange(last_, set);
    const bool has_default = !set->policies.empty() && !set->policies.back().namespaces;
    const GpuPolicy& governing = has_default ? set->policies.back() : defaults_;
    preemption_in_tree_ = governing.actor == PreemptionActor::kScheduler;
    fleet_rules_ = {governing.mig, governing.mig_window, governing.consolidate,
                    governing.deletion_cost, governing.provisioning};
  }
  // Thousands of namespaces are compared where nobody waits for it.
  if (moves.before != nullptr) moves.moved = MovedNamespaces(*moves.before, *set);
  // Without the lock: carrying out the effects may ask for objects.
  engine_.With(EngineCaller::kPolicies, [&](Engine& engine, Instant now) {
    engine.SetPolicies(std::move(set), defaults_, now, moves);
  });
}

std::shared_ptr<const PolicyIntake::Objects> PolicyIntake::objects() const {
  const absl::MutexLock lock(&mutex_);
  if (shown_ == nullptr) shown_ = std::make_shared<const Objects>(objects_);
  return shown_;
}

PolicyIntake::FleetRules PolicyIntake::fleet_rules() const {
  const absl::MutexLock lock(&mutex_);
  return fleet_rules_;
}

PolicyStore PolicyIntake::Store() const {
  const absl::MutexLock lock(&mutex_);
  return store_;
}

std::string PolicyIntake::UidOf(const std::string& kind, const std::string& name) const {
  const absl::MutexLock lock(&mutex_);
  const auto found = objects_.objects.find({kind, name});
  return found == objects_.objects.end() ? std::string() : found->second.first;
}

FoundHistory PolicyIntake::found_history() const {
  const absl::MutexLock lock(&mutex_);
  return found_history_;
}

// Which checkpoints there are is known now, which of them count as well. Restored are those of
// budgets at once; the ledger follows, after what the end of the restart has it write.
FoundHistory PolicyIntake::JudgeHistory() {
  const auto [budgets, now] =
      engine_.With(EngineCaller::kPolicies, [](Engine& engine, Instant when) {
        std::vector<GpuBudget> specs;
        for (BudgetReport& report : engine.Budgets(when)) specs.push_back(std::move(report.spec));
        return std::pair(std::move(specs), when);
      });
  const absl::MutexLock lock(&mutex_);
  found_history_ = recovery_.Judge(budgets, ledger_, now);
  for (const Finding& finding : found_history_.findings) {
    if (finding.status) continue;
    spdlog::warn("{} {}: its checkpoint of the ledger is not believed: {}", finding.kind,
                 finding.name, finding.message);
  }
  for (const RestoredUse& use : found_history_.uses) {
    const bool of_budget = use.of == RestoredUse::Of::kBudget;
    spdlog::warn(
        "the ledger {} lacks what ledger {} had at entry {}: {} {}{} stood at {} GPU-hours at {} "
        "by its checkpoint, which is taken over; what ran between then and the loss is not known",
        ledger_.id.empty() ? "(none)" : ledger_.id, use.mark.ledger, use.mark.entry,
        of_budget ? "budget" : "leaf", use.name, of_budget ? "" : " on " + use.use.model,
        FormatGpuHours(Larger(of_budget ? UsedOf(use.stand) : use.use.time)),
        wire::FormatTime(use.mark.at));
  }
  return found_history_;
}

bool PolicyIntake::FinishRestore() {
  if (restored_.exchange(true)) return false;
  std::vector<Reclaim> reclaims;
  {
    const absl::MutexLock lock(&mutex_);
    for (auto& [name, reclaim] : found_reclaims_) reclaims.push_back(std::move(reclaim));
    found_reclaims_.clear();
  }
  engine_.FinishRestore(std::move(reclaims), JudgeHistory().uses);
  return true;
}

}  // namespace tranche
