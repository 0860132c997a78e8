// Takes in policy objects: quotas, budgets, classes and policies go to the store that judges them
// and from there to the engine; PodDisruptionBudgets and ResourceQuotas go to the engine as they
// come; GPUReclaims and checkpoints that are found at start are kept until the first complete set
// of objects is in.
//
// Thread rule: any thread. Its lock is taken before the engine's, never after.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "policy/policy_store.h"
#include "scheduler/host/checkpoint_recovery.h"
#include "scheduler/host/edit_trail.h"
#include "scheduler/host/engine_host.h"
#include "scheduler/ports/cluster_events.h"

namespace tranche {

class PolicyIntake {
 public:
  // `ledger`: the one at hand, with which found checkpoints are compared.
  PolicyIntake(EngineHost& engine, GpuPolicy defaults, LedgerFile ledger,
               UseReading use = UseReading::kOff);

  // As ClusterEvents::PolicyObjectChanged, PolicyObjectGone and PolicyObjectsSettled.
  void Changed(PolicyObject object);
  void Gone(const std::string& kind, const NamespacedName& object);
  void Settled();
  // The first complete set of objects is in: what was found at start goes to the engine. False: it
  // had been in before.
  bool FinishRestore();

  // An edit that is about to be made of one of ours, and by whom (EditTrail::Reviewed).
  void Reviewed(const std::string& kind, const std::string& name, const std::string& spec,
                const std::string& user);

  // True: device misfits that eviction could cure are kube-scheduler's to solve.
  bool preemption_in_tree() const { return preemption_in_tree_; }
  // Of the policy that governs where no namespace's own does: what is done to nodes.
  struct FleetRules {
    MigMode mig = MigMode::kOff;
    std::optional<MigWindow> mig_window;
    Consolidate consolidate = Consolidate::kOff;
    DeletionCost deletion_cost = DeletionCost::kOff;
    Provisioning provisioning = Provisioning::kOff;
  };
  FleetRules fleet_rules() const;
  // Objects of ours that are not in force as written.
  int64_t invalid_objects() const { return invalid_objects_; }
  // What is wrong with objects or must be known of them, and what identifies each.
  struct Objects {
    std::vector<Finding> findings;
    // kind, name -> uid and generation.
    std::map<std::pair<std::string, std::string>, std::pair<std::string, int64_t>> objects;
    std::set<NamespacedName> views;    // GPUQuotaViews
    std::set<std::string> namespaces;  // known ones
    uint64_t version = 0;              // grows with every change
  };
  // As they are now, shared: copied only when they have changed since somebody asked.
  std::shared_ptr<const Objects> objects() const;
  // All objects that were taken in and how they are judged, to try edits on; and what governs where
  // no GPUPolicy does.
  PolicyStore Store() const;
  const GpuPolicy& defaults() const { return defaults_; }
  // Empty: no such object.
  std::string UidOf(const std::string& kind, const std::string& name) const;
  // What objects said of earlier ledgers when the first complete set of them was in. Whatever this
  // one lacked of it is queued to be entered. Empty before.
  FoundHistory found_history() const;

 private:
  void TakeDisruptionBudget(const PolicyObject& object);
  void TakeResourceQuota(const PolicyObject& object);
  void TakeReclaim(const PolicyObject& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  FoundHistory JudgeHistory();
  // What came of an edit, once all that was there at the start is in; "" is nothing.
  void Tell(const std::string& kind, const std::string& name, const std::string& said)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What is to be told of it.
  std::string TakeChanged(const PolicyObject& object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string TakeGone(const std::string& kind, const NamespacedName& object)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  EngineHost& engine_;
  const GpuPolicy defaults_;
  const LedgerFile ledger_;
  std::atomic<bool> restored_ = false;  // FinishRestore has begun
  std::atomic<bool> preemption_in_tree_ = false;
  std::atomic<int64_t> invalid_objects_ = 0;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const PolicySet> last_ ABSL_GUARDED_BY(mutex_);  // given to the engine
  PolicyStore store_ ABSL_GUARDED_BY(mutex_);
  FleetRules fleet_rules_ ABSL_GUARDED_BY(mutex_);
  Objects objects_ ABSL_GUARDED_BY(mutex_);
  mutable std::shared_ptr<const Objects> shown_ ABSL_GUARDED_BY(mutex_);  // null: objects_ changed
  EditTrail trail_ ABSL_GUARDED_BY(mutex_);
  CheckpointRecovery recovery_ ABSL_GUARDED_BY(mutex_);  // until the first complete set is in
  FoundHistory found_history_ ABSL_GUARDED_BY(mutex_);
  // By name, until the first complete set is in.
  std::map<std::string, Reclaim> found_reclaims_ ABSL_GUARDED_BY(mutex_);
  // Namespace, name; known ones.
  std::set<NamespacedName> disruption_budgets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tranche
