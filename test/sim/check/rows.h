// Rows of a ledger's file, by SQL of the checkers' own.
//
// Thread rule: one thread.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>

namespace tranche::sim::check {

class Rows {
 public:
  Rows(const std::string& path, const char* sql) {
    sqlite3* opened = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
    database_.reset(opened);
    sqlite3_stmt* prepared = nullptr;
    if (code == SQLITE_OK) sqlite3_prepare_v2(opened, sql, -1, &prepared, nullptr);
    statement_.reset(prepared);
    if (prepared == nullptr) problem_ = sqlite3_errmsg(opened);
  }

  // False: the end, or it cannot be read on.
  bool Next() {
    if (!problem_.empty()) return false;
    const int step = sqlite3_step(statement_.get());
    if (step != SQLITE_ROW && step != SQLITE_DONE) problem_ = sqlite3_errmsg(database_.get());
    return step == SQLITE_ROW;
  }
  std::string Text(int column) const {
    const void* const text = sqlite3_column_blob(statement_.get(), column);
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column));
    return text == nullptr ? std::string() : std::string(static_cast<const char*>(text), size);
  }
  int64_t Number(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  bool IsNull(int column) const {
    return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
  }
  const std::string& problem() const { return problem_; }  // empty: none

 private:
  struct CloseDatabase {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  struct FinishStatement {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3, CloseDatabase> database_;
  std::unique_ptr<sqlite3_stmt, FinishStatement> statement_;
  std::string problem_;
};

}  // namespace tranche::sim::check
