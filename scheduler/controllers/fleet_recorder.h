// Tells the ledger what the fleet offers, what of it is stranded and what prices are in force, so
// that use can be billed: all of it once, then what has changed.
//
// Thread rule: one thread at a time. Cost of a Tick: every node once, in slices under the engine's
// lock; memory some 200 bytes a node.
// What is stranded changes with every pod that comes: an entry of at most 250 bytes every ten
// minutes for each kind of GPU, so at most 13 MB a year and kind.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "scheduler/facts/fleet.h"
#include "scheduler/host/host.h"
#include "scheduler/ledger/bill/fleet_text.h"
#include "scheduler/ports/ledger.h"

namespace tranche {

class FleetRecorder {
 public:
  // A change is noted when it is seen, which is at most so long after it.
  static constexpr Millis kLookEvery{10'000};
  // What is stranded is asked for so often, and told where it is another by a hundredth of the
  // kind's GPUs and a tenth of a GPU.
  static constexpr Millis kStrandedEvery{600'000};
  // Kinds beyond are not told of: what nobody holds of them is free.
  static constexpr std::size_t kMostKinds = 256;
  // What a full queue dropped is told again with all the rest.
  static constexpr Millis kWholeEvery{3'600'000};

  // `ledger` null: does nothing. Both outlive this.
  FleetRecorder(Host& host, Ledger* ledger) : host_(host), ledger_(ledger) {}

  // Nothing before the cluster has been heard of whole: nodes would look gone.
  void Tick(Instant now);

 private:
  using Texts = std::map<std::pair<FleetKind, std::string>, std::string>;
  Texts TextsOf(const FleetWalk& walk) const;
  // Weighs what was told last of each kind of GPU against what is so now.
  void TakeStranded(const FleetWalk& walk);

  Host& host_;
  Ledger* const ledger_;
  std::optional<Instant> whole_at_;
  Instant looked_;
  std::optional<Instant> stranded_at_;
  std::map<std::string, ledger::StrandedGpus> stranded_;  // by ledger::KindText, as it is told
  Texts told_;
};

}  // namespace tranche
