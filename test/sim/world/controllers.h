// Controllers of the control plane: budgets' statuses some time after what they count changed,
// taints and evictions of nodes that are not heard of, and pods whose node is gone.
//
// Sources: kube-client-protocol section 12 (what a budget's status says); hazards rows 9 and 26;
// real-control-plane section 6 (the pod garbage collector removes by force).
//
// Simplified: pods tolerate a lost node for 30 seconds, as the chart's own do, instead of 300.
//
// Thread rule: one thread.
#pragma once

#include <map>
#include <string>

#include "test/sim/cluster/api_server.h"
#include "test/sim/world/informer.h"

namespace tranche::sim {

class Controllers {
 public:
  Controllers(Loop& loop, ApiServer& api, uint64_t seed);
  void Start();

 private:
  void CountBudgets();
  void CountBudget(const StoredPtr& budget);
  void CollectGarbage();
  void HearNode(const Change& change);
  void Taint(const std::string& node);
  void EvictFrom(const std::string& node, uint64_t since);
  void DeletePod(const Stored& pod, const char* who, bool force);

  Loop& loop_;
  ApiServer& api_;
  Draws draws_;
  const Actor disruption_;
  const Actor garbage_;
  const Actor lifecycle_;
  bool changed_ = true;                      // since budgets were counted
  std::map<std::string, SimTime> nodeless_;  // uid -> since when its node is missing
  std::map<std::string, uint64_t> unready_;  // node -> version that said so
  Informer nodes_;
};

}  // namespace tranche::sim
