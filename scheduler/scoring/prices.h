// The two scarcity prices over the nodes of a cluster: of models and of room for multi-GPU work.
//
// Sums over nodes are kept as nodes change and prices follow every few questions, so that a
// decision costs what changed and not what there is.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "scheduler/scoring/models.h"
#include "scheduler/scoring/slots.h"
#include "scheduler/scoring/waste.h"

namespace tranche {

class Prices {
 public:
  // Both outlive it.
  Prices(const NodeKinds& kinds, WasteTable& waste);

  // MixChange::kAll: what is usable of every node changes too.
  void SetMix(const Mix& mix, MixChange change);
  // nullptr: no such node. Its slots count at once, what is usable of it when it is valued.
  void SetNode(uint32_t node, const Room* room);
  // Every few calls some of the nodes that changed are valued, and prices refreshed.
  void Follow();
  // Values all of them, whatever it costs.
  void Settle();
  // From here on prices are those the request meets. A mix or kinds of nodes that changed are taken
  // up first: losses numbered before may have no meaning any more, which version() tells.
  void Prepare(const PodRequest& request);
  uint32_t version() const { return version_; }

  uint16_t LossOf(const Room& before, const Room& after) { return slots_.LossOf(before, after); }
  // For the request prepared for last. Worked out once for each kind and loss.
  int64_t OfKind(KindId kind);
  int64_t OfLoss(uint16_t loss);

  // Milli of all nodes that is expected to be used, as far as valued.
  int64_t usable() const;

 private:
  struct Node {
    Room room;
    int64_t usable = 0;  // milli
    bool there = false;
    bool waits = false;  // in waiting_
  };
  struct Price {
    uint64_t asked = 0;  // the question it answers
    int64_t milli = 0;
  };

  void TakeUpTypes();
  void ValueNodes();
  void Refresh();
  void Wait(uint32_t node);
  const Asker& AskerOf(const PodRequest& request);

  const NodeKinds& kinds_;
  WasteTable& waste_;
  Models models_;
  Slots slots_;
  Mix mix_;
  std::vector<Node> nodes_;
  std::deque<uint32_t> waiting_;  // nodes to value, oldest change first
  std::vector<int64_t> nodes_of_kind_;
  std::vector<int64_t> usable_;  // by kind
  int64_t free_milli_ = 0;       // of all nodes
  KindSet there_;                // kinds that some node has
  bool types_changed_ = false;
  uint32_t version_ = 0;

  std::unordered_map<std::string, Asker> askers_;
  std::string key_;  // kept for its memory
  const Asker* asker_ = nullptr;
  uint64_t asked_ = 0;
  uint64_t followed_ = 0;  // calls
  std::vector<Price> of_kind_;
  std::vector<Price> of_loss_;
};

}  // namespace tranche
