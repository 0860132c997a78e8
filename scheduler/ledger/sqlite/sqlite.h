// SQLite with owners and absl::Status: a connection, a prepared statement, a transaction.
//
// Thread rule: one thread at a time per connection and everything made from it. Errors: NotFound,
// PermissionDenied (cannot be opened or written), DataLoss (damaged, or no database at all),
// ResourceExhausted (disk full, no memory), Unavailable (I/O error, busy), Internal; one line: what
// was done, what SQLite said, its extended code, the file.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tranche::ledger {

enum class Access {
  kRead,       // beside a writer, or what one left behind
  kImmutable,  // a file nobody writes, on a medium that cannot be written
  kWrite,
  kCreate,
};

// A prepared statement. Texts that are bound must outlive the run; texts that are read live until
// the next Row or Reset.
class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* handle) : handle_(handle) {}

  // Binds all parameters, in order.
  template <typename... Values>
  void Bind(const Values&... values) {
    int index = 0;
    (BindOne(++index, values), ...);
  }
  // Binds one parameter, counted from 1; nullopt: NULL.
  void BindAt(int index, std::string_view text) { BindOne(index, text); }
  void BindAt(int index, std::optional<int64_t> value) {
    value ? BindOne(index, *value) : BindOne(index, nullptr);
  }
  // True: a row can be read. False: the end; the statement is reset.
  absl::StatusOr<bool> Row();
  // To the end, without looking at rows.
  absl::Status Run();
  template <typename... Values>
  absl::Status RunWith(const Values&... values) {
    Bind(values...);
    return Run();
  }
  void Reset() { sqlite3_reset(handle_.get()); }
  bool prepared() const { return handle_ != nullptr; }

  int64_t Integer(int column) { return sqlite3_column_int64(handle_.get(), column); }
  bool Null(int column) { return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL; }
  // Text or blob.
  std::string_view Bytes(int column);

 private:
  struct Finalizer {
    void operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
  };
  void BindOne(int index, int64_t value) { sqlite3_bind_int64(handle_.get(), index, value); }
  void BindOne(int index, std::string_view text);
  void BindOne(int index, std::nullptr_t) { sqlite3_bind_null(handle_.get(), index); }
  void BindOne(int index, const struct Blob& blob);

  std::unique_ptr<sqlite3_stmt, Finalizer> handle_;
};

struct Blob {
  std::string_view bytes;
};

class Database {
 public:
  static absl::StatusOr<Database> Open(const std::string& path, Access access);

  // One or several statements; rows are thrown away.
  absl::Status Execute(const std::string& sql);
  absl::StatusOr<Statement> Prepare(std::string_view sql);
  // The first column of the first row; 0 when there is none.
  absl::StatusOr<int64_t> Integer(std::string_view sql);
  absl::StatusOr<std::string> Text(std::string_view sql);
  // Rows the last INSERT, UPDATE or DELETE changed.
  int64_t changes() const { return sqlite3_changes64(handle_.get()); }
  absl::Status Error(std::string_view doing) const;
  sqlite3* handle() const { return handle_.get(); }

 private:
  struct Closer {
    // v2: statements that live longer keep the connection until they are gone.
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  friend class Transaction;
  explicit Database(sqlite3* handle) : handle_(handle) {}
  // Statements of every transaction are prepared once.
  absl::Status RunKept(Statement& kept, std::string_view sql);

  std::unique_ptr<sqlite3, Closer> handle_;
  Statement begin_;
  Statement commit_;
};

// BEGIN IMMEDIATE (a read that upgrades would meet BUSY at once in WAL mode); rolled back unless
// committed.
class Transaction {
 public:
  static absl::StatusOr<Transaction> Begin(Database& database);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  absl::Status Commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

// True when `status` says that the disk is full.
bool IsDiskFull(const absl::Status& status);

}  // namespace tranche::ledger
