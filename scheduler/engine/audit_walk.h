// How far a check of the books has come that lets others in between: each slice looks at some nodes
// or pods, or sums what is counted over all.
//
// Thread rule: a value. Between two slices the books may change; every slice holds by itself.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/index/node_names.h"
#include "topology/base/ids.h"

namespace tranche {

struct AuditWalk {
  // A few hundred microseconds each.
  static constexpr int kNodesAtOnce = 128;
  static constexpr int kPodsAtOnce = 1024;

  enum class Stage : uint8_t { kNodes, kPods, kTallies, kCharges, kDone };
  Stage stage = Stage::kNodes;
  NodeId node{0};            // the next
  std::vector<PodUid> pods;  // still to be looked at; of those that were there after the last node
  bool done() const { return stage == Stage::kDone; }
};

}  // namespace tranche
