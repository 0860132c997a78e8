// How far reports about the whole cluster have come that let others in between: each slice looks at
// some nodes or pods, and the sums are no snapshot of one moment.
//
// Values; they belong to who asks. Begin with an empty one, go on until done().
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "policy/policy_set.h"
#include "policy/prices.h"
#include "quota/preemption/lost_work.h"
#include "quota/quota_book.h"
#include "scheduler/advice/case.h"
#include "scheduler/engine/state/views.h"
#include "scheduler/facts/reason.h"
#include "scheduler/index/node_names.h"
#include "topology/base/ids.h"

namespace tranche {

// What metrics show of nodes and pods.
struct TotalsWalk {
  // A hundred microseconds each, or less.
  static constexpr int kNodesAtOnce = 96;
  static constexpr int kPodsAtOnce = 256;

  enum class Stage : uint8_t { kNodes, kPods, kDone };
  Stage stage = Stage::kNodes;
  NodeId node{0};                                                     // the next
  std::pair<PodName, PodUid> pod;                                     // the last that was looked at
  std::map<std::pair<std::string, std::string>, ModelTotals> models;  // by model and pool
  EngineTotals totals;                                                // good when done
  bool done() const { return stage == Stage::kDone; }
};

// Pods that wait: why each of them does, and how many by team, class and reason.
struct WaitingWalk {
  static constexpr int kPodsAtOnce = 128;

  std::optional<PodUid> after;  // the last that was looked at
  bool through = false;
  std::map<std::tuple<std::string, std::string, Reason>, PendingRow> sums;
  std::vector<std::pair<PodUid, Reason>> refused;  // by their last filter
  std::optional<Instant> first_came;  // of those that ask by requests, the one that waits longest
  bool done() const { return through; }
  // Ascending leaf, class, reason.
  std::vector<PendingRow> Rows() const;
  // Ascending uid.
  std::vector<std::pair<PodUid, Reason>> TakeRefused();
};

// What teams may have and have.
struct QuotaWalk {
  // Pieces of work whose marks are laid anew at once, unless one leaf has more.
  static constexpr std::size_t kWorkAtOnce = 128;

  enum class Stage : uint8_t { kMarks, kReports, kDone };
  Stage stage = Stage::kMarks;
  std::string leaf;  // whose marks are next
  std::vector<QuotaReport> reports;
  std::vector<int64_t> weights;                  // parallel to reports
  std::vector<std::vector<LineReach>> reach;     // likewise
  std::shared_ptr<const PolicySet> set;          // they are of
  std::map<std::string, int64_t> capacity;       // quanta by model
  std::map<std::string, int64_t> pool_capacity;  // and of metered pools by line_name.h
  std::vector<AbandonedWork> abandoned;
  bool done() const { return stage == Stage::kDone; }
};
// The views of a walk that is done, with those who wait. Needs no engine.
std::vector<QuotaView> QuotaViewsOf(QuotaWalk walk, const std::vector<PendingRow>& waiting);

// What each node offers and how it is paid for, for bills.
struct FleetNode {
  NodeName name;
  std::string model;  // of its GPUs; empty: it has none
  int64_t gpus = 0;
  NodeTraits traits;
  // Milli of its free GPUs that nobody is expected to use; nullopt: not asked for, or not known.
  std::optional<int64_t> stranded = {};
};
struct FleetWalk {
  // Of many pools each is asked about each node.
  static constexpr int kNodesAtOnce = 16;

  bool with_stranded = false;            // is it asked for?
  NodeId node{0};                        // the next
  std::vector<FleetNode> nodes;          // as far as it has come; those with GPUs
  std::shared_ptr<const PolicySet> set;  // the newest there was
  bool through = false;
  bool done() const { return through; }
};

// The cluster as values, for advice.
struct CaseWalk {
  static constexpr int kNodesAtOnce = 32;
  static constexpr int kPodsAtOnce = 64;
  static constexpr std::size_t kWorkAtOnce = 256;

  enum class Stage : uint8_t { kMarks, kAges, kNodes, kWaiters, kDone };
  Stage stage = Stage::kMarks;
  bool begun = false;
  std::string leaf;              // the next whose marks are brought up to date
  std::optional<PodUid> after;   // of the holdings, then of those that wait
  std::optional<NodeName> node;  // the last that was copied
  CheckpointAges ages;
  AdviceCase fleet;
  bool done() const { return stage == Stage::kDone; }
  AdviceCase Take();
};

}  // namespace tranche
