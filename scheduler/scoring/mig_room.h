// Making room for a MIG request that fits nowhere, by moving a few instances (benchmarks B7).
//
// Pure: the caller says which instances may move. The rule: at most floor(width / 4) instances are
// moved for a request of so many eighths of a GPU, widest first, each to the best place elsewhere;
// of all ways the one with the fewest moves, then the highest total value, then the lowest GPU,
// then the highest start.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/scoring/mig_value.h"
#include "topology/mig_space.h"

namespace tranche {

struct MigMove {
  std::size_t from_gpu = 0;
  MigInstance from;
  std::size_t to_gpu = 0;
  int to_start = 0;
};
struct MigRoom {
  std::size_t gpu = 0;
  int start = 0;
  std::vector<MigMove> moves;  // in this order; empty: it fits without
};

// The best place for one instance of `profile` among `layouts` (GPU -> layout), nothing moved:
// highest gain of value, lowest GPU, highest start. Empty `values`: fullest GPU first.
std::optional<MigRoom> BestPlace(const MigSpace& space, const LayoutValues& values,
                                 std::span<const LayoutId> layouts, int profile);
// Like it, with moves where there is no free place. `movable(gpu, instance)` false: stays where it
// is. nullopt: not within `most_moves`. `eighths_per_move`: the 4 of the rule; 2 is worth its moves
// while they are plentiful.
// Cost: one pass over the GPUs for each move of each distinct layout that could make room.
std::optional<MigRoom> MakeRoom(const MigSpace& space, const LayoutValues& values,
                                std::span<const LayoutId> layouts, int profile, int most_moves,
                                const std::function<bool(std::size_t, const MigInstance&)>& movable,
                                int eighths_per_move = 4);

}  // namespace tranche
