#include "scheduler/ledger/reader.h"

#include <fmt/format.h>

#include <utility>

#include "scheduler/ledger/files.h"
#include "scheduler/ledger/journal.h"
#include "scheduler/ledger/questions.h"
#include "scheduler/ledger/schema.h"
#include "scheduler/ledger/sqlite.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

absl::StatusOr<Database> OpenAs(const std::string& path, Access access) {
  absl::StatusOr<Database> database = Database::Open(path, access);
  if (!database.ok()) return database;
  TRANCHE_RETURN_IF_ERROR(ApplyReadSettings(*database));
  TRANCHE_RETURN_IF_ERROR(CheckIdentity(*database, IfEmpty::kRefuse));
  return database;
}

// A read-only connection still has to map the -shm file, which it makes (and fills from the -wal)
// where a writer was killed or has closed. In a folder that cannot be written it fails; then the
// file alone is the whole truth if no log lies beside it.
absl::StatusOr<Database> OpenToRead(const std::string& path) {
  absl::StatusOr<Database> database = OpenAs(path, Access::kRead);
  if (database.ok() || !absl::IsPermissionDenied(database.status())) return database;
  if (FileBytes(path + "-wal") > 0) return database;
  absl::StatusOr<Database> immutable = OpenAs(path, Access::kImmutable);
  return immutable.ok() ? std::move(immutable) : std::move(database);
}

}  // namespace

struct Reader::Impl {
  Database database;
};

absl::StatusOr<Reader> Reader::Open(const std::string& path) {
  if (!FileExists(path)) {
    return absl::NotFoundError(fmt::format("expected a ledger, found no file {}", path));
  }
  TRANCHE_ASSIGN_OR_RETURN(Database database, OpenToRead(path));
  return Reader(std::make_unique<Impl>(Impl{std::move(database)}));
}

Reader::Reader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

absl::StatusOr<Instant> Reader::LastTime() { return ReadLastTime(impl_->database); }

absl::StatusOr<VerifyReport> Reader::Verify(
    const std::function<void(int64_t done, int64_t total)>& progress) {
  return VerifyRules(impl_->database, progress);
}

absl::StatusOr<std::vector<ReportRow>> Reader::Report(const ReportQuery& query) {
  return ReportUsage(impl_->database, query);
}

absl::StatusOr<std::vector<RestoredRow>> Reader::Restored(const ReportQuery& query) {
  return RestoredUses(impl_->database, query);
}

absl::Status Reader::Export(const ReportQuery& query,
                            const std::function<void(const ExportRow&)>& row) {
  return ExportIntervals(impl_->database, query, row);
}

}  // namespace tranche::ledger
