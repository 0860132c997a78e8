#include "scheduler/ledger/sqlite_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <optional>
#include <utility>

#include "scheduler/ledger/backup.h"
#include "scheduler/ledger/files.h"
#include "scheduler/ledger/integrity.h"
#include "scheduler/ledger/schema.h"
#include "scheduler/ledger/start.h"
#include "scheduler/ledger/writer.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

// With less than this left the disk counts as full, whatever a call of it said.
constexpr int64_t kLittleRoom = 1 << 20;

// A file of our kind and version, created or migrated as needed.
absl::Status PrepareFile(const Options& options) {
  const bool fresh = !FileExists(options.path);
  TRANCHE_ASSIGN_OR_RETURN(Database database, Database::Open(options.path, Access::kCreate));
  // Before any setting: a file of somebody else stays as it is.
  TRANCHE_RETURN_IF_ERROR(CheckIdentity(database, IfEmpty::kAccept));
  TRANCHE_RETURN_IF_ERROR(ApplySettings(database));
  absl::Status status = Migrate(database, MigrationSteps(), [&options] {
    return BackupLedger(options.path, options.now, options.backups).status();
  });
  if (status.ok() && fresh) status = SyncFolder(options.path);
  return status;
}

absl::Status QuickCheck(Database& database, std::chrono::milliseconds budget) {
  const auto end = std::chrono::steady_clock::now() + budget;
  TRANCHE_ASSIGN_OR_RETURN(const std::vector<std::string> faults,
                           CheckIntegrity(database, CheckDepth::kQuick, [end] {
                             return std::chrono::steady_clock::now() >= end;
                           }));
  if (faults.empty()) return absl::OkStatus();
  return absl::DataLossError(faults.front());
}

// The file must hold the entry the head file remembers, with its hash.
absl::Status CheckHead(Database& database, const std::string& path, const Head& head) {
  TRANCHE_ASSIGN_OR_RETURN(
      const std::string hash,
      database.Text(fmt::format("SELECT hash FROM entry WHERE id = {}", head.entry)));
  if (Hex(hash) == head.hash) return absl::OkStatus();
  return absl::DataLossError(fmt::format(
      "expected entry {} with hash {}, found {}, in {}: an older or another file was put in its "
      "place; accept it on purpose or bring the newer one back",
      head.entry, head.hash, hash.empty() ? "no such entry" : Hex(hash), path));
}

absl::Status QuickCheckBeside(const Options& options) {
  TRANCHE_ASSIGN_OR_RETURN(Database database, Database::Open(options.path, Access::kRead));
  TRANCHE_RETURN_IF_ERROR(ApplyReadSettings(database));
  return QuickCheck(database, options.check_budget);
}

// What was found before anything is written.
struct Look {
  bool checked = false;             // by quick_check
  std::optional<StartState> start;  // what was read beside it
  bool forked = false;     // the file goes on from elsewhere than it was, as somebody wants it
  std::string head_fault;  // of the head file; "": none
};

// What the file itself says, through connections that change nothing.
absl::Status CheckUnwritten(const Options& options, const Head& head, Look& look) {
  // SQLite takes the log away from beside an empty file, even when it only reads.
  if (FileBytes(options.path) == 0) {
    return absl::DataLossError(fmt::format("expected a ledger with entry {}, found {} file {}",
                                           head.entry, FileExists(options.path) ? "an empty" : "no",
                                           options.path));
  }
  TRANCHE_ASSIGN_OR_RETURN(Database database, Database::Open(options.path, Access::kRead));
  TRANCHE_RETURN_IF_ERROR(ApplyReadSettings(database));
  TRANCHE_RETURN_IF_ERROR(CheckIdentity(database, IfEmpty::kRefuse));
  TRANCHE_RETURN_IF_ERROR(CheckHead(database, options.path, head));
  TRANCHE_ASSIGN_OR_RETURN(const int64_t version, database.Integer("PRAGMA user_version"));
  // Both read most of a large file.
  std::future<absl::Status> pages =
      std::async(std::launch::async, [&options] { return QuickCheckBeside(options); });
  absl::StatusOr<StartState> start = absl::CancelledError("it is read once it is migrated");
  if (version == kSchemaVersion) {
    start = CheckAndReadHistory(database, options.now - kMeterHorizon, options.past);
  }
  TRANCHE_RETURN_IF_ERROR(pages.get());
  look.checked = true;
  if (version != kSchemaVersion) return absl::OkStatus();
  if (!start.ok()) return start.status();
  // Whatever else is read on the way to the first commit.
  TRANCHE_RETURN_IF_ERROR(ReadId(database).status());
  TRANCHE_RETURN_IF_ERROR(Book::Load(database, options.epoch).status());
  look.start = *std::move(start);
  return absl::OkStatus();
}

absl::StatusOr<Look> LookAtFile(const Options& options) {
  Look look;
  const absl::StatusOr<std::optional<Head>> head = ReadHead(options.path);
  if (absl::IsDataLoss(head.status())) {
    look.head_fault = std::string(head.status().message());
    return look;
  }
  if (!head.ok()) return head.status();
  if (!head->has_value()) return look;
  const absl::Status found = CheckUnwritten(options, **head, look);
  if (found.ok()) return look;
  if (!absl::IsDataLoss(found)) return found;
  TRANCHE_RETURN_IF_ERROR(KeepWalAside(options.path));
  if (!options.accept_rollback) return found;
  look.forked = true;
  return look;
}

}  // namespace

struct SqliteLedger::Impl {
  // Everything up to the first thing that is wrong.
  absl::Status TakeUp();
  // What the file says, against what we are and when.
  absl::Status CheckStart() const;

  Options options;
  Descriptor lock;
  StartState start;
  std::unique_ptr<Writer> writer;
  std::unique_ptr<IntegrityWatch> watch;
};

absl::Status SqliteLedger::Impl::CheckStart() const {
  if (options.epoch < start.epoch) {
    return absl::AbortedError(
        fmt::format("expected epoch {} or later, found {}: a newer writer has written {}",
                    start.epoch, options.epoch, options.path));
  }
  if (options.most_ahead && start.last_time > options.now + *options.most_ahead) {
    return absl::DataLossError(fmt::format(
        "expected no moment after {}, found {}, in {}: mend the machine's clock or, where it was "
        "ahead once, take it back by tranche ledger repair-clock",
        wire::FormatTime(options.now), wire::FormatTime(start.last_time), options.path));
  }
  return absl::OkStatus();
}

absl::Status SqliteLedger::Impl::TakeUp() {
  TRANCHE_RETURN_IF_ERROR(CheckPlace(options.path, options.network));
  if (!options.create && !FileExists(options.path)) {
    return absl::NotFoundError(fmt::format("expected a ledger, found no file {}", options.path));
  }
  TRANCHE_ASSIGN_OR_RETURN(lock, LockLedger(options.path));
  TRANCHE_ASSIGN_OR_RETURN(Look look, LookAtFile(options));
  TRANCHE_RETURN_IF_ERROR(PrepareFile(options));
  if (options.continue_epoch) options.epoch = std::max(options.epoch, LastEpoch(options.path));
  TRANCHE_ASSIGN_OR_RETURN(WriteConnection connection,
                           ConnectForWriting(options.path, options.epoch, WalTrust::kSynced));
  Database& database = *connection.database;
  if (!look.checked) TRANCHE_RETURN_IF_ERROR(QuickCheck(database, options.check_budget));
  if (!look.start) {
    TRANCHE_ASSIGN_OR_RETURN(
        look.start, CheckAndReadHistory(database, options.now - kMeterHorizon, options.past));
  }
  start = *std::move(look.start);
  TRANCHE_RETURN_IF_ERROR(CheckStart());
  TRANCHE_RETURN_IF_ERROR(WriteMeta(database, kCleanKey, 0));
  TRANCHE_RETURN_IF_ERROR(MakeId(database, look.forked ? IdOf::kFork : IdOf::kFile));
  TRANCHE_ASSIGN_OR_RETURN(start.history.ledger, ReadId(database));
  const Book& book = *connection.book;
  if (book.last_entry() > 0) {
    TRANCHE_RETURN_IF_ERROR(WriteHead(options.path, {book.last_entry(), Hex(book.head())}));
  } else {
    ForgetHead(options.path);
  }
  MakeReserve(options.path);
  writer = std::make_unique<Writer>(
      WriterOptions{options.path, start.history.ledger, options.epoch,
                    std::max(options.now, start.last_time), options.group_delay, options.group_size,
                    options.queue_limit, options.past_kept, options.times, options.may_write,
                    options.workers, options.on_disk, options.bill_labels},
      std::move(connection));
  if (!look.head_fault.empty()) writer->Report(LedgerFault::kHead, look.head_fault);
  writer->Append(std::move(start.lost_ends), {});
  watch = std::make_unique<IntegrityWatch>(
      options.path, IntegrityWatch::Times{.at_once = !start.clean, .every = options.check_every},
      options.workers, [writer = writer.get()](std::string fault) {
        writer->Report(LedgerFault::kFile, std::move(fault));
      });
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SqliteLedger>> SqliteLedger::Open(const Options& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  absl::Status taken = impl->TakeUp();
  // The reserve is for a start as well: nothing else would make room then.
  const bool full = IsDiskFull(taken) || (!taken.ok() && FreeBytes(options.path) < kLittleRoom);
  if (full && impl->lock.valid() && FreeReserve(options.path)) {
    impl = std::make_unique<Impl>();
    impl->options = options;
    taken = impl->TakeUp();
  }
  if (!taken.ok()) return taken;
  return std::unique_ptr<SqliteLedger>(new SqliteLedger(std::move(impl)));
}

SqliteLedger::SqliteLedger(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqliteLedger::~SqliteLedger() { Close(); }

void SqliteLedger::Close() {
  impl_->watch->Stop();
  impl_->writer->Close();
  impl_->lock = {};
}

const MeterHistory& SqliteLedger::history() const { return impl_->start.history; }
MeterHistory SqliteLedger::TakeHistory() { return std::exchange(impl_->start.history, {}); }
Instant SqliteLedger::last_time() const { return impl_->start.last_time; }
int64_t SqliteLedger::epoch() const { return impl_->options.epoch; }

bool SqliteLedger::InUse(const std::string& path) {
  return FileExists(path) && absl::IsFailedPrecondition(LockLedger(path).status());
}

absl::StatusOr<Instant> SqliteLedger::RepairClock(const std::string& path, Instant now) {
  if (!FileExists(path)) {
    return absl::NotFoundError(fmt::format("expected a ledger, found no file {}", path));
  }
  TRANCHE_ASSIGN_OR_RETURN(const Descriptor lock, LockLedger(path));
  TRANCHE_ASSIGN_OR_RETURN(Database database, Database::Open(path, Access::kWrite));
  TRANCHE_RETURN_IF_ERROR(CheckIdentity(database, IfEmpty::kRefuse));
  TRANCHE_RETURN_IF_ERROR(ApplySettings(database));
  TRANCHE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
  TRANCHE_ASSIGN_OR_RETURN(const Instant before, ReadLastTime(database));
  if (before <= now) return before;
  TRANCHE_RETURN_IF_ERROR(WriteMeta(database, kHeartbeatKey, now.time_since_epoch().count()));
  TRANCHE_RETURN_IF_ERROR(database.Execute("DELETE FROM decay"));
  TRANCHE_ASSIGN_OR_RETURN(const Instant after, ReadLastTime(database));
  if (after > now) {
    return absl::FailedPreconditionError(fmt::format(
        "expected no entry after {}, found one of {}, in {}: entries never change; put a copy from "
        "before in its place",
        wire::FormatTime(now), wire::FormatTime(after), path));
  }
  TRANCHE_RETURN_IF_ERROR(transaction.Commit());
  return after;
}

int64_t SqliteLedger::LastEpoch(const std::string& path) {
  if (!FileExists(path)) return 0;
  absl::StatusOr<Database> database = Database::Open(path, Access::kRead);
  if (!database.ok() || !ApplyReadSettings(*database).ok()) return 0;
  if (!CheckIdentity(*database, IfEmpty::kRefuse).ok()) return 0;
  return ReadLastEpoch(*database).value_or(0);
}

void SqliteLedger::Append(std::vector<MeterEvent> events, std::vector<WindowClosing> closings) {
  impl_->writer->Append(std::move(events), std::move(closings));
}

void SqliteLedger::Restore(std::vector<RestoredUse> uses) {
  impl_->writer->Restore(std::move(uses));
}

void SqliteLedger::WhenCommitted(std::function<void(bool)> done) {
  impl_->writer->WhenCommitted(std::move(done));
}

void SqliteLedger::NoteFleet(FleetNews news) { impl_->writer->NoteFleet(std::move(news)); }

void SqliteLedger::NotePast(PastNews news) { impl_->writer->NotePast(std::move(news)); }

void SqliteLedger::Heartbeat(Instant now, std::vector<DecayRow> decay) {
  impl_->writer->Heartbeat(now, std::move(decay));
}

LedgerHealth SqliteLedger::health() const { return impl_->writer->health(); }
int64_t SqliteLedger::ignored() const { return impl_->writer->ignored(); }

absl::StatusOr<std::string> SqliteLedger::Backup(Instant now) {
  const std::string& path = impl_->options.path;
  const int64_t needed = 2 * (FileBytes(path) + FileBytes(path + "-wal"));
  const int64_t found = FreeBytes(path);
  if (found < needed) {
    return absl::ResourceExhaustedError(fmt::format(
        "expected {} free bytes for a copy of {}, twice its size, found {}", needed, path, found));
  }
  return BackupLedger(path, now, impl_->options.backups);
}

}  // namespace tranche::ledger
