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
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

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
absl::Status CheckHead(Database& database, const std::string& path,
                       const std::optional<Head>& head) {
  if (!head) return absl::OkStatus();
  TRANCHE_ASSIGN_OR_RETURN(
      const std::string hash,
      database.Text(fmt::format("SELECT hash FROM entry WHERE id = {}", head->entry)));
  if (Hex(hash) == head->hash) return absl::OkStatus();
  return absl::FailedPreconditionError(fmt::format(
      "expected entry {} with hash {}, found {}, in {}: an older or another file was put in its "
      "place; accept it on purpose or bring the newer one back",
      head->entry, head->hash, hash.empty() ? "no such entry" : Hex(hash), path));
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
  TRANCHE_ASSIGN_OR_RETURN(impl->lock, LockLedger(options.path));
  std::optional<Head> head;
  if (!options.accept_rollback) {
    TRANCHE_ASSIGN_OR_RETURN(head, ReadHead(options.path));
    if (head && !FileExists(options.path)) {
      return absl::FailedPreconditionError(fmt::format(
          "expected a ledger with entry {}, found no file {}", head->entry, options.path));
    }
  }
  TRANCHE_RETURN_IF_ERROR(PrepareFile(options));
  if (options.continue_epoch) options.epoch = std::max(options.epoch, LastEpoch(options.path));
  impl->options = options;
  TRANCHE_ASSIGN_OR_RETURN(WriteConnection connection,
                           ConnectForWriting(options.path, options.epoch, WalTrust::kSynced));
  Database& database = *connection.database;
  TRANCHE_RETURN_IF_ERROR(QuickCheck(database, options.check_budget));
  TRANCHE_ASSIGN_OR_RETURN(StartState start,
                           CheckAndReadHistory(database, options.now - kMeterHorizon));
  impl->start = std::move(start);
  TRANCHE_RETURN_IF_ERROR(CheckHead(database, options.path, head));
  if (options.epoch < impl->start.epoch) {
    return absl::FailedPreconditionError(
        fmt::format("expected epoch {} or later, found {}: a newer writer has written {}",
                    impl->start.epoch, options.epoch, options.path));
  }
  TRANCHE_RETURN_IF_ERROR(WriteMeta(database, kCleanKey, 0));
  TRANCHE_RETURN_IF_ERROR(MakeId(database));
  TRANCHE_ASSIGN_OR_RETURN(std::string id, ReadId(database));
  impl->start.history.ledger = id;
  const Book& book = *connection.book;
  if (book.last_entry() > 0) {
    TRANCHE_RETURN_IF_ERROR(WriteHead(options.path, {book.last_entry(), Hex(book.head())}));
  } else {
    ForgetHead(options.path);
  }
  MakeReserve(options.path);
  impl->writer = std::make_unique<Writer>(
      WriterOptions{options.path, id, options.epoch, std::max(options.now, impl->start.last_time),
                    options.group_delay, options.group_size, options.queue_limit,
                    options.may_write},
      std::move(connection));
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
  if (!database.ok() || !CheckIdentity(*database, IfEmpty::kRefuse).ok()) return 0;
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
