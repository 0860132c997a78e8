// A cluster of a scenario: the engine, and an API server that says and does what the steps tell.
//
// The runner's adapter: together with world_facts.h the only place that knows the engine's API; all
// that goes in and comes out is text and numbers. Deterministic; one thread. Time begins at a
// midnight UTC (a Wednesday) and moves only by Advance.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "policy/spec.h"
#include "scheduler/engine/engine.h"
#include "test/property/quota_journal.h"
#include "test/scenarios/runner/words.h"

namespace tranche::scenario {

// The last answer to a pod's filter call.
struct Fit {
  bool untouched = false;                      // asks no GPU: every node passes
  std::vector<std::string> nodes;              // best first
  std::map<std::string, std::string> refused;  // node -> reason
  std::string reason;                          // nothing fits: the one closest to fitting
};

// How the API server answers a Binding that the engine wanted written.
enum class BindingAnswer : uint8_t { kOk, kLost, kLate, kRefused };

// GPUs in thousandths.
struct QuotaNumbers {
  int64_t used = 0, borrowed = 0, lent = 0, available = 0;
};
struct BudgetNumbers {
  int64_t used = 0, committed = 0, effective = 0;  // thousandths of GPU-hours, rounded down
  std::string state;
};

bool IsReason(const std::string& code);

class World {
 public:
  World();

  // ---- facts: the newest of a name holds; a pod that is there already may not be described anew
  Result DeclareNode(const std::string& name, Options& options);
  Result DeclarePod(const std::string& name, Options& options);
  Result DeclareQuota(const std::string& name, Options& options);
  Result DeclareBudget(const std::string& name, Options& options);
  Result DeclareClass(const std::string& name, Options& options);
  Result DeclarePolicy(Options& options);
  Result DeclareDisruptionBudget(const std::string& name, Options& options);
  Result Remove(const std::string& kind, const std::string& name);

  // ---- steps; Problem: no such pod or node, or the step is not possible now
  Result Arrive(const std::string& pod);
  Result Filter(const std::string& pod);
  // `outcome`: "written", "already-bound", "in-flight", or the reason of a refusal.
  Result Bind(const std::string& pod, const std::string& node, BindingAnswer answer,
              std::string& outcome);
  // The cluster shows the pod bound, by whoever did it; without a record of its devices, or with
  // one that cannot be read.
  Result Appear(const std::string& pod, const std::string& node, bool unreadable);
  Result Delete(const std::string& pod);  // sets deletionTimestamp
  Result Gone(const std::string& pod);
  Result Finish(const std::string& pod);  // Succeeded
  void Advance(Millis span);
  void Plan();
  // The next eviction that was asked for. `outcome`: "accepted", "blocked", "failed", "forbidden".
  Result Evict(const std::string& outcome);
  // Every eviction is accepted and every victim leaves.
  void Settle();
  // A new process learns everything from the cluster and the ledger.
  void Restart();

  // ---- what there is to see
  Millis now() const;  // since the beginning
  Result FindFit(const std::string& pod, Fit& fit);
  Result Ranks(const std::string& pod, std::vector<std::string>& nodes);
  // "pending", "claimed on a", "reserved on a", "bound on a".
  Result State(const std::string& pod, std::string& state);
  // "0:500", "1/3g.40gb@4": card, and milli-GPUs or instance and first memory unit.
  Result Devices(const std::string& pod, std::vector<std::string>& devices);
  Result QuotaState(const std::string& pod, std::string& state);
  Result EligibleAt(const std::string& pod, std::optional<Millis>& at);
  // Everything that explain says of the pod, as one text.
  Result Explained(const std::string& pod, std::string& text);
  // The guard that keeps preemption from helping the pod: "PDBBlocked until 1h"; "nothing".
  Result Blocked(const std::string& pod, std::string& text);
  // "R1 Evicting for wants from lent"; those that go on before those that ended.
  std::vector<std::string> Plans() const;
  std::string NominatedNode(const std::string& pod) const;  // empty: none
  // Pods to be scheduled again, since the last time this was asked; ascending.
  std::vector<std::string> TakeRequeued();
  Result Quota(const std::string& name, const std::string& model, QuotaNumbers& numbers);
  Result Budget(const std::string& name, BudgetNumbers& numbers);
  Result FreeGpus(const std::string& node, int64_t& thousandths);
  std::vector<std::string> Audit();
  std::string Books() const;

 private:
  // 2023-11-15T00:00:00Z, so that budgets by the day begin with the story.
  static constexpr Instant kBeginning{std::chrono::seconds(1'700'006'400)};

  struct Pod {
    PodFacts facts;  // as the cluster shows them
    bool shown = false;
    Fit fit;
    bool asked = false;
  };

  Pod* FindPod(const std::string& name, Result& problem);
  Result NoNode(const std::string& name) const;
  void Show(Pod& pod);
  void SetPolicies();
  void Collect();
  void Confirm(Pod& pod, const NodeName& node, const Allocation& allocation);
  // The view of a pod; nullptr and a problem where there is none.
  std::optional<PodView> View(const std::string& name, Result& problem);

  static std::string NameOf(const PodName& name);  // as scenarios write it
  static std::string CodeOf(Reason reason);
  template <typename Value>
  static std::string NamesOf(const std::map<std::string, Value>& values) {
    std::vector<std::string> names;
    for (const auto& [name, value] : values) names.push_back(name);
    return Join(names, ", ");
  }

  Instant now_ = kBeginning;
  std::unique_ptr<Engine> engine_;
  std::map<std::string, NodeFacts> nodes_;
  std::map<std::string, Pod> pods_;  // by "namespace/name"
  std::map<std::string, GpuQuota> quotas_;
  std::map<std::string, GpuBudget> budgets_;
  std::map<std::string, GpuClass> classes_;
  GpuPolicy policy_;
  std::map<std::string, DisruptionBudget> disruption_budgets_;
  Journal journal_;
  std::vector<EvictionOrder> evictions_;
  std::map<std::string, std::string> nominated_;
  std::set<std::string> requeued_;
};

}  // namespace tranche::scenario
