// How good a placement is for the cluster: a cost, lower is better.
//
// The strategy Fragmentation is "expected terminal waste plus two scarcity prices" (benchmarks A7),
// all in milli-GPU:
//   waste   W(room): of what is free on a node, the milli nobody will use when the cluster is full,
//           expected over fixed sequences drawn from the mix. A placement costs W(after) -
//           W(before), rounded to coarse steps so that near-equal nodes tie and the tie rule
//           consolidates.
//   model   using a GPU model that other pods of the mix are bound to costs in proportion to the
//           chance that their demand exceeds what is left of it.
//   slots   taking room that a multi-GPU type of the mix needs costs likewise.
// The waste part depends on (node state, request) only and is cached by the engine with the verdict
// (Worth); the prices are global numbers, added at selection (CostOf) and refreshed as nodes
// change. MIG requests on planned layouts cost by the table of layout values (mig_value.h). BestFit
// (least room left) and Spread (most room left) have no prices.
//
// Deterministic, integers only. Thread rule: as the engine's. `node` numbers are the engine's
// NodeId.
//
// Money is not in it: of a Worth `paid` is what a price is for, and the engine adds it (ADR 0053).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "policy/spec.h"
#include "scheduler/facts/pod_request.h"
#include "scheduler/index/inventory.h"
#include "scheduler/index/load.h"
#include "scheduler/index/placement.h"
#include "scheduler/scoring/kinds.h"
#include "scheduler/scoring/layouts.h"
#include "scheduler/scoring/mix.h"

namespace tranche {

// What the best way to do a request on a node in one state is worth; what the engine caches.
struct Worth {
  // Above every cost, lower first. Bits, high to low: 2 how far down its class's list the worst way
  // of sharing among the pod's devices stands, 1 kind of device, 3 how badly its cards are
  // connected (of several whole ones, as far as the pod cares).
  uint32_t rank = 0;
  int32_t base = 0;  // the strategy's cost without prices, milli-GPU; may be negative
  KindId kind;       // of the node's hardware
  // Milli-GPU that are newly paid for: of an empty node, which was to be given back, all of it; of
  // one in use what the pod takes. None by BestFit and Spread, which look at room alone.
  int32_t paid = 0;
  uint16_t loss = 0;    // which slots of multi-GPU types are lost; 0: none
  bool priced = false;  // prices count
  friend bool operator==(const Worth&, const Worth&) = default;
};

// What is left of a node, for Evaluate and SetNode.
struct NodeRoom {
  const Inventory* inventory = nullptr;
  const Load* load = nullptr;
  MilliCpu cpu_capacity;  // zero: the node does not say, CPU binds nothing
  MilliCpu cpu_free;      // may be negative where pods were put by others
};

// What a scorer learned of arrivals; a value.
struct ScorerMemory {
  MixLearner learner;
  LayoutMemory layouts;
};

class Scorer {
 public:
  Scorer();
  ~Scorer();
  Scorer(const Scorer&) = delete;
  Scorer& operator=(const Scorer&) = delete;

  // ---- the mix
  // Counts an arrival, once per pod (pods that ask no GPU are ignored). May take a new snapshot.
  void Arrived(const PodRequest& request);
  // A pod that held devices has ended.
  void Departed(const PodRequest& request);
  // Cost: a copy of every type of the mix, at most MixLearner::kMaxTypes, and of the layout tables.
  ScorerMemory Memory() const;
  // In place of what was learned here; all nodes are valued anew by that, at once. Cost: O(nodes),
  // and microseconds for every room not met before.
  void Take(const ScorerMemory& memory);
  // Worths made under another version for requests of this kind (MIG or not) are stale. Arrived,
  // Price and Work change it: ask after Price, once per selection.
  uint32_t version(const PodRequest& request) const;
  // Goes on with the tables of MIG layouts for one slice of a few milliseconds at most. False:
  // nothing is left to do.
  bool Work();
  bool HasWork() const;

  // ---- what the cluster has left; decides prices
  // The node as it is now, claims aside; nullptr inventory: closed or gone. Cheap: noted, and
  // valued when prices are next refreshed, at most a fixed number of nodes each time.
  void SetNode(uint32_t node, const NodeRoom& room);

  // ---- one node
  // Fits the request on the node (kNone) and values the best way to do it; picks are that way. A
  // request without asks (a pod without GPUs) always fits and is valued by the CPU it takes.
  // `sharing`: how the pod's class may share, in order of preference; null or empty: any way.
  // Cost: one placement, and for one shared card one more per distinct load of the node's cards,
  // plus microseconds for every room not met before.
  Reason Evaluate(const NodeRoom& room, const PodRequest& request, const GpuPolicy& policy,
                  Picks& picks, Worth& worth, const std::vector<SharingMode>* sharing = nullptr);

  // ---- selection
  // Prices follow what the cluster has left when this is called, every few calls. Once a decision;
  // between two calls equal questions have equal answers.
  void Refresh();
  // The prices this request meets from now on. Call once per selection.
  void Price(const PodRequest& request);
  // Of a Worth of the request last priced: rank aside, the whole cost. Two table look-ups.
  int64_t CostOf(const Worth& worth) const;

  // ---- questions
  // Free milli of the node that is expected to stay unused (W); of planned MIG cards nothing.
  int64_t Waste(const NodeRoom& room);
  // Tables of layouts for the planner; empty until learned.
  const LayoutValueMap& layout_values() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tranche
