// A gang is whole at its start, and never evicted in part.
//
// The rules, for gangs that name their size by Tranche's annotations. Eight minutes after the first
// member of a gang was bound as many have been bound as its size says, or none stays (what the two
// minutes for the rest, the eviction and the longest grace may take). Three minutes after one of
// its members was evicted by us for others, its size at least still holds devices (or would, had
// nobody else removed any), or none does, or a disruption budget has refused one within the last
// minute.
// The first member is bound when all are there: as many as the size says had been made, and had not
// ended when it was judged, or so shortly before that nobody may have heard.
//
// Thread rule and cost: of Checker; a member's Binding walks all pods, and the end does so once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "test/sim/check/checker.h"

namespace tranche::sim::check {

class GangChecker : public Checker {
 public:
  using Checker::Checker;
  void Hear(const Happening& happening) override;
  void AtEnd(const Ending& ending) override;

 private:
  void Bound(const PodLife& pod);
  void Judge(const std::string& gang, const std::vector<const PodLife*>& pods, SimTime end);
  // Did a disruption budget keep one of them from going, shortly before `at`?
  bool WasRefused(const std::vector<const PodLife*>& pods, SimTime at) const;

  std::map<std::string, std::vector<SimTime>> refused_;  // pod's key -> when
};

}  // namespace tranche::sim::check
