#include "scheduler/ledger/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scheduler/ledger/files.h"
#include "scheduler/ledger/schema.h"
#include "topology/base/plant.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{100};
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
  WriteConnection connection;
  connection.database = std::make_unique<Database>(std::move(database));
  TRANCHE_RETURN_IF_ERROR(CheckIdentity(*connection.database, IfEmpty::kRefuse));
  TRANCHE_RETURN_IF_ERROR(ApplySettings(*connection.database));
  // After a failed sync the log may hold transactions that are in no disk's memory but still in the
  // cache, where they look committed. Moving all of it into the database syncs both.
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
      pause_(kFirstPause),
      first_entry_(connection_.book->last_entry()),
      newest_(options_.newest) {
  health_.last_entry = first_entry_;
  health_.head = Hex(connection_.book->head());
  health_.held = connection_.book->held();
  health_.id = options_.id;
  health_.restored = connection_.book->restored();
  thread_ = std::thread([this] { Loop(); });
  guard_ = std::thread([this] { Guard(); });
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

void Writer::Enqueue(Group group, std::size_t bad, const std::string& refused) {
  const std::lock_guard lock(mutex_);
  if (bad > 0) {
    health_.problems[LedgerFault::kRefused] =
        fmt::format("refused {} malformed events: {}", bad, refused);
  }
  for (const MeterEvent& event : group.events) newest_ = std::max(newest_, event.at);
  const std::size_t all = group.size();
  if (stop_) {
    group = {};
  } else {
    DropLives(group.events);
  }
  if (group.size() < all) {
    health_.dropped += static_cast<int64_t>(all - group.size());
    lost_ = true;
  }
  if (group.size() == 0) return;
  waiting_ += group.size();
  ++taken_;
  queue_.push_back(std::move(group));
  changed_.notify_all();
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
  changed_.notify_all();
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
  health_.problems[fault] = std::move(problem);
}

int64_t Writer::ignored() const {
  const std::lock_guard lock(mutex_);
  return ignored_;
}

void Writer::Close() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    stop_by_ = std::chrono::steady_clock::now() + kCloseWithin;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  if (guard_.joinable()) guard_.join();
}

void Writer::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || HasWork(); });
    const bool overdue = stop_ && std::chrono::steady_clock::now() > stop_by_;
    if ((stop_ && !HasWork()) || overdue) break;
    if (HasWork()) {
      Collect(lock);
      Take();
      Commit(lock);
    }
  }
  ended_ = true;
  guard_ends_.notify_all();
  const bool complete = !HasWork();
  std::deque<Waiter> waiters = std::exchange(waiters_, {});
  health_.dropped += static_cast<int64_t>(waiting_);
  lock.unlock();
  for (Waiter& waiter : waiters) waiter.done(/*committed=*/false);
  const absl::Status finished = complete ? Finish() : absl::OkStatus();
  connection_ = {};
  if (!finished.ok()) Report(LedgerFault::kCommit, std::string(finished.message()));
}

void Writer::Guard() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    guard_ends_.wait_for(lock, options_.hang_after / 4, [this] { return ended_; });
    const bool hangs =
        commit_began_ && std::chrono::steady_clock::now() - *commit_began_ >= options_.hang_after;
    if (!hangs || health_.problems.contains(LedgerFault::kHung)) continue;
    health_.writable = false;
    health_.problems[LedgerFault::kHung] =
        fmt::format("expected a commit to end within {} ms, found it still under way, in {}",
                    options_.hang_after.count(), options_.path);
    std::deque<Waiter> waiters = std::exchange(waiters_, {});
    lock.unlock();
    for (Waiter& waiter : waiters) waiter.done(/*committed=*/false);
    lock.lock();
  }
}

// A commit costs one sync, however much it carries: others may join.
void Writer::Collect(std::unique_lock<std::mutex>& lock) {
  if (!batch_.empty()) return;  // a second attempt, of the same
  changed_.wait_for(lock, options_.group_delay,
                    [this] { return stop_ || waiting_ >= options_.group_size; });
}

void Writer::Take() {
  if (!batch_.empty()) return;
  while (!queue_.empty() && batch_.events < options_.group_size) {
    batch_.events += queue_.front().size();
    batch_.groups.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  batch_.beat = std::exchange(beat_, std::nullopt);
}

void Writer::Commit(std::unique_lock<std::mutex>& lock) {
  const int64_t written = newest_.time_since_epoch().count();
  commit_began_ = std::chrono::steady_clock::now();
  lock.unlock();
  const absl::Status status = Write(written);
  // Before anybody relies on it: a log that lost its end is noticed by the head.
  if (status.ok()) SaveHead();
  lock.lock();
  commit_began_.reset();
  health_.problems.erase(LedgerFault::kHung);
  if (status.ok()) {
    Succeed(lock);
  } else {
    Fail(lock, status);
  }
}

absl::Status Writer::Write(int64_t written) {
  if (options_.may_write && !options_.may_write()) {
    return absl::FailedPreconditionError("this process may not write any more");
  }
  if (!connection_.book) {
    TRANCHE_ASSIGN_OR_RETURN(connection_,
                             ConnectForWriting(options_.path, options_.epoch, WalTrust::kNone));
  }
  Book& book = *connection_.book;
  TRANCHE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*connection_.database));
  for (const Group& group : batch_.groups) {
    for (const MeterEvent& event : group.events) {
      TRANCHE_RETURN_IF_ERROR(book.Apply(event, written));
    }
    for (const WindowClosing& closing : group.closings) {
      TRANCHE_RETURN_IF_ERROR(book.Record(closing, written));
    }
    for (const RestoredUse& use : group.restored) {
      TRANCHE_RETURN_IF_ERROR(book.Restore(use, written));
    }
  }
  if (batch_.beat) {
    const int64_t now = batch_.beat->now.time_since_epoch().count();
    TRANCHE_RETURN_IF_ERROR(book.Beat(now, batch_.beat->decay));
  }
  TRANCHE_RETURN_IF_ERROR(book.Flush(Book::Mark::kWhenDue));
  return transaction.Commit();
}

void Writer::Succeed(std::unique_lock<std::mutex>& lock) {
  const Book& book = *connection_.book;
  health_.writable = true;
  health_.problems.erase(LedgerFault::kCommit);
  health_.last_entry = book.last_entry();
  health_.entries = book.last_entry() - first_entry_;
  health_.head = Hex(book.head());
  health_.held = book.held();
  health_.restored = book.restored();
  health_.late = late_before_ + book.late();
  ignored_ = ignored_before_ + book.ignored();
  health_.wal_bytes = FileBytes(options_.path + "-wal");
  waiting_ -= batch_.events;
  committed_ += batch_.groups.size();
  if (waiting_ == 0) lost_ = false;
  batch_ = {};
  pause_ = kFirstPause;
  std::vector<std::function<void(bool)>> answers;
  while (!waiters_.empty() && waiters_.front().target <= committed_) {
    answers.push_back(std::move(waiters_.front().done));
    waiters_.pop_front();
  }
  lock.unlock();
  for (const auto& answer : answers) answer(/*committed=*/true);
  lock.lock();
}

void Writer::Fail(std::unique_lock<std::mutex>& lock, const absl::Status& why) {
  health_.writable = false;
  ++health_.failures;
  health_.problems[LedgerFault::kCommit] = std::string(why.message());
  std::deque<Waiter> waiters = std::exchange(waiters_, {});
  lock.unlock();
  for (Waiter& waiter : waiters) waiter.done(/*committed=*/false);
  // After a failed sync nobody knows which pages are on disk: what was read must be read again.
  // The book is ahead of the file in any case.
  if (connection_.book) {
    late_before_ = health_.late;
    ignored_before_ = ignored_;
  }
  connection_ = {};
  if (IsDiskFull(why)) FreeReserve(options_.path);
  lock.lock();
  const bool stopping = stop_;
  changed_.wait_for(lock, stopping ? kFirstPause : pause_, [&] { return stop_ && !stopping; });
  pause_ = std::min(2 * pause_, kLongestPause);
}

void Writer::SaveHead() {
  const Book& book = *connection_.book;
  if (book.last_entry() == 0) return;
  const absl::Status saved = WriteHead(options_.path, {book.last_entry(), Hex(book.head())});
  if (!saved.ok()) return Report(LedgerFault::kHead, std::string(saved.message()));
  const std::lock_guard lock(mutex_);
  health_.problems.erase(LedgerFault::kHead);
}

absl::Status Writer::Finish() {
  // A heartbeat may have failed last.
  if (!connection_.book) return absl::OkStatus();
  Database& database = *connection_.database;
  TRANCHE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
  absl::Status status = connection_.book->Flush(Book::Mark::kNow);
  // One that was found damaged is checked whole at the next start.
  const bool sound = !health().problems.contains(LedgerFault::kFile);
  if (status.ok()) status = WriteMeta(database, kCleanKey, sound ? 1 : 0);
  if (status.ok()) status = transaction.Commit();
  if (!status.ok()) return status;
  SaveHead();
  return database.Execute("PRAGMA wal_checkpoint(TRUNCATE)");
}

}  // namespace tranche::ledger
