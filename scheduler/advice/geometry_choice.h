// The ways to cut one GPU that are worth proposing, derived from its board's placements.
//
// mig-parted names no starts: the driver chooses them. It is taken to choose the start that leaves
// most placements open, as was observed (the first of two 3g lands at 4), so that a set is proposed
// only when it comes about that way with the largest instances first (mig-geometry section 4).
// Pure; any thread. Cost: a few milliseconds a board.
#pragma once

#include <span>
#include <vector>

#include "scheduler/advice/repartition.h"
#include "topology/mig.h"

namespace tranche {

struct GeometryChoice {
  std::vector<int> counts;  // parallel to board.profiles; empty: whole
  Geometry geometry;
  bool any_order = true;  // the driver makes it whatever is created first
  int compute_slices = 0;
  int instances = 0;
};

// Sets of these profiles (indices into board.profiles, ascending) that no other one contains. The
// best of equals first: made in any order, most compute, fewest instances.
std::vector<GeometryChoice> GeometryChoices(const MigBoard& board, std::span<const int> profiles);

Geometry GeometryOf(const MigBoard& board, std::span<const int> counts);
// Parallel to board.profiles; empty when the geometry has a profile the board lacks, or is whole.
std::vector<int> CountsOf(const MigBoard& board, const Geometry& geometry);

}  // namespace tranche
