// What GPUs cost now, by the prices in force and shared out as bills share a moment
// (ledger/bill/bill.h): each piece of work has the larger of its compute and its memory; where
// these are more than a node's GPUs of the model, all in proportion.
//
// A walk as those of report_walks.h: no snapshot of one moment. Cost of a slice: as said with it;
// memory some 100 bytes a node and a piece of work until it is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/index/node_names.h"
#include "topology/base/ids.h"
#include "topology/base/int128.h"

namespace tranche {

// GPUs that one team holds, or that there are, of one model and pool and in one currency.
struct CostRow {
  std::string leaf;      // empty: of no team, or of the fleet
  std::string model;     // lower case
  std::string pool;      // GPUPool of the nodes; empty: in none
  std::string currency;  // empty: nobody says what these GPUs cost
  Int128 quanta = 0;
  Int128 money = 0;  // an hour: quanta x millionths of the currency
};
struct CostSums {
  std::vector<CostRow> held;   // ascending leaf, model, pool, currency
  std::vector<CostRow> fleet;  // all GPUs there are, likewise
};

struct CostWalk {
  static constexpr int kNodesAtOnce = 64;
  static constexpr int kWorkAtOnce = 256;

  enum class Stage : uint8_t { kNodes, kWork, kDone };
  // What the GPUs of a node are and cost.
  struct Offer {
    std::string model;
    std::string pool;
    std::string currency;  // empty: no price
    int64_t micros = 0;    // of a GPU for an hour
    int64_t gpus = 0;
  };
  struct Use {
    std::string leaf;
    int64_t share = 0;  // quanta
  };
  using Place = std::pair<NodeId, std::string>;  // and the model of its GPUs

  Stage stage = Stage::kNodes;
  NodeId node{0};                  // the next
  std::optional<PodUid> after;     // the last piece of work that was looked at
  std::map<NodeId, Offer> offers;  // of nodes with GPUs
  std::map<Place, std::vector<Use>> uses;
  bool done() const { return stage == Stage::kDone; }
};

// The sums of a walk that is done. Needs no engine.
CostSums CostsOf(const CostWalk& walk);

}  // namespace tranche
