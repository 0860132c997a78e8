// The fewest GPUs of a board that hold so many instances of each profile, and how each is cut.
//
// Exact while the counts have few combinations: every GPU is one of the board's undominated sets,
// and all ways to spend them are searched, largest profile first. Beyond, most GPUs are cut
// greedily and only the rest is exact; `at_least` says how far that may be from the best.
// Deterministic.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "scheduler/advice/geometry_choice.h"
#include "topology/mig.h"

namespace tranche {

struct InstanceCover {
  int64_t gpus = 0;
  int64_t at_least = 0;  // no cover has fewer GPUs
  // How many GPUs are cut how, ascending counts (parallel to board.profiles).
  std::vector<std::pair<std::vector<int>, int64_t>> cuts;
};

class CoverFinder {
 public:
  explicit CoverFinder(const MigBoard& board) : board_(&board) {}
  const MigBoard& board() const { return *board_; }

  // `counts`: parallel to board.profiles.
  InstanceCover Find(std::span<const int64_t> counts);

 private:
  using Counts = std::vector<int64_t>;
  struct Best {
    int64_t gpus = 0;
    std::size_t choice = 0;  // of the first GPU; meaningless when gpus is 0
  };
  // What is found for one set of profiles.
  struct Found {
    std::vector<GeometryChoice> choices;
    std::vector<std::size_t> order;  // profiles, largest first
    std::map<Counts, Best> best;
  };

  Found& FoundFor(const Counts& counts);
  static std::size_t Largest(const Found& found, const Counts& counts);
  std::size_t Fullest(const Found& found, const Counts& counts) const;
  int64_t LowerBound(const Counts& counts) const;
  static const Best& Exact(Found& found, const Counts& counts);

  const MigBoard* board_;
  std::map<std::vector<bool>, Found> found_;  // by which profiles are wanted
};

}  // namespace tranche
