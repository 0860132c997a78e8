// The thread that writes: collects what is appended, commits it in groups, survives a bad disk.
//
//   waits -> collects -> begins a commit -> writes -> tells what came of it -> waits, or rests
//
// Thread rule: any thread, but for Close and the destructor (one thread, the owner's).
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/ledger/book.h"
#include "scheduler/ledger/files.h"
#include "scheduler/ledger/past/past_book.h"
#include "scheduler/ledger/sqlite/sqlite.h"
#include "scheduler/ledger/worker.h"
#include "scheduler/ports/ledger.h"

namespace tranche::ledger {

// A writing connection and the book kept through it.
struct WriteConnection {
  std::unique_ptr<Database> database;
  std::unique_ptr<Book> book;
  std::unique_ptr<PastBook> past = nullptr;  // null: nothing was told yet
};
// What is in the write-ahead log when a connection is made.
enum class WalTrust : uint8_t {
  kSynced,  // what SQLite shows as committed was synced by the process that committed it
  kNone,    // a sync has failed: it is all moved into the database first, or Unavailable
};
absl::StatusOr<WriteConnection> ConnectForWriting(const std::string& path, int64_t epoch,
                                                  WalTrust trust);

struct WriterOptions {
  std::string path;
  std::string id;  // of the ledger
  int64_t epoch = 1;
  Instant newest;  // the newest time known
  std::chrono::milliseconds group_delay{5};
  std::size_t group_size = 256;
  std::size_t queue_limit = 100'000;  // events; what begins beyond it is dropped with all its life
  Millis past_kept{0};                // as in ledger::Options
  CommitTimes times;
  std::function<bool()> may_write = nullptr;  // likewise
  Workers workers = nullptr;                  // likewise
  std::function<void(const MeterEvent&)> on_disk = nullptr;
  std::vector<std::string> bill_labels = {};  // likewise
};

class Writer {
 public:
  // Starts the thread. `connection` is in order and its file marked as in use.
  Writer(WriterOptions options, WriteConnection connection);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void Append(std::vector<MeterEvent> events, std::vector<WindowClosing> closings);
  void Restore(std::vector<RestoredUse> uses);
  void NoteFleet(FleetNews news);
  void NotePast(PastNews news);
  void WhenCommitted(std::function<void(bool)> done);
  void Heartbeat(Instant now, std::vector<DecayRow> decay);
  LedgerHealth health() const;
  // Something is wrong that commits do not show; in health().problems until it is "".
  void Report(LedgerFault fault, std::string problem);
  int64_t ignored() const;
  // As sqlite_ledger.h says.
  void Close();

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  // What one Append brought; never split between transactions.
  struct Group {
    std::vector<MeterEvent> events;
    std::vector<WindowClosing> closings;
    std::vector<RestoredUse> restored = {};
    std::optional<FleetNews> fleet = std::nullopt;
    PastNews past = {};
    std::size_t size() const {
      return events.size() + closings.size() + restored.size() + (fleet ? 1 : 0) +
             past.pods.size() + past.changes.size() + past.work.size() + past.idle.size() +
             (past.rest ? 1 : 0);
    }
  };
  struct Beat {
    Instant now;
    std::vector<DecayRow> decay;
  };
  struct Waiter {
    uint64_t target;  // of taken_
    std::function<void(bool)> done;
  };
  // What one transaction writes; kept until it is on disk.
  struct Batch {
    std::vector<Group> groups;
    std::size_t events = 0;
    std::optional<Beat> beat;
    bool empty() const { return groups.empty() && !beat; }
  };

  void Enqueue(Group group, std::size_t bad, const std::string& refused);
  // Takes out what there is no room for: whole lives, so that no end is missing of what is opened.
  void DropLives(std::vector<MeterEvent>& events);
  // What is due, of the thread that writes.
  std::optional<Worker::Rest> Step();
  // Answers for a commit that does not end. On a thread of its own, as the other one is held.
  std::optional<Worker::Rest> Guard();
  // With the lock held: a commit begins, or how long until one does; nullopt: never again.
  std::optional<Worker::Rest> Prepare(SteadyTime now);
  void Take();
  // With the lock held: who is told what.
  std::deque<Waiter> Succeed();
  std::deque<Waiter> Fail(const absl::Status& why, SteadyTime now);
  // Without the lock, the thread's own.
  absl::Status Write();
  void Commit();
  void Conclude();
  void End();
  absl::Status Connect();
  // Whether what was just committed has the names it will be looked for by.
  absl::Status CheckNames();
  // The file has lost its name, and lives on while it is open: what it holds gets a name again.
  absl::Status Rescue();
  absl::Status Finish();
  void SaveHead();
  bool HasWork() const { return !queue_.empty() || beat_ || !batch_.empty(); }

  const WriterOptions options_;

  // The thread's own.
  WriteConnection connection_;
  std::optional<FileIdentity> file_;  // what the connection writes
  std::optional<FileIdentity> log_;   // likewise; nullopt: not yet
  bool nameless_ = false;             // one of them was removed or replaced
  Head committed_head_;               // entry 0: of an empty file
  Head saved_head_;                   // likewise; what the file beside is known to hold
  Batch batch_;
  enum class Phase : uint8_t { kWaits, kWrites, kTells };
  Phase phase_ = Phase::kWaits;
  int64_t written_ = 0;   // the time of the entries of a commit
  absl::Status outcome_;  // of the commit, at kTells
  std::chrono::milliseconds pause_;
  std::optional<SteadyTime> collect_until_;
  int64_t late_before_ = 0;  // of books that were thrown away
  int64_t ignored_before_ = 0;
  int64_t first_entry_ = 0;
  std::string past_problem_;  // why the newest of what happened was left out

  mutable std::mutex mutex_;
  std::deque<Group> queue_;
  std::optional<Beat> beat_;
  std::size_t waiting_ = 0;  // events in queue_ and batch_
  uint64_t taken_ = 0;       // groups ever queued
  uint64_t committed_ = 0;   // of them
  std::deque<Waiter> waiters_;
  Instant newest_;
  bool lost_ = false;                       // something was dropped since the queue was empty
  std::optional<SteadyTime> commit_began_;  // of one under way
  // Lives that began while there was no room: no more is kept of them.
  std::unordered_set<std::string> dropped_lives_;
  bool stop_ = false;
  SteadyTime stop_by_;
  SteadyTime rest_until_;  // after a failure
  bool ended_ = false;
  LedgerHealth health_;
  int64_t ignored_ = 0;

  std::unique_ptr<Worker> work_;
  std::unique_ptr<Worker> guard_;
};

}  // namespace tranche::ledger
