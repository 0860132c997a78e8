#include "scheduler/ledger/backup.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <vector>

#include "scheduler/ledger/files.h"
#include "scheduler/ledger/integrity.h"
#include "scheduler/ledger/schema.h"
#include "scheduler/ledger/sqlite/sqlite.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

constexpr int kPagesPerStep = 1024;
constexpr const char* kSuffix = ".backup-";
constexpr const char* kUnfinished = ".part";

// A snapshot held by the source's connection keeps a writer's commits from restarting the copy.
absl::Status CopyPages(Database& source, Database& target) {
  TRANCHE_RETURN_IF_ERROR(source.Execute("BEGIN"));
  if (const auto read = source.Integer("SELECT count(*) FROM sqlite_schema"); !read.ok()) {
    return read.status();
  }
  sqlite3_backup* const copy =
      sqlite3_backup_init(target.handle(), "main", source.handle(), "main");
  if (copy == nullptr) return target.Error("backup");
  int result = SQLITE_OK;
  while (result == SQLITE_OK || result == SQLITE_BUSY) {
    result = sqlite3_backup_step(copy, kPagesPerStep);
  }
  sqlite3_backup_finish(copy);
  if (result != SQLITE_DONE) return target.Error("backup");
  return source.Execute("COMMIT");
}

absl::Status CheckCopy(const std::string& name) {
  // Immutable: nobody writes it, and no -wal or -shm appears beside it.
  TRANCHE_ASSIGN_OR_RETURN(Database copy, Database::Open(name, Access::kImmutable));
  TRANCHE_RETURN_IF_ERROR(CheckIdentity(copy, IfEmpty::kRefuse));
  TRANCHE_ASSIGN_OR_RETURN(const std::vector<std::string> faults,
                           CheckIntegrity(copy, CheckDepth::kFull, [] { return false; }));
  if (faults.empty()) return absl::OkStatus();
  return absl::DataLossError(fmt::format("backup {}: {}", name, faults.front()));
}

absl::Status MakeCopy(Database& source, const std::string& name) {
  {
    TRANCHE_ASSIGN_OR_RETURN(Database target, Database::Open(name, Access::kCreate));
    // A copy that breaks off is thrown away: it needs no journal.
    absl::Status status = target.Execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = FULL");
    if (status.ok()) status = CopyPages(source, target);
    if (!status.ok()) return status;
  }
  return CheckCopy(name);
}

// All finished copies, oldest first.
std::vector<std::filesystem::path> Copies(const std::string& prefix) {
  const std::filesystem::path pattern(prefix);
  const std::filesystem::path parent = pattern.parent_path();
  std::error_code ignored;
  std::vector<std::filesystem::path> backups;
  for (const auto& entry :
       std::filesystem::directory_iterator(parent.empty() ? "." : parent, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(pattern.filename().string()) && !name.ends_with(kUnfinished)) {
      backups.push_back(entry.path());
    }
  }
  std::sort(backups.begin(), backups.end());  // their names are times
  return backups;
}

void RemoveOld(const std::string& prefix, int keep) {
  const std::vector<std::filesystem::path> backups = Copies(prefix);
  std::error_code ignored;
  const auto kept = static_cast<std::size_t>(std::max(keep, 1));
  for (std::size_t i = 0; i + kept < backups.size(); ++i) {
    std::filesystem::remove(backups[i], ignored);
  }
}

}  // namespace

absl::Status CopyLedger(Database& source, const std::string& name) {
  const std::string aside = name + kUnfinished;
  unlink(aside.c_str());
  if (absl::Status made = MakeCopy(source, aside); !made.ok()) {
    unlink(aside.c_str());
    return made;
  }
  if (std::rename(aside.c_str(), name.c_str()) != 0) {
    return absl::UnavailableError(
        fmt::format("rename {}: {}", aside, std::generic_category().message(errno)));
  }
  return SyncFolder(name);
}

absl::StatusOr<std::string> BackupLedger(const std::string& path, Instant now, int keep) {
  const std::string prefix = path + kSuffix;
  const auto second = std::chrono::floor<std::chrono::seconds>(now);
  const std::string name =
      fmt::format("{}{:%Y%m%dT%H%M%S}.{:03}Z", prefix,
                  fmt::gmtime(second.time_since_epoch().count()), (now - second).count());
  TRANCHE_ASSIGN_OR_RETURN(Database source, Database::Open(path, Access::kRead));
  TRANCHE_RETURN_IF_ERROR(ApplyReadSettings(source));
  TRANCHE_RETURN_IF_ERROR(CopyLedger(source, name));
  RemoveOld(prefix, keep);
  return name;
}

std::optional<Instant> NewestBackup(const std::string& path) {
  const std::string prefix = path + kSuffix;
  const std::vector<std::filesystem::path> copies = Copies(prefix);
  for (auto copy = copies.rbegin(); copy != copies.rend(); ++copy) {
    // "20260301T100000.000Z"
    const std::string name = copy->string();
    std::tm time{};
    const char* const rest = strptime(name.c_str() + prefix.size(), "%Y%m%dT%H%M%S", &time);
    if (rest != nullptr && *rest == '.') return Instant(std::chrono::seconds(timegm(&time)));
  }
  return std::nullopt;
}

}  // namespace tranche::ledger
