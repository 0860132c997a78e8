// Users and administrators who change things at bad moments: pods that wait, that are being bound
// and that run; quotas, budgets, classes and namespaces under the pods that count on them;
// deletions in the middle of a bind, and by force.
//
// Some copy a pod with the record and the agents' keys on it: where the webhook is installed it
// takes them off, elsewhere they stay until we bind.
//
// Fault: kUsers. Nothing they do is forbidden; what the webhook refuses is refused.
//
// Source: hazards rows 13, 19, 31, 47 and 57; quota-model section 8.
//
// Thread rule: one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "test/sim/base/faults.h"
#include "test/sim/base/history.h"
#include "test/sim/base/script.h"
#include "test/sim/cluster/api_server.h"
#include "test/sim/world/fleet.h"
#include "test/sim/world/tenants.h"

namespace tranche::sim {

// What somebody does in some fleets whenever there is an occasion.
struct UserHabits {
  // Owners of pods that were just bound write a smaller share into the record, or devices of a pod
  // beside it.
  bool shrink_records = false;
  // Budgets of disruptions cover all pods of a namespace, and who keeps them up to date does so
  // when a pod is about to be evicted.
  bool guard_pods = false;
  // Pods are deleted, half of them by force, when somebody has just read them.
  bool delete_read = false;
};

class UserEdits {
 public:
  // Both outlive this.
  UserEdits(Loop& loop, History& history, Script& script, const FaultPlan& faults, ApiServer& api,
            const Tenants& tenants, const std::vector<Machine>& machines);

  void set_habits(UserHabits habits) { habits_ = habits; }
  void Start();
  void Quiet() { quiet_ = true; }

 private:
  void Edit();
  // A pod was just filtered, or just bound: the worst moments.
  void EditSoon(const std::string& key, const char* moment);
  // Somebody makes a pod of what a running one looks like, with all that was written on it.
  void Copy();
  // The record of a running pod says less than it was given, so that others seem to fit beside it.
  void Forge();
  void Shrink(const StoredPtr& pod, Draws& draws);
  void Annotate(const Stored& pod, const char* key, const std::string& text);
  // The record of another pod on the node that has as many devices; empty: none is alike, or it is
  // not wanted this time.
  std::string RecordBeside(const Stored& pod, Draws& draws) const;
  void ListenForHabits();
  void GuardVictims(const Stored& reclaim);
  void EditPod(const StoredPtr& pod, Draws& draws);
  void EditAnnotations(const Stored& pod, Draws& draws);
  void DeletePod(const Stored& pod, Draws& draws);
  void EditQuota(Draws& draws);
  void RenameQuota(const StoredPtr& quota, Draws& draws);
  void EditBudget(Draws& draws);
  void EditClass(Draws& draws);
  void EditNamespace(Draws& draws);
  void EditDisruptionBudget(Draws& draws);
  void Send(const char* method, const char* resource, const std::string& key, Json body);
  // Any object of a resource; null: there is none.
  StoredPtr AnyOf(const char* resource, Draws& draws) const;

  Loop& loop_;
  History& history_;
  Script& script_;
  const int rate_;
  ApiServer& api_;
  const Tenants& tenants_;
  const std::vector<Machine>& machines_;
  const Actor self_;
  UserHabits habits_;
  int64_t copies_ = 0;
  bool quiet_ = false;
};

}  // namespace tranche::sim
