// The units one step of the planner may evict for a region, without those that cannot be in the
// cheapest plan.
//
// Regions that ask for the same charges with the same marks are of one kind: they share everything
// but who holds devices in them. Outside of a region units only give quota back, so of units that
// are alike (leaf, rank, charge, marks, number of pods, no budget) only the cheapest few matter: as
// many as cover the most quota could need. One more could be dropped, and a dearer one exchanged.
//
// Not thread-safe. Cost: O(units) for each step and kind; once O(units) and sorting those that
// could be victims, if quota is short.
#pragma once

#include <cstddef>
#include <vector>

#include "quota/preemption/reclaim_rules.h"

namespace tranche {

class ReclaimCandidates {
 public:
  // `problem` and `rules` must outlive this.
  ReclaimCandidates(const ReclaimProblem& problem, ReclaimRules& rules);

  void Start(const ReclaimRules::Step& step);
  std::size_t KindOf(std::size_t region) const { return kind_of_[region]; }
  // Quota would admit the preemptor with every candidate gone.
  bool Possible(std::size_t region);
  // Candidates that hold devices in the region, ascending. Where its devices fit as it is, only
  // those that have pods elsewhere too: they cost more here than from outside.
  void Holders(std::size_t region, bool fits, std::vector<int>& units);
  // At most so many are appended below.
  std::size_t OutsideCount(std::size_t region) { return Ready(region).outside; }
  // Units were left out that the cheapest plan may hold: only where R1 chooses.
  bool IsCut(std::size_t region) { return Ready(region).cut; }
  // Appends the others that may be needed for quota's sake; none of `holders`.
  void AppendOutside(std::size_t region, const std::vector<int>& holders, std::vector<int>& units);

 private:
  // Units that are alike, or one that is like no other.
  struct Alike {
    std::vector<int> units;
    bool sorted = false;  // cheapest first
  };
  struct Pool {
    std::size_t enough = 0;
    std::size_t alike = 0;  // in alike_
  };
  struct Kind {
    std::size_t region = 0;  // one of them
    bool ready = false;      // for the step
    bool possible = false;
    std::vector<char> candidate;  // by unit
    std::vector<Pool> pools;
    std::size_t outside = 0;  // that the pools give at most
    bool cut = false;
  };

  void FindKinds();
  Kind& Ready(std::size_t region);
  void FillPools(Kind& kind);
  void FindAlike();
  const std::vector<int>& CheapestFirst(std::size_t alike);
  const VictimUnit& UnitAt(int unit) const {
    return problem_.units[static_cast<std::size_t>(unit)];
  }

  const ReclaimProblem& problem_;
  ReclaimRules& rules_;
  ReclaimRules::Step step_;
  std::vector<std::size_t> kind_of_;  // by region
  std::vector<Kind> kinds_;
  std::vector<std::vector<int>> holders_;  // by region: units with devices there, ascending
  std::vector<Alike> alike_;               // of all units; made when first needed
  std::vector<int> scratch_;
};

}  // namespace tranche
