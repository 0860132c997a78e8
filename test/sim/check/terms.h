// When a replica led and wrote its ledger, by the history: news that come while nobody does are
// heard later. One that leads without its ledger meters nothing.
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
  // From the end of the last term before `at`, where nobody led then, or from `at`. Whoever had led
  // for ten seconds and `lag` has seen what there was.
  SimTime UnledSince(SimTime at, SimTime lag = SimTime{0}) const;
  // Until ten seconds after somebody led again, where nobody led at `at`; or `at`. One who was lost
  // within `lag` of `at`, by how much news are late, may not have heard.
  SimTime AwareBy(SimTime at, SimTime lag = SimTime{0}) const;
  // When the term that `at` lies in ended, or the one before it where nobody led then: later nobody
  // wrote that all was well. The end of time where it has not.
  SimTime LedUntil(SimTime at) const;
  // When the first began to lead who led for ten seconds; the end of time where nobody did.
  SimTime FirstLed() const;
  // Did one process lead from ten seconds before `from` until after `to`?
  bool LedByOne(SimTime from, SimTime to) const;
  // Did anybody lead for so long, all before `until`?
  bool LedFor(SimTime span, SimTime until) const;
  // Did this process lead with its ledger?
  bool Meters(const std::string& who) const;
  // May a leader take until `until` for the end of what ended at `ended`, if the one before it did
  // not hear of that, as news are up to `lag` late?
  bool MayBeTakenToEnd(SimTime ended, SimTime until, SimTime lag) const;

 private:
  struct Term {
    SimTime from{0};
    std::optional<SimTime> until;
    std::string who;
    SimTime still{0};  // for how long it stood still
    // It has seen what there was when it began, and written that all is well.
    SimTime TakenOver() const;
  };

  void StandStill(const Happening& fault);

  std::vector<Term> terms_;
};

}  // namespace tranche::sim::check
