// Tells ReplicaSets which of their pods free the most when they go, where GPUPolicy.deletionCost is
// On: the annotation controller.kubernetes.io/pod-deletion-cost of pods that hold GPUs, as
// advice/deletion_costs.h has it.
//
// Three times a minute. An order is mended when it was wrong in the look before as well, and a few
// pods a look. Which costs are ours the pods say themselves, by a second annotation with the same
// text: what anybody else wrote is never changed, and a restart needs to remember nothing. Where
// the policy says Off, or no longer On, ours are taken back. Nothing is decided by it here: it only
// says in which order Kubernetes is to take away what somebody else decides to take away.
//
// Thread rule: Tick by one thread at a time.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scheduler/advice/deletion_costs.h"
#include "scheduler/metrics/metrics.h"
#include "scheduler/ports/pod_marks.h"

namespace tranche {

class DeletionCosts {
 public:
  static constexpr Millis kLookEvery{20'000};
  static constexpr int kMostWrites = 10;  // a look

  // What it needs of the rest; all are called without locks.
  struct Hooks {
    // The cluster was heard of lately: nothing is judged on old knowledge.
    std::function<bool()> fresh;
    std::function<bool()> wanted;  // GPUPolicy.deletionCost
    std::function<AdviceCase()> look;
  };

  // All must outlive this; `metrics` the answers to what it wrote as well.
  DeletionCosts(PodMarks& pods, metrics::Metrics& metrics, Hooks hooks);

  // `now` does not go back.
  void Tick(Instant now);

 private:
  void Mend(const AdviceCase& fleet);
  void TakeBack(const AdviceCase& fleet);
  // As many of them as `left` allows.
  void Write(const std::vector<CostChange>& changes, int& left);

  PodMarks& pods_;
  metrics::Metrics& metrics_;
  const Hooks hooks_;
  std::optional<Instant> looked_;
  std::set<std::string> wrong_;  // ReplicaSets whose order was wrong in the last look
  bool none_left_ = false;       // of ours, where none is wanted
};

}  // namespace tranche
