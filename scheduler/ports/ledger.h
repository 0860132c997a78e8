// Where metering is kept for good. Implemented by scheduler/ledger (SQLite); tests have a failing
// one.
//
// Thread rule: any thread. Append never blocks on I/O: it queues, and a writer commits in groups.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/facts/fleet.h"
#include "scheduler/facts/metering.h"
#include "scheduler/facts/past.h"

namespace tranche {

// What can be wrong with a ledger while placement goes on. A closed set: metrics have it as a
// label.
enum class LedgerFault : uint8_t {
  kUnopened,  // it could not be taken up, and nothing is written to it
  kCommit,    // commits fail
  kHung,      // a commit does not end
  kFile,      // a check of the whole file found damage
  kHead,      // the file that remembers the newest entry is damaged or cannot be written
  kRefused,   // events that no ledger can hold were left out
  kLog,       // the write-ahead log grows beyond its bound
  kCopy,      // no copy of the file could be made
  kCount
};
constexpr const char* NameOf(LedgerFault fault) {
  constexpr const char* kNames[] = {"unopened", "commit",  "hung", "file",
                                    "head",     "refused", "log",  "copy"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(LedgerFault::kCount));
  return kNames[static_cast<std::size_t>(fault)];
}
using LedgerProblems = std::map<LedgerFault, std::string>;  // each one line

struct LedgerHealth {
  std::string id;              // of the file, made with it: 32 hex digits
  bool writable = true;        // the last commit succeeded
  LedgerProblems problems;     // what is wrong now, that commits fail among them
  std::string problem;         // the first of them
  int64_t queued = 0;          // events waiting for a commit
  std::optional<Charge> held;  // open in the ledger as of the last commit
  int64_t dropped = 0;         // events lost because the queue was full; must be 0
  int64_t entries = 0;         // committed in this life
  int64_t last_entry = 0;      // id
  std::string head;            // hex of the newest hash
  int64_t wal_bytes = 0;
  int64_t failures = 0;  // commits that failed
  int64_t restored = 0;  // entries in the file that were taken over from checkpoints
  int64_t late = 0;      // entries written more than a minute after they happened
};

class Ledger {
 public:
  virtual ~Ledger() = default;
  // In the order of the calls. Closings go with the events, in one transaction.
  virtual void Append(std::vector<MeterEvent> events, std::vector<WindowClosing> closings) = 0;
  // What checkpoints tell and this ledger lacks, after all that was appended before. Of a leaf the
  // difference to what it has is entered, so that a repeat enters nothing.
  virtual void Restore(std::vector<RestoredUse> uses) = 0;
  // What the fleet offers and costs from then on; what was told last is no news and adds nothing.
  virtual void NoteFleet(FleetNews news) = 0;
  // What happened, to be lived through again: no part of what is charged. Left out where the queue
  // is full.
  virtual void NotePast(PastNews news) = 0;
  // Calls `done(true)` once everything appended before is on disk; done(false) at once when commits
  // fail, and when one does not end in time (what was appended stays queued and is written later).
  // Callbacks come on a thread of the ledger or the caller's, exactly once.
  virtual void WhenCommitted(std::function<void(bool)> done) = 0;
  // We are alive and metering at `now`; and usage that fades, for fair share.
  virtual void Heartbeat(Instant now, std::vector<DecayRow> decay) = 0;
  virtual LedgerHealth health() const = 0;
};

}  // namespace tranche
