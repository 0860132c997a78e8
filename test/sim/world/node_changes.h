// Nodes that come and go: an autoscaler that adds some for pods that wait and removes idle ones,
// and administrators who cordon nodes, take them away and bring others back under the same name.
//
// The autoscaler is there in some seeds, whatever the faults. It says of pods that wait that it
// raises a node for them, now and then of one that does not come. In some a cloud takes machines
// back, after a notice of two minutes at most, and now and then thinks better of it. Fault: kNodes.
//
// Source: hazards rows 9, 14, 36 and 37; of its words scheduler/wire/workloads/scale_up.h; of
// notices scheduler/facts/interruption.h.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "test/sim/base/faults.h"
#include "test/sim/base/history.h"
#include "test/sim/base/script.h"
#include "test/sim/cluster/api_server.h"
#include "test/sim/world/kubelets.h"
#include "test/sim/world/workload.h"

namespace tranche::sim {

struct NodeChangesOptions {
  bool autoscales = false;
  int most_added = 3;
  bool is_spot = false;  // its machines are taken back
};

class NodeChanges {
 public:
  NodeChanges(Loop& loop, History& history, Script& script, const FaultPlan& faults, ApiServer& api,
              Kubelets& kubelets, const Workload& workload, NodeChangesOptions options);

  void Start();
  // Cordons are taken away and machines come back.
  void Quiet();

 private:
  void Change();
  void Cordon(const std::string& node, bool on);
  void Replace(const std::string& node, Draws& draws);
  void Return(Machine machine);
  void Relabel(const std::string& node);
  void TakeBack();
  void Notice(const std::string& node, bool on);
  void Scale();
  // As an autoscaler does of the pods it raises nodes for.
  void SayWhoIsHelped(Draws& draws);
  bool IsIdle(const std::string& node) const;

  Loop& loop_;
  History& history_;
  Script& script_;
  const int rate_;
  ApiServer& api_;
  Kubelets& kubelets_;
  const Workload& workload_;
  const NodeChangesOptions options_;
  const Actor self_;
  bool quiet_ = false;
  int added_ = 0;
  int said_ = 0;
  std::set<std::string> noticed_;
  int waited_ = 0;                          // rounds in which pods waited
  std::map<std::string, int> idle_rounds_;  // of added nodes
  std::map<std::string, Machine> away_;     // by name
};

}  // namespace tranche::sim
