#include "scheduler/ledger/sqlite_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "scheduler/ledger/backup.h"
#include "scheduler/ledger/files.h"
#include "scheduler/ledger/integrity.h"
#include "scheduler/ledger/schema.h"
#include "scheduler/ledger/start.h"
#include "scheduler/ledger/watch.h"
#include "scheduler/ledger/writer.h"

namespace tranche::ledger {
namespace {

// A file of our kind and version, created or migrated as needed.
absl::Status PrepareFile(const Options& options) {
  const bool fresh = !FileExists(options.path);
  absl::StatusOr<Database> database = Database::Open(options.path, Access::kCreate);
  if (!database.ok()) return database.status();
  // Before any setting: a file of somebody else stays as it is.
  if (absl::Status status = CheckIdentity(*database, true); !status.ok()) return status;
  if (absl::Status status = ApplySettings(*database); !status.ok()) return status;
  absl::Status status = Migrate(*database, MigrationSteps(), [&options] {
    return BackupLedger(options.path, options.now, options.backups).status();
  });
  if (status.ok() && fresh) status = SyncFolder(options.path);
  return status;
}

absl::Status QuickCheck(Database& database, std::chrono::milliseconds budget) {
  const auto end = std::chrono::steady_clock::now() + budget;
  const absl::StatusOr<std::vector<std::string>> faults = CheckIntegrity(
      database, CheckDepth::kQuick, [end] { return std::chrono::steady_clock::now() >= end; });
  if (!faults.ok()) return faults.status();
  if (faults->empty()) return absl::OkStatus();
  return absl::DataLossError(faults->front());
}

// The file must hold the entry the head file remembers, with its hash.
absl::Status CheckHead(Database& database, const std::string& path,
                       const std::optional<Head>& head) {
  if (!head) return absl::OkStatus();
  const absl::StatusOr<std::string> hash =
      database.Text(fmt::format("SELECT hash FROM entry WHERE id = {}", head->entry));
  if (!hash.ok()) return hash.status();
  if (Hex(*hash) == head->hash) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "expected entry {} with hash {}, found {}, in {}: an older or another file was put in its "
      "place; accept it on purpose or bring the newer one back",
      head->entry, head->hash, hash->empty() ? "no such entry" : Hex(*hash), path));
}

}  // namespace

struct SqliteLedger::Impl {
  Options options;
  Descriptor lock;
  StartState start;
  std::unique_ptr<Writer> writer;
  std::unique_ptr<IntegrityWatch> watch;
};

absl::StatusOr<std::unique_ptr<SqliteLedger>> SqliteLedger::Open(const Options& given) {
  Options options = given;
  if (!options.create && !FileExists(options.path)) {
    return absl::NotFoundError(fmt::format("expected a ledger, found no file {}", options.path));
  }
  auto impl = std::make_unique<Impl>();
  absl::StatusOr<Descriptor> lock = LockLedger(options.path);
  if (!lock.ok()) return lock.status();
  impl->lock = std::move(*lock);
  std::optional<Head> head;
  if (!options.accept_rollback) {
    absl::StatusOr<std::optional<Head>> remembered = ReadHead(options.path);
    if (!remembered.ok()) return remembered.status();
    head = std::move(*remembered);
    if (head && !FileExists(options.path)) {
      return absl::FailedPreconditionError(fmt::format(
          "expected a ledger with entry {}, found no file {}", head->entry, options.path));
    }
  }
  if (absl::Status status = PrepareFile(options); !status.ok()) return status;
  if (options.continue_epoch) options.epoch = std::max(options.epoch, LastEpoch(options.path));
  impl->options = options;
  absl::StatusOr<WriteConnection> connection =
      ConnectForWriting(options.path, options.epoch, WalTrust::kSynced);
  if (!connection.ok()) return connection.status();
  Database& database = *connection->database;
  if (absl::Status status = QuickCheck(database, options.check_budget); !status.ok()) return status;
  absl::StatusOr<StartState> start = CheckAndReadHistory(database, options.now - kMeterHorizon);
  if (!start.ok()) return start.status();
  impl->start = std::move(*start);
  if (absl::Status status = CheckHead(database, options.path, head); !status.ok()) return status;
  if (options.epoch < impl->start.epoch) {
    return absl::FailedPreconditionError(
        fmt::format("expected epoch {} or later, found {}: a newer writer has written {}",
                    impl->start.epoch, options.epoch, options.path));
  }
  if (absl::Status status = WriteMeta(database, kCleanKey, 0); !status.ok()) return status;
  if (absl::Status status = MakeId(database); !status.ok()) return status;
  absl::StatusOr<std::string> id = ReadId(database);
  if (!id.ok()) return id.status();
  impl->start.history.ledger = *id;
  const Book& book = *connection->book;
  if (book.last_entry() > 0) {
    absl::Status saved = WriteHead(options.path, {book.last_entry(), Hex(book.head())});
    if (!saved.ok()) return saved;
  } else {
    ForgetHead(options.path);
  }
  MakeReserve(options.path);
  impl->writer = std::make_unique<Writer>(
      WriterOptions{options.path, *id, options.epoch, std::max(options.now, impl->start.last_time),
                    options.group_delay, options.group_size, options.queue_limit,
                    options.may_write},
      std::move(*connection));
  impl->watch = std::make_unique<IntegrityWatch>(
      options.path, !impl->start.clean,
      [writer = impl->writer.get()](std::string fault) { writer->Report(std::move(fault)); });
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
void SqliteLedger::ForgetHistory() { impl_->start.history = {}; }
Instant SqliteLedger::last_time() const { return impl_->start.last_time; }
int64_t SqliteLedger::epoch() const { return impl_->options.epoch; }

bool SqliteLedger::InUse(const std::string& path) {
  return FileExists(path) && absl::IsFailedPrecondition(LockLedger(path).status());
}

int64_t SqliteLedger::LastEpoch(const std::string& path) {
  if (!FileExists(path)) return 0;
  absl::StatusOr<Database> database = Database::Open(path, Access::kRead);
  if (!database.ok() || !CheckIdentity(*database, false).ok()) return 0;
  return database->Integer("SELECT coalesce((SELECT epoch FROM entry ORDER BY id DESC LIMIT 1), 0)")
      .value_or(0);
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

void SqliteLedger::Heartbeat(Instant now, std::vector<DecayRow> decay) {
  impl_->writer->Heartbeat(now, std::move(decay));
}

LedgerHealth SqliteLedger::health() const { return impl_->writer->health(); }
int64_t SqliteLedger::ignored() const { return impl_->writer->ignored(); }

absl::StatusOr<std::string> SqliteLedger::Backup(Instant now) {
  return BackupLedger(impl_->options.path, now, impl_->options.backups);
}

}  // namespace tranche::ledger
