#include "scheduler/ledger/writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "scheduler/ledger/backup.h"
#include "scheduler/ledger/files.h"
#include "scheduler/ledger/schema.h"
#include "scheduler/ledger/sqlite/log.h"
#include "scheduler/ledger/sqlite/numbers.h"
#include "topology/base/plant.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLongestPause{30'000};
// Closing tries a failing disk for this long; what is queued then is lost.
constexpr milliseconds kCloseWithin{1'000};
constexpr int64_t kWalAlarmBytes = 64 << 20;

// A pod's life in the ledger: no UID has a newline.
std::string LifeOf(const MeterEvent& event) {
  return fmt::format("{}\n{}", event.uid.str(), event.interval);
}

// Takes out what the tables would refuse; how many, and why the last one.
template <typename Item>
std::size_t Sift(std::vector<Item>& items, std::string& refused) {
  return std::erase_if(items, [&refused](const Item& item) {
    std::string why = Malformed(item);
    if (why.empty()) return false;
    refused = std::move(why);
    return true;
  });
}

}  // namespace

absl::StatusOr<WriteConnection> ConnectForWriting(const std::string& path, int64_t epoch,
                                                  WalTrust trust) {
  TRANCHE_ASSIGN_OR_RETURN(Database database, Database::Open(path, Access::kWrite));
  LeaveLogAlone(database);
  WriteConnection connection;
  connection.database = std::make_unique<Database>(std::move(database));
  TRANCHE_RETURN_IF_ERROR(CheckIdentity(*connection.database, IfEmpty::kRefuse));
  TRANCHE_RETURN_IF_ERROR(ApplySettings(*connection.database));
  // What ApplySettings wrote again must be in the database before a transaction follows it.
  const absl::StatusOr<int64_t> busy =
      connection.database->Integer("PRAGMA wal_checkpoint(TRUNCATE)");
  if (trust == WalTrust::kNone) {
    if (!busy.ok()) return busy.status();
    if (*busy != 0) return absl::UnavailableError("expected no reader at the log, found one");
  }
  TRANCHE_ASSIGN_OR_RETURN(Book book, Book::Load(*connection.database, epoch));
  connection.book = std::make_unique<Book>(std::move(book));
  return connection;
}

Writer::Writer(WriterOptions options, WriteConnection connection)
    : options_(std::move(options)),
      connection_(std::move(connection)),
      pause_(options_.times.first_pause),
      first_entry_(connection_.book->last_entry()),
      newest_(options_.newest) {
  health_.last_entry = first_entry_;
  health_.head = Hex(connection_.book->head());
  committed_head_ = {first_entry_, health_.head};
  file_ = IdentityOf(options_.path);
  log_ = IdentityOf(options_.path + "-wal");
  health_.held = connection_.book->held();
  health_.id = options_.id;
  health_.restored = connection_.book->restored();
  work_ = StartWork(options_.workers, Work::kWrite, [this] { return Step(); });
  guard_ = StartWork(options_.workers, Work::kGuard, [this] { return Guard(); });
}

Writer::~Writer() { Close(); }

void Writer::Append(std::vector<MeterEvent> events, std::vector<WindowClosing> closings) {
  std::string refused;
  const std::size_t bad = Sift(events, refused) + Sift(closings, refused);
  Enqueue({std::move(events), std::move(closings)}, bad, refused);
}

void Writer::Restore(std::vector<RestoredUse> uses) {
  std::string refused;
  const std::size_t bad = Sift(uses, refused);
  Enqueue({{}, {}, std::move(uses)}, bad, refused);
}

void Writer::NoteFleet(FleetNews news) {
  std::string refused;
  const std::size_t bad = Sift(news.facts, refused);
  Group group;
  if (news.whole || !news.facts.empty()) group.fleet = std::move(news);
  Enqueue(std::move(group), bad, refused);
}

void Writer::NotePast(PastNews news) {
  std::string refused;
  const std::size_t bad = Sift(news.pods, refused) + Sift(news.changes, refused) +
                          Sift(news.work, refused) + Sift(news.idle, refused);
  Enqueue({{}, {}, {}, std::nullopt, std::move(news)}, bad, refused);
}

void Writer::Enqueue(Group group, std::size_t bad, const std::string& refused) {
  const std::lock_guard lock(mutex_);
  if (bad > 0) {
    health_.problems[LedgerFault::kRefused] =
        fmt::format("refused {} malformed events: {}", bad, refused);
  }
  for (const MeterEvent& event : group.events) newest_ = std::max(newest_, event.at);
  // What happened never takes the room of what is charged.
  if (stop_ || waiting_ >= options_.queue_limit / 2) group.past = {};
  const std::size_t all = group.size();
  if (stop_) {
    group = {};
  } else {
    DropLives(group.events);
    if (waiting_ >= options_.queue_limit) group.fleet.reset();  // told again with the next whole
  }
  if (group.size() < all) {
    health_.dropped += static_cast<int64_t>(all - group.size());
    lost_ = true;
  }
  if (group.size() == 0) return;
  waiting_ += group.size();
  ++taken_;
  queue_.push_back(std::move(group));
  work_->Wake();
}

void Writer::DropLives(std::vector<MeterEvent>& events) {
  const bool full = waiting_ > 0 && waiting_ + events.size() > options_.queue_limit;
  if (!full && dropped_lives_.empty()) return;
  std::erase_if(events, [this, full](const MeterEvent& event) {
    std::string life = LifeOf(event);
    if (event.kind == MeterKind::kOpen) {
      // Had the life begun when there was room, this would be a repeat, which adds nothing.
      if (full) dropped_lives_.insert(std::move(life));
      return full;
    }
    if (full && TRANCHE_PLANTED(two_open_intervals_stay)) return true;
    const auto dropped = dropped_lives_.find(life);
    if (dropped == dropped_lives_.end()) return false;
    const bool ends = event.kind == MeterKind::kClose || event.kind == MeterKind::kVoid;
    if (ends) dropped_lives_.erase(dropped);
    return true;
  });
}

void Writer::WhenCommitted(std::function<void(bool)> done) {
  bool answer = false;
  {
    const std::lock_guard lock(mutex_);
    answer = (committed_ == taken_ && !lost_) || TRANCHE_PLANTED(promised_before_the_commit);
    if (!answer && !lost_ && health_.writable && !ended_) {
      waiters_.push_back({taken_, std::move(done)});
      return;
    }
  }
  done(answer);
}

void Writer::Heartbeat(Instant now, std::vector<DecayRow> decay) {
  const std::lock_guard lock(mutex_);
  if (stop_) return;
  newest_ = std::max(newest_, now);
  beat_ = Beat{now, std::move(decay)};
  work_->Wake();
}

LedgerHealth Writer::health() const {
  const std::lock_guard lock(mutex_);
  LedgerHealth health = health_;
  health.queued = static_cast<int64_t>(waiting_);
  if (health.wal_bytes > kWalAlarmBytes) {
    health.problems[LedgerFault::kLog] =
        fmt::format("expected a write-ahead log under {} MiB, found {} MiB: a reader holds it open",
                    kWalAlarmBytes >> 20, health.wal_bytes >> 20);
  }
  if (!health.problems.empty()) health.problem = health.problems.begin()->second;
  return health;
}

void Writer::Report(LedgerFault fault, std::string problem) {
  const std::lock_guard lock(mutex_);
  if (problem.empty()) {
    health_.problems.erase(fault);
  } else {
    health_.problems[fault] = std::move(problem);
  }
}

int64_t Writer::ignored() const {
  const std::lock_guard lock(mutex_);
  return ignored_;
}

void Writer::Close() {
  {
    const std::lock_guard lock(mutex_);
    if (!stop_) rest_until_ = {};
    stop_ = true;
    stop_by_ = std::chrono::steady_clock::now() + kCloseWithin;
  }
  work_->Wake();
  work_->Join();
  guard_->Join();
}

std::optional<Worker::Rest> Writer::Step() {
  if (phase_ == Phase::kWrites) {
    Commit();
    return Worker::Rest::zero();
  }
  if (phase_ == Phase::kTells) Conclude();
  std::optional<Worker::Rest> rest;
  {
    const std::lock_guard lock(mutex_);
    rest = Prepare(std::chrono::steady_clock::now());
  }
  if (!rest) End();
  return rest;
}

// A commit costs one sync, however much it carries: others may join.
std::optional<Worker::Rest> Writer::Prepare(SteadyTime now) {
  const auto left = [now](SteadyTime until) {
    return std::chrono::ceil<milliseconds>(until - now);
  };
  const bool overdue = stop_ && now > stop_by_;
  if (overdue || (stop_ && !HasWork())) return std::nullopt;
  if (!HasWork()) return Worker::kUntilWoken;
  if (now < rest_until_) return left(rest_until_);
  if (batch_.empty()) {  // else a second attempt, of the same
    if (!collect_until_) collect_until_ = now + options_.group_delay;
    const bool full = waiting_ >= options_.group_size;
    if (!stop_ && !full && now < *collect_until_) return left(*collect_until_);
    collect_until_.reset();
    Take();
  }
  written_ = newest_.time_since_epoch().count();
  commit_began_ = now;
  phase_ = Phase::kWrites;
  return Worker::Rest::zero();
}

void Writer::End() {
  std::deque<Waiter> waiters;
  bool complete = false;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    complete = !HasWork();
    waiters = std::exchange(waiters_, {});
    health_.dropped += static_cast<int64_t>(waiting_);
    guard_->Wake();
  }
  for (Waiter& waiter : waiters) waiter.done(/*committed=*/false);
  const absl::Status finished = complete ? Finish() : absl::OkStatus();
  connection_ = {};
  if (!finished.ok()) Report(LedgerFault::kCommit, std::string(finished.message()));
}

std::optional<Worker::Rest> Writer::Guard() {
  std::deque<Waiter> waiters;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return std::nullopt;
    const auto now = std::chrono::steady_clock::now();
    const bool hangs = commit_began_ && now - *commit_began_ >= options_.times.hang_after;
    if (hangs && !health_.problems.contains(LedgerFault::kHung)) {
      health_.writable = false;
      health_.problems[LedgerFault::kHung] =
          fmt::format("expected a commit to end within {} ms, found it still under way, in {}",
                      options_.times.hang_after.count(), options_.path);
      waiters = std::exchange(waiters_, {});
    }
  }
  for (Waiter& waiter : waiters) waiter.done(/*committed=*/false);
  return options_.times.hang_after / 4;
}

void Writer::Take() {
  while (!queue_.empty() && batch_.events < options_.group_size) {
    batch_.events += queue_.front().size();
    batch_.groups.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  batch_.beat = std::exchange(beat_, std::nullopt);
}

void Writer::Commit() {
  outcome_ = Write();
  // Before anybody relies on it: a log that lost its end is noticed by the head.
  if (outcome_.ok()) SaveHead();
  phase_ = Phase::kTells;
}

void Writer::Conclude() {
  const absl::Status outcome = std::exchange(outcome_, absl::OkStatus());
  if (outcome.ok() && options_.on_disk) {
    for (const Group& group : batch_.groups) {
      for (const MeterEvent& event : group.events) options_.on_disk(event);
    }
  }
  std::deque<Waiter> waiters;
  {
    const std::lock_guard lock(mutex_);
    commit_began_.reset();
    health_.problems.erase(LedgerFault::kHung);
    waiters = outcome.ok() ? Succeed() : Fail(outcome, std::chrono::steady_clock::now());
  }
  phase_ = Phase::kWaits;
  for (Waiter& waiter : waiters) waiter.done(outcome.ok());
  if (outcome.ok()) return;
  // After a failed sync nobody knows which pages are on disk: what was read must be read again.
  // The book is ahead of the file in any case. All there is of a file without a name is what is
  // open of it.
  if (!nameless_) connection_ = {};
  if (IsDiskFull(outcome)) FreeReserve(options_.path);
}

absl::Status Writer::Connect() {
  saved_head_ = {};  // whatever befell the files, the head may have gone with them
  TRANCHE_ASSIGN_OR_RETURN(connection_,
                           ConnectForWriting(options_.path, options_.epoch, WalTrust::kNone));
  file_ = IdentityOf(options_.path);
  log_ = IdentityOf(options_.path + "-wal");
  if (committed_head_.entry == 0) return absl::OkStatus();
  // What was acknowledged must be in it, whatever was put in its place meanwhile.
  const absl::StatusOr<std::string> hash = connection_.database->Text(
      fmt::format("SELECT hash FROM entry WHERE id = {}", committed_head_.entry));
  if (hash.ok() && Hex(*hash) == committed_head_.hash) return absl::OkStatus();
  connection_ = {};
  if (!hash.ok()) return hash.status();
  return absl::DataLossError(
      fmt::format("expected entry {} with hash {}, found {}, in {}: another file was put in its "
                  "place while it was in use",
                  committed_head_.entry, committed_head_.hash,
                  hash->empty() ? "no such entry" : Hex(*hash), options_.path));
}

absl::Status Writer::CheckNames() {
  const std::optional<FileIdentity> log = IdentityOf(options_.path + "-wal");
  nameless_ = IdentityOf(options_.path) != file_ || !log || (log_ && log != log_);
  if (!nameless_) {
    log_ = log;
    return absl::OkStatus();
  }
  return absl::UnavailableError(fmt::format(
      "expected {} and its log to be what is written, found them removed or replaced while in use",
      options_.path));
}

absl::Status Writer::Rescue() {
  const std::optional<FileIdentity> now = IdentityOf(options_.path);
  if (now == file_) {
    // The log alone is gone, or the file has come back.
    const absl::StatusOr<int64_t> busy =
        connection_.database->Integer("PRAGMA wal_checkpoint(TRUNCATE)");
    if (!busy.ok()) return busy.status();
    if (*busy != 0) return absl::UnavailableError("expected no reader at the log, found one");
  } else {
    // Beside what somebody put there meanwhile.
    const std::string aside = options_.path + ".kept";
    TRANCHE_RETURN_IF_ERROR(CopyLedger(*connection_.database, aside));
    if (!now) {
      if (std::rename(aside.c_str(), options_.path.c_str()) != 0) {
        return absl::UnavailableError(fmt::format("expected to rename {}, could not", aside));
      }
      connection_ = {};
      // The log of the file before tells nothing that this one lacks.
      for (const char* end : {"-wal", "-shm"}) unlink((options_.path + end).c_str());
      TRANCHE_RETURN_IF_ERROR(SyncFolder(options_.path));
    }
  }
  nameless_ = false;
  connection_ = {};
  return absl::OkStatus();
}

absl::Status Writer::Write() {
  if (options_.may_write && !options_.may_write()) {
    return absl::FailedPreconditionError("this process may not write any more");
  }
  if (nameless_ && connection_.database) TRANCHE_RETURN_IF_ERROR(Rescue());
  if (!connection_.book) TRANCHE_RETURN_IF_ERROR(Connect());
  Book& book = *connection_.book;
  if (!connection_.past) {
    book.KeepLabels(options_.bill_labels);
    const PastLimits limits{.kept = options_.past_kept};
    connection_.past = std::make_unique<PastBook>(*connection_.database, limits);
  }
  TRANCHE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*connection_.database));
  for (const Group& group : batch_.groups) {
    for (const MeterEvent& event : group.events) {
      TRANCHE_RETURN_IF_ERROR(book.Apply(event, written_));
    }
    for (const WindowClosing& closing : group.closings) {
      TRANCHE_RETURN_IF_ERROR(book.Record(closing, written_));
    }
    for (const RestoredUse& use : group.restored) {
      TRANCHE_RETURN_IF_ERROR(book.Restore(use, written_));
    }
    if (group.fleet) TRANCHE_RETURN_IF_ERROR(book.Note(*group.fleet, written_));
    TRANCHE_RETURN_IF_ERROR(connection_.past->Keep(group.past, past_problem_));
  }
  if (batch_.beat) {
    TRANCHE_RETURN_IF_ERROR(book.Beat(MillisOf(batch_.beat->now), batch_.beat->decay));
  }
  TRANCHE_RETURN_IF_ERROR(book.Flush(Book::Mark::kWhenDue));
  TRANCHE_RETURN_IF_ERROR(transaction.Commit());
  return CheckNames();
}

std::deque<Writer::Waiter> Writer::Succeed() {
  const Book& book = *connection_.book;
  health_.writable = true;
  health_.problems.erase(LedgerFault::kCommit);
  health_.last_entry = book.last_entry();
  health_.entries = book.last_entry() - first_entry_;
  health_.head = Hex(book.head());
  committed_head_ = {health_.last_entry, health_.head};
  health_.held = book.held();
  health_.restored = book.restored();
  health_.late = late_before_ + book.late();
  if (!past_problem_.empty()) {
    health_.problems[LedgerFault::kRefused] = "what happened was not kept: " + past_problem_;
  }
  ignored_ = ignored_before_ + book.ignored();
  health_.wal_bytes = FileBytes(options_.path + "-wal");
  waiting_ -= batch_.events;
  committed_ += batch_.groups.size();
  if (waiting_ == 0) lost_ = false;
  batch_ = {};
  pause_ = options_.times.first_pause;
  std::deque<Waiter> answered;
  while (!waiters_.empty() && waiters_.front().target <= committed_) {
    answered.push_back(std::move(waiters_.front()));
    waiters_.pop_front();
  }
  return answered;
}

std::deque<Writer::Waiter> Writer::Fail(const absl::Status& why, SteadyTime now) {
  health_.writable = false;
  ++health_.failures;
  health_.problems[LedgerFault::kCommit] = std::string(why.message());
  if (connection_.book) {
    late_before_ = health_.late;
    ignored_before_ = ignored_;
  }
  // It may be moved back, and people are to see what has happened.
  if (nameless_) pause_ = std::max(pause_, options_.times.nameless_pause);
  rest_until_ = now + (stop_ ? options_.times.first_pause : pause_);
  pause_ = std::min(2 * pause_, kLongestPause);
  return std::exchange(waiters_, {});
}

void Writer::SaveHead() {
  const Book& book = *connection_.book;
  if (book.last_entry() == 0) return;
  // Heartbeats commit without adding an entry.
  Head head = {book.last_entry(), Hex(book.head())};
  if (head == saved_head_) return;
  const absl::Status saved = WriteHead(options_.path, head);
  if (!saved.ok()) return Report(LedgerFault::kHead, std::string(saved.message()));
  saved_head_ = std::move(head);
  const std::lock_guard lock(mutex_);
  health_.problems.erase(LedgerFault::kHead);
}

absl::Status Writer::Finish() {
  // A heartbeat may have failed last.
  if (!connection_.book) return absl::OkStatus();
  if (!CheckNames().ok()) {
    TRANCHE_RETURN_IF_ERROR(Rescue());
    TRANCHE_RETURN_IF_ERROR(Connect());
  }
  Database& database = *connection_.database;
  TRANCHE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
  absl::Status status = connection_.book->Flush(Book::Mark::kNow);
  // One that was found damaged is checked whole at the next start.
  const bool sound = !health().problems.contains(LedgerFault::kFile);
  if (status.ok()) status = WriteMeta(database, kCleanKey, sound ? 1 : 0);
  if (status.ok()) status = transaction.Commit();
  if (!status.ok()) return status;
  SaveHead();
  return FinishLog(database);
}

}  // namespace tranche::ledger
