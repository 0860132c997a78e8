// The placeholder pods of a node and the pods that wait there for the cards these were given.
//
// Looked after whenever what is held on a node changes, so that a pod whose card is known is told
// at once. Nothing is done here: orders and ended waits are handed back. Externally synchronised.
// Cost: O(holdings of the node); a look-up where no pod follows a placeholder. Source: ADR 0024.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/engine/placeholders/placeholder_books.h"
#include "scheduler/facts/allocation.h"
#include "scheduler/facts/placeholder.h"
#include "scheduler/index/node_state.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

// What a look at one node came to.
struct PlaceholderTending {
  std::vector<PlaceholderOrder> orders;
  // Waits that ended: with the devices, now known, or with nothing, and the pod goes elsewhere.
  std::vector<std::pair<PodUid, std::optional<Allocation>>> ended;
  std::string unkept;          // why pods are kept away from the node; empty: nothing does
  std::optional<Instant> due;  // when to look again
};

class Placeholders {
 public:
  // `epoch` is written into the records of ordered placeholders.
  Placeholders(PlaceholderTimes times, int64_t epoch) : books_(times), epoch_(epoch) {}

  PlaceholderBooks& books() { return books_; }
  const PlaceholderBooks& books() const { return books_; }
  // Unix nanoseconds, above every one before: agents serve pods in the order of these stamps, and
  // the names of placeholders ascend with age.
  int64_t NextStamp(Instant now);

  // A pod was given cards of a node and waits until the placeholder there has told which they are.
  void Wait(const PodUid& uid) { waits_.insert(uid); }
  // True: it waited.
  bool EndWait(const PodUid& uid) { return waits_.erase(uid) > 0; }
  std::size_t waiting() const { return waits_.size(); }

  // Does the node have placeholders, or pods that follow one?
  bool Concerns(const NodeName& node, const NodeState& state) const;
  // Requires: Concerns(node, state). Changes roles, and the devices of pods whose cards are told.
  PlaceholderTending Tend(const NodeName& node, NodeState& state, Instant now);

 private:
  PlaceholderOrder Order(const NodeName& node, const Inventory& inventory, int card, Instant now);
  void TellFollowers(NodeState& state, const PlaceholderAnswer& answer,
                     PlaceholderTending& tending);

  PlaceholderBooks books_;
  int64_t epoch_ = 0;
  int64_t stamp_ = 0;  // the last one given
  std::set<PodUid> waits_;
};

}  // namespace tranche
