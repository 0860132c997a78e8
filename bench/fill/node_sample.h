// The nodes kube-scheduler looks at for a pod: all, or as many as percentageOfNodesToScore wants to
// have passed its own filters, from where the last look ended.
//
// Source: kube-scheduler's findNodesThatPassFilters and numFeasibleNodesToFind. One thread.
#pragma once

#include <vector>

#include "bench/fill/books.h"
#include "bench/fill/trace.h"

namespace tranche::bench::fill {

class NodeSample {
 public:
  static constexpr int kAll = 100;
  // What kube-scheduler does by itself: 50 % of small fleets, down to 5 % of large ones.
  static constexpr int kByDefault = 0;
  explicit NodeSample(int percent) : percent_(percent) {}

  // Nodes that passed kube-scheduler's own filters, in its order.
  std::vector<int> Next(const Books& books, const TaskType& task);
  // Every node was looked at by the last call.
  bool saw_all() const { return saw_all_; }

 private:
  int percent_;
  int next_ = 0;
  bool saw_all_ = true;
};

// How many nodes have to pass before kube-scheduler stops looking.
int NodesToFind(int nodes, int percent);

}  // namespace tranche::bench::fill
