// Waits for a ledger's writer.
//
// Thread rule: any thread but the ledger's own.
#pragma once

#include "absl/synchronization/notification.h"
#include "scheduler/ports/ledger.h"

namespace tranche::bench {

// True once everything appended is on disk; false: it could not be written.
inline bool Committed(Ledger& ledger) {
  absl::Notification told;
  bool committed = false;
  ledger.WhenCommitted([&](bool done) {
    committed = done;
    told.Notify();
  });
  told.WaitForNotification();
  return committed;
}

}  // namespace tranche::bench
