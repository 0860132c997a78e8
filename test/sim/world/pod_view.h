// What kube-schedulers, kubelets and controllers read of a pod or a node: the few fields they
// decide by, read once for each version.
//
// Sources: kube-client-protocol section 18 (amounts, effective requests); kube-scheduler-extender
// section 6 (resources that NodeResourcesFit ignores, as the chart configures it).
//
// Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "test/sim/cluster/store.h"

namespace tranche::sim {

using Amounts = std::map<std::string, int64_t>;  // resource -> units; cpu in thousandths

// 0 where it is none.
int64_t AmountOf(const std::string& quantity, bool of_cpu);

struct PodView {
  explicit PodView(StoredPtr pod);

  StoredPtr stored;
  std::string uid, key, node, nominated, scheduler, phase;
  int64_t priority = 0;
  bool gated = false;
  bool deleting = false;
  bool never_preempts = false;
  Amounts requests;                    // effective, with "pods": 1
  std::vector<std::string> tolerated;  // keys of taints; "" is all
  std::map<std::string, std::string> node_selector;

  bool terminal() const { return phase == "Succeeded" || phase == "Failed"; }
};

struct NodeView {
  explicit NodeView(StoredPtr node);

  StoredPtr stored;
  std::string name;
  bool cordoned = false;
  bool ready = true;
  std::vector<std::string> taints;  // keys that keep pods off
  Amounts allocatable;
};

bool Tolerates(const PodView& pod, const NodeView& node);
// What keeps the pod from the node though it were empty; empty: nothing.
std::string UnsuitableFor(const PodView& pod, const NodeView& node);
// What it lacks with so much in use, as kube-scheduler says it; empty: nothing.
std::string Lacks(const PodView& pod, const NodeView& node, const Amounts& used);
void AddAmounts(Amounts& to, const Amounts& amounts);
void SubtractAmounts(Amounts& from, const Amounts& amounts);

}  // namespace tranche::sim
