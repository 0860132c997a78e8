// Nodes to try changes out on: waiting pods are placed, GPUs are cut anew, nothing is kept.
//
// Placement is the index's own. What a node would be after a change is what BuildInventory makes of
// the changed node, cards in another order. Pure; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/advice/case.h"
#include "scheduler/advice/geometry_choice.h"
#include "scheduler/advice/repartition.h"
#include "topology/mig.h"

namespace tranche {

struct TrialNode {
  const AdviceNode* origin = nullptr;
  Inventory inventory;
  Load load;
  MilliCpu cpu_free;
};

TrialNode TrialOf(const AdviceNode& node);

// Of the card, from the instances laid out on it.
Geometry GeometryOfCard(const Inventory& inventory, int card);
// Nobody uses the card or an instance on it, and it is well.
bool IsIdle(const Inventory& inventory, const Load& load, int card);
// Kubelet handed out more units than the devices we know to be in use: some are used unseen.
bool HasUnseenUse(const Load& load);

// Requires: the card is idle, kWhole or kMig, and `choice` is of its board.
void CutCard(const MigBoard& board, const GeometryChoice& choice, int card, TrialNode& node);

class TrialPlacer {
 public:
  // `fleet` outlives it.
  explicit TrialPlacer(const AdviceCase& fleet);

  // Its devices, or its demands on the node, allow the waiter to be here at all.
  bool Suited(std::size_t waiter, const AdviceNode& node) const;
  // True: it fits, and its devices are taken. `waiter` is an index into AdviceCase::waiting.
  bool Place(std::size_t waiter, TrialNode& node);
  // Those of `waiters` that find room, in this order, each kind until one of it does not.
  std::vector<std::size_t> PlaceAll(std::span<const std::size_t> waiters, TrialNode& node);
  // Equal for waiters that any node treats alike.
  std::size_t kind(std::size_t waiter) const { return kinds_[waiter]; }
  std::size_t kinds() const { return first_of_kind_.size(); }

 private:
  bool AreAlike(std::size_t left, std::size_t right) const;

  const AdviceCase* fleet_;
  std::vector<std::size_t> kinds_;  // of each waiter
  std::vector<std::size_t> first_of_kind_;
  Placer placer_;
  Picks picks_;
};

}  // namespace tranche
