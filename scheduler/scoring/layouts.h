// Tables of what MIG layouts are worth, one for each board whose layouts are planned, kept up with
// what is asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scheduler/index/inventory.h"
#include "scheduler/index/placement.h"
#include "scheduler/scoring/mig_value.h"
#include "scheduler/scoring/mix.h"

namespace tranche {

// What Layouts found of the boards it saw.
struct LayoutMemory {
  struct Board {
    const MigSpace* space = nullptr;
    std::vector<int64_t> counts;  // by profile, that the values are of or are being made of
  };
  std::vector<Board> boards;
  LayoutValueMap values;
};

class Layouts {
 public:
  // The boards of the node's planned cards get a table.
  void Saw(const Inventory& inventory, const MixLearner& learner);
  // After the learner counted it. Tables follow only when the shares of the profiles moved.
  void Arrived(const PodRequest& request, const MixLearner& learner);
  // One slice of a table's work; false: nothing is left to do.
  bool Work();
  bool HasWork() const;
  LayoutMemory Memory() const;
  // In place of what was found here. Boards that were not seen there are as before.
  void Take(const LayoutMemory& memory);

  const LayoutValueMap& values() const { return values_; }
  // Grows when values() changes.
  uint32_t version() const { return version_; }
  // What a placement costs on planned cards, milli-GPU; `picks` are all on such.
  int64_t CostOf(const Inventory& inventory, const Load& load, const Picks& picks) const;

 private:
  struct Board {
    const MigSpace* space = nullptr;
    std::unique_ptr<MigPricer> pricer;
    std::vector<int64_t> counts;  // by profile, as last given to the pricer
    bool works = false;
  };

  static void Follow(Board& board, const Mix& now);

  std::vector<Board> boards_;  // in the order they were seen
  LayoutValueMap values_;
  uint32_t version_ = 0;
  int64_t arrivals_ = 0;
  int64_t next_look_ = 16;
};

}  // namespace tranche
