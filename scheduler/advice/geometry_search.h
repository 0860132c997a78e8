// Which idle GPUs of a node to cut how, so that most waiting pods fit, then most of what is
// expected, with the fewest GPUs changed.
//
// Greedy: one change after another, each the one that serves most waiting pods a GPU; several GPUs
// at once are one change where a pod wants several devices. A change serves a waiting pod, or
// expected demand on a GPU that nobody wanted as it was. Pure; deterministic.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/advice/case.h"
#include "scheduler/advice/geometry_choice.h"
#include "scheduler/advice/geometry_demand.h"
#include "scheduler/advice/geometry_trial.h"
#include "topology/mig.h"

namespace tranche {

struct CardChange {
  int card = 0;  // index into the inventory
  Geometry from;
  Geometry to;
};

struct NodeChanges {
  TrialNode after;
  std::vector<CardChange> cards;    // ascending card
  std::vector<std::size_t> served;  // of the waiters
  int64_t expected_milli = 0;
};

class GeometrySearch {
 public:
  // All outlive it. `waiters`: for whom choices are made.
  GeometrySearch(const AdviceCase& fleet, TrialPlacer& placer, const ExpectedDemand& expected,
                 std::span<const std::size_t> waiters);

  // `cards` of the node may be changed, `most` of them. `first`: the first change must serve this
  // waiter.
  NodeChanges Search(const TrialNode& node, std::span<const int> cards,
                     std::span<const std::size_t> waiters, int most,
                     std::optional<std::size_t> first = std::nullopt);

 private:
  // Cards of the node that are alike.
  struct Group {
    const MigBoard* board = nullptr;
    std::string product;
    Geometry geometry;
    std::vector<int> cards;
  };
  struct Option {
    const Group* group = nullptr;
    const GeometryChoice* choice = nullptr;
    int cards = 0;
    TrialNode after;
    std::vector<std::size_t> served;
    int64_t expected_milli = 0;
  };

  std::vector<Group> GroupsOf(const TrialNode& node, std::span<const int> cards) const;
  const std::vector<GeometryChoice>& ChoicesFor(const MigBoard& board);
  bool IsWorthIt(const Option& option) const;
  // `origin`: the node before all changes, which expected demand is measured from.
  std::optional<Option> BestOption(const TrialNode& origin, const TrialNode& node,
                                   std::span<const Group> groups,
                                   std::span<const std::size_t> waiters, int most,
                                   std::optional<std::size_t> first);

  const AdviceCase* fleet_;
  TrialPlacer* placer_;
  const ExpectedDemand* expected_;
  std::vector<std::size_t> waiters_;
  std::map<const MigBoard*, std::vector<GeometryChoice>> choices_;  // looked up, never iterated
};

}  // namespace tranche
