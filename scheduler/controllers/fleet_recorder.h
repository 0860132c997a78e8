// Tells the ledger what the fleet offers and what prices are in force, so that use can be billed:
// all of it once, then what has changed.
//
// Thread rule: one thread at a time. Cost of a Tick: every node once, in slices under the engine's
// lock; memory some 200 bytes a node.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "scheduler/facts/fleet.h"
#include "scheduler/host/host.h"
#include "scheduler/ports/ledger.h"

namespace tranche {

class FleetRecorder {
 public:
  // A change is noted when it is seen, which is at most so long after it.
  static constexpr Millis kLookEvery{10'000};
  // What a full queue dropped is told again with all the rest.
  static constexpr Millis kWholeEvery{3'600'000};

  // `ledger` null: does nothing. Both outlive this.
  FleetRecorder(Host& host, Ledger* ledger) : host_(host), ledger_(ledger) {}

  // Nothing before the cluster has been heard of whole: nodes would look gone.
  void Tick(Instant now);

 private:
  using Texts = std::map<std::pair<FleetKind, std::string>, std::string>;
  static Texts TextsOf(const FleetWalk& walk);

  Host& host_;
  Ledger* const ledger_;
  std::optional<Instant> whole_at_;
  Instant looked_;
  Texts told_;
};

}  // namespace tranche
