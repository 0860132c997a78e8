// A ledger that keeps nothing and says that all is on disk; a test overrides what it listens to.
#pragma once

#include <functional>
#include <vector>

#include "scheduler/ports/ledger.h"

namespace tranche::test {

class QuietLedger : public Ledger {
 public:
  void Append(std::vector<MeterEvent>, std::vector<WindowClosing>) override {}
  void Restore(std::vector<RestoredUse>) override {}
  void NoteFleet(FleetNews) override {}
  void NotePast(PastNews) override {}
  void WhenCommitted(std::function<void(bool)> done) override { done(true); }
  void Heartbeat(Instant, std::vector<DecayRow>) override {}
  LedgerHealth health() const override { return {}; }
};

}  // namespace tranche::test
