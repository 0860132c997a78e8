#include "scheduler/ledger/sqlite/sqlite.h"

#include <fmt/format.h>

#include <utility>

#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

constexpr const char* kDiskFull = "disk is full";

absl::StatusCode CodeOf(int result) {
  switch (result & 0xff) {
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return absl::StatusCode::kPermissionDenied;
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return absl::StatusCode::kDataLoss;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_IOERR:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_INTERRUPT:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::Status ErrorOf(sqlite3* handle, std::string_view doing) {
  const int result = handle == nullptr ? SQLITE_NOMEM : sqlite3_extended_errcode(handle);
  const char* const file = handle == nullptr ? nullptr : sqlite3_db_filename(handle, "main");
  if ((result & 0xff) == SQLITE_NOTADB && file != nullptr) {
    return absl::DataLossError(
        fmt::format("expected a ledger, found no SQLite database in {}", file));
  }
  const char* const said = (result & 0xff) == SQLITE_FULL ? kDiskFull
                           : handle == nullptr            ? sqlite3_errstr(result)
                                                          : sqlite3_errmsg(handle);
  return absl::Status(CodeOf(result), fmt::format("{}: {} (SQLite {}), in {}", doing, said, result,
                                                  file == nullptr ? "" : file));
}

// What a failed statement was doing, by its first words.
std::string_view Beginning(const char* sql) {
  constexpr std::size_t kShown = 40;
  const std::string_view text = sql == nullptr ? "" : sql;
  return text.substr(0, std::min(text.find('\n'), kShown));
}

// As a URI, so that immutable can be said; everything special in the path is escaped.
std::string Uri(const std::string& path, std::string_view parameters) {
  std::string uri = "file:";
  for (const char c : path) {
    const bool plain = c == '/' || c == '.' || c == '-' || c == '_' || (c >= '0' && c <= '9') ||
                       (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    uri += plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return uri.append(parameters);
}

}  // namespace

absl::StatusOr<bool> Statement::Row() {
  const int result = sqlite3_step(handle_.get());
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) {
    Reset();
    return false;
  }
  absl::Status error =
      ErrorOf(sqlite3_db_handle(handle_.get()), Beginning(sqlite3_sql(handle_.get())));
  Reset();
  return error;
}

absl::Status Statement::Run() {
  while (true) {
    TRANCHE_ASSIGN_OR_RETURN(const bool row, Row());
    if (!row) return absl::OkStatus();
  }
}

std::string_view Statement::Bytes(int column) {
  const void* const bytes = sqlite3_column_blob(handle_.get(), column);
  const int size = sqlite3_column_bytes(handle_.get(), column);
  return bytes == nullptr
             ? std::string_view()
             : std::string_view(static_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

void Statement::BindOne(int index, std::string_view text) {
  // An empty view may have no address, which SQLite would take for NULL.
  sqlite3_bind_text64(handle_.get(), index, text.empty() ? "" : text.data(), text.size(),
                      SQLITE_STATIC, SQLITE_UTF8);
}

void Statement::BindOne(int index, const Blob& blob) {
  sqlite3_bind_blob64(handle_.get(), index, blob.bytes.empty() ? "" : blob.bytes.data(),
                      blob.bytes.size(), SQLITE_STATIC);
}

absl::StatusOr<Database> Database::Open(const std::string& path, Access access) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_URI;
  switch (access) {
    case Access::kRead:
    case Access::kImmutable:
      flags |= SQLITE_OPEN_READONLY;
      break;
    case Access::kWrite:
      flags |= SQLITE_OPEN_READWRITE;
      break;
    case Access::kCreate:
      flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
      break;
  }
  sqlite3* handle = nullptr;
  const std::string uri = Uri(path, access == Access::kImmutable ? "?immutable=1" : "");
  const int result = sqlite3_open_v2(uri.c_str(), &handle, flags, nullptr);
  Database database(handle);
  if (result != SQLITE_OK) return database.Error("open " + path);
  return database;
}

absl::Status Database::Execute(const std::string& sql) {
  if (sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) {
    return absl::OkStatus();
  }
  return Error(Beginning(sql.c_str()));
}

absl::StatusOr<Statement> Database::Prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                         SQLITE_PREPARE_PERSISTENT, &statement, nullptr) != SQLITE_OK) {
    return Error(std::string("prepare ").append(sql.substr(0, 60)));
  }
  return Statement(statement);
}

absl::StatusOr<int64_t> Database::Integer(std::string_view sql) {
  TRANCHE_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  TRANCHE_ASSIGN_OR_RETURN(const bool row, statement.Row());
  return row ? statement.Integer(0) : 0;
}

absl::StatusOr<std::string> Database::Text(std::string_view sql) {
  TRANCHE_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  TRANCHE_ASSIGN_OR_RETURN(const bool row, statement.Row());
  return row ? std::string(statement.Bytes(0)) : std::string();
}

absl::Status Database::Error(std::string_view doing) const { return ErrorOf(handle(), doing); }

absl::Status Database::RunKept(Statement& kept, std::string_view sql) {
  if (!kept.prepared()) {
    TRANCHE_ASSIGN_OR_RETURN(kept, Prepare(sql));
  }
  return kept.Run();
}

absl::StatusOr<Transaction> Transaction::Begin(Database& database) {
  TRANCHE_RETURN_IF_ERROR(database.RunKept(database.begin_, "BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
  // Some errors roll back by themselves; then there is nothing to undo, and the refusal says so.
  if (database_ != nullptr) database_->Execute("ROLLBACK").IgnoreError();
}

absl::Status Transaction::Commit() {
  absl::Status committed = database_->RunKept(database_->commit_, "COMMIT");
  if (committed.ok()) database_ = nullptr;
  return committed;
}

bool IsDiskFull(const absl::Status& status) {
  return status.message().find(kDiskFull) != absl::string_view::npos;
}

}  // namespace tranche::ledger
