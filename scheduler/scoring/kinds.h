// Kinds of node hardware, numbered: nodes that differ in nothing a request of the mix could tell
// apart when both are empty, and what each request needs of them.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>

#include "scheduler/facts/pod_request.h"
#include "scheduler/index/inventory.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

using KindId = Index<struct KindIdTag, uint16_t>;
// Of every node there was no number left for: nothing is known of it and nothing is charged on it.
inline constexpr KindId kNoKind{0};
inline constexpr std::size_t kMaxKinds = 512;

struct NodeKind {
  // The first card that is not cut into instances, alone, and the pools without their slots.
  Inventory sample;
  int cards = 0;         // not cut into instances
  bool planned = false;  // MIG layouts: what fits is a question of layouts, not of counts
  MilliCpu cpu;          // zero: not known, binds nothing
  const Card* card() const { return cards == 0 ? nullptr : &sample.cards.front(); }
};

// What an ask takes of a node of one kind.
struct Need {
  bool possible = false;  // on an empty node, CPU aside
  int pool = -1;          // >= 0: `count` replicas of that pool, else cards
  int count = 0;
  int milli = 0;  // of each card or replica
};
// `request` gives models and memory of the cards, `ask` is one of its asks.
Need NeedOf(const NodeKind& kind, const PodRequest& request, const Ask& ask);

class NodeKinds {
 public:
  NodeKinds();
  // Allocates only for a kind not met before.
  KindId Of(const Inventory& inventory, MilliCpu cpu_capacity);
  const NodeKind& operator[](KindId id) const { return kinds_[id]; }
  std::size_t size() const { return kinds_.size(); }

 private:
  std::deque<NodeKind> kinds_;
  std::unordered_map<std::string, KindId> ids_;
  std::string key_;  // kept for its memory
};

}  // namespace tranche
