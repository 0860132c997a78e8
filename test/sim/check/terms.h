// When a replica led, by the history: news that come while nobody leads are heard later.
//
// A plain value; one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "test/sim/base/history.h"

namespace tranche::sim::check {

class Terms {
 public:
  void Hear(const Happening& happening);
  // From the end of the last term before `at`, where nobody led then, or from `at`.
  SimTime UnledSince(SimTime at) const;
  // Until ten seconds after somebody led again, where nobody led at `at`; or `at`.
  SimTime AwareBy(SimTime at) const;
  // May a leader take until `until` for the end of what ended at `ended`, if the one before it did
  // not hear of that, as news are up to `lag` late?
  bool MayBeTakenToEnd(SimTime ended, SimTime until, SimTime lag) const;

 private:
  struct Term {
    SimTime from{0};
    std::optional<SimTime> until;
    std::string who;
  };

  std::vector<Term> terms_;
};

}  // namespace tranche::sim::check
