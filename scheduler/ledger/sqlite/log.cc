#include "scheduler/ledger/sqlite/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace tranche::ledger {

absl::Status WriteLogAgain(Database& database) {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(database.handle(), "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
  if (file == nullptr || file->pMethods == nullptr) return absl::OkStatus();  // there is none
  const auto failed = [&database](std::string_view doing, int code) {
    return absl::UnavailableError(fmt::format("{} the log again: {} (SQLite {}), in {}", doing,
                                              sqlite3_errstr(code), code,
                                              sqlite3_db_filename(database.handle(), "main")));
  };
  sqlite3_int64 size = 0;
  if (const int code = file->pMethods->xFileSize(file, &size); code != SQLITE_OK)
    return failed("measuring", code);
  constexpr sqlite3_int64 kPiece = 65'536;
  std::string piece;
  for (sqlite3_int64 at = 0; at < size; at += kPiece) {
    piece.resize(static_cast<std::size_t>(std::min(kPiece, size - at)));
    const int bytes = static_cast<int>(piece.size());
    int code = file->pMethods->xRead(file, piece.data(), bytes, at);
    if (code != SQLITE_OK) return failed("reading", code);
    code = file->pMethods->xWrite(file, piece.data(), bytes, at);
    if (code != SQLITE_OK) return failed("writing", code);
  }
  if (size == 0) return absl::OkStatus();
  const int code = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
  return code == SQLITE_OK ? absl::OkStatus() : failed("syncing", code);
}

void LeaveLogAlone(Database& database) {
  sqlite3_db_config(database.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

absl::Status FinishLog(Database& database) {
  const absl::Status moved = database.Execute("PRAGMA wal_checkpoint(TRUNCATE)");
  if (moved.ok())
    sqlite3_db_config(database.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
  return moved;
}

}  // namespace tranche::ledger
