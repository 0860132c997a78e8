// Users who want work done: single pods, gangs, and owners that make a pod anew when it is gone.
//
// Arrivals go on until as many pods were made as asked for, and stop for a while when too many
// wait, so that runs stay short. What has ended is removed some time later, as by a TTL controller,
// and who waits for too long is given up. Some owners are stateful sets: their pods have names that
// they keep, and come again when the pod before is gone, at once where it had ended by itself.
//
// Source: real-control-plane section 6 (what no controller does is done here); stateful sets:
// kubernetes.io/docs/concepts/workloads/controllers/statefulset, "Stable Network ID".
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "test/sim/base/script.h"
#include "test/sim/cluster/api_server.h"
#include "test/sim/world/informer.h"
#include "test/sim/world/pod_shapes.h"

namespace tranche::sim {

struct WorkloadOptions {
  int64_t lives = 100;
  SimTime mean_gap = std::chrono::milliseconds(400);
  std::size_t most_waiting = 10;
  std::vector<std::string> namespaces;
  std::vector<std::string> schedulers;
  ShapeRules rules;
  // Some pods are made without a wish for GPUs and with a gate; a controller of the user's writes
  // down what they need, and opens it. Source: KEP-3521, whose gates are for controllers that
  // prepare a pod before it is scheduled.
  bool sizes_late = false;
  // Half of what would be single pods are stateful sets of one, and whoever runs them restarts one
  // now and then, some by force. Source: kubectl rollout restart, and "Force Delete StatefulSet
  // Pods" of the Kubernetes documentation.
  bool keeps_names = false;
};

class Workload {
 public:
  Workload(Loop& loop, Script& script, ApiServer& api, WorkloadOptions options, uint64_t seed);

  void Start();
  void Quiet();
  bool arrived() const { return quiet_ || lives_ >= options_.lives; }
  int64_t lives() const { return lives_; }
  // Keys of pods that are there and not bound, ascending.
  const std::set<std::string>& waiting() const { return waiting_; }
  // Of pods that are bound and have not ended.
  const std::set<std::string>& bound() const { return bound_; }

 private:
  // An owner keeps so many pods alive, for a while.
  struct Owner {
    std::string ns;
    std::string scheduler;
    std::string name;
    PodShape shape;
    int64_t made = 0;
    bool keeps_names = false;
    Draws again{0};  // of those that keep names: how soon the next comes
    SimTime until{0};
  };

  void Arrive();
  void MakeOne(Draws& draws);
  void MakeSizedLate(Draws& draws);
  // Of a controller whose pods come again for so long.
  Owner DrawOwner(Draws& draws, int64_t least_seconds, int64_t most_seconds);
  void MakeSet(Draws& draws);
  void RestartSet();
  void Size(const std::string& ns, const std::string& name, SimTime after, Json patch);
  void MakeGang(Draws& draws);
  void MakeOwner(Draws& draws);
  void MakeBudgetOf(const Owner& owner, Draws& draws);
  void Create(Json pod);
  void Replace(Owner& owner);
  void MakeOf(const Owner& owner, const std::string& name);
  void Hear(const Change& change);
  void Ended(const StoredPtr& pod);
  // It is gone: a stateful set makes another one of its name.
  void MakeNamesake(const Stored& gone);
  void GiveUp(const std::string& key, const std::string& uid);
  // `by_force`: it need not be known that its containers have ended.
  enum class Removal : uint8_t { kInOrder, kByForce };
  void DeletePod(const std::string& key, const std::string& uid, const std::string& who,
                 Removal how = Removal::kInOrder);

  Loop& loop_;
  Script& script_;
  ApiServer& api_;
  const WorkloadOptions options_;
  Draws draws_;
  const Actor self_;
  bool quiet_ = false;
  int64_t lives_ = 0;
  int64_t names_ = 0;
  std::map<std::string, Owner> owners_;  // by label
  std::set<std::string> waiting_;
  std::set<std::string> bound_;
  std::set<std::string> seen_ended_;  // uids
  Informer pods_;
};

inline constexpr const char* kOwnerLabel = "sim.example/owner";

}  // namespace tranche::sim
