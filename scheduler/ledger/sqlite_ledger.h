// The ledger in one SQLite file: append-only, double entry, hash-chained, written by one thread.
//
// Source: hazards E (settings, rules 1 to 6, hazards 48 to 56). Format: docs/ledger_format.md.
// One connection writes and checkpoints; readers open their own, read-only. Group commit: up to
// 5 ms or 256 events, one transaction, waiters answered after COMMIT. When a commit fails the batch
// stays queued (at most 100,000 events) and is tried again on a reopened connection with growing
// pauses; such entries are marked late. Never a crash loop.
//
// Thread rule: any thread, as scheduler/ports/ledger.h says.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/ledger/files.h"
#include "scheduler/ledger/history.h"
#include "scheduler/ledger/worker.h"
#include "scheduler/ports/ledger.h"

namespace tranche::ledger {

struct Options {
  std::string path;
  int64_t epoch = 1;            // of the writer; stored with every entry, never falls
  bool continue_epoch = false;  // true: that of the last entry, where it is higher
  // Asked before every commit; false: it fails, as one does on a bad disk. Null: always true.
  std::function<bool()> may_write = nullptr;
  Instant now;  // of the engine's clock, for times of our own entries
  PastForm past = PastForm::kEvents;
  bool create = true;            // false: a missing file is an error (NotFound)
  bool accept_rollback = false;  // take up a file that is older than its head file remembers
  NetworkFiles network = NetworkFiles::kRefuse;
  // The newest moment of the file may be so far after `now`; nullopt: any. A clock that was decades
  // ahead for a second would else be believed for ever.
  std::optional<Millis> most_ahead = std::nullopt;
  std::chrono::milliseconds check_budget{2'000};                  // of quick_check at start
  std::chrono::milliseconds check_every{std::chrono::hours(24)};  // all of the file, beside writing
  // What happened longer ago is forgotten; zero: nothing ever is.
  Millis past_kept = std::chrono::hours(24 * 35);
  // Labels of pods that are kept with what they hold, by which bills can tell them apart; beyond
  // kMostBillLabels none is.
  std::vector<std::string> bill_labels = {};
  int backups = 7;  // kept by Backup
  std::chrono::milliseconds group_delay{5};
  std::size_t group_size = 256;
  std::size_t queue_limit = 100'000;
  CommitTimes times;
  Workers workers = nullptr;  // null: threads
  // Hears of each event of a commit that succeeded, before anybody who waits is told. Null: nobody.
  std::function<void(const MeterEvent&)> on_disk = nullptr;
};

class SqliteLedger : public Ledger {
 public:
  // Locks the file against a second process, compares it with its head file and runs quick_check
  // before anything is written, sets and reads back every setting, migrates (after a backup),
  // checks rules 1 to 3 of what came since the last clean close, and reads the history of the last
  // kMeterHorizon before options.now. On a full disk it gives the reserve away.
  // Errors, one line each. For good: InvalidArgument and NotFound (a wrong path),
  // FailedPrecondition (another process has it, a newer version). Perhaps for now, and the file
  // stays as it is: DataLoss (a check failed, an older or another file, no ledger, a moment too far
  // ahead), PermissionDenied, ResourceExhausted, Unavailable, Aborted (a newer writer has written),
  // Internal.
  static absl::StatusOr<std::unique_ptr<SqliteLedger>> Open(const Options& options);
  ~SqliteLedger() override;
  // Another process writes the file at this moment.
  static bool InUse(const std::string& path);
  // Takes back a heartbeat later than `now`, which a clock that was wrong has written, while nobody
  // writes the file; usage that fades is counted anew by then. The newest moment of the file after
  // it. Errors: as Open; FailedPrecondition where entries are of that time, which never change.
  static absl::StatusOr<Instant> RepairClock(const std::string& path, Instant now);
  // Of the last entry, beside a writer; 0: there is none, or it is unknown.
  static int64_t LastEpoch(const std::string& path);
  // Commits what is queued, checkpoints, marks a clean close. Idempotent; within 5 s.
  void Close();

  // As of Open; the devices of its events are left out. Events carry entry numbers as `sequence`.
  const MeterHistory& history() const;
  // Hands it over: some 600 bytes an event, 40 a life that ended with PastForm::kShort.
  MeterHistory TakeHistory();
  // The newest time in the file: a clock that starts must not start before it.
  Instant last_time() const;
  // What entries are written with.
  int64_t epoch() const;

  void Append(std::vector<MeterEvent> events, std::vector<WindowClosing> closings) override;
  void Restore(std::vector<RestoredUse> uses) override;
  void NoteFleet(FleetNews news) override;
  void NotePast(PastNews news) override;
  void WhenCommitted(std::function<void(bool)> done) override;
  void Heartbeat(Instant now, std::vector<DecayRow> decay) override;
  LedgerHealth health() const override;
  // Events that added nothing: repeats, and ends of what is not open.
  int64_t ignored() const;

  // A consistent copy beside a running writer, in small steps, checked (integrity_check) before it
  // gets its name `path`.backup-<UTC time>; the oldest beyond options.backups go. Only where twice
  // the room is free, so that a copy never fills the ledger's own disk (ResourceExhausted).
  absl::StatusOr<std::string> Backup(Instant now);

 private:
  struct Impl;
  explicit SqliteLedger(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tranche::ledger
