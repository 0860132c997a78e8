// One ledger file through all its lives: what was appended, what was acknowledged, and whether the
// file tells the same.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/ledger/reader.h"
#include "scheduler/ledger/sqlite_ledger.h"
#include "test/torture/load.h"

namespace tranche::torture {

// Tests are small under a sanitizer, middling in CI, and as large as TRANCHE_TORTURE=nightly says.
int64_t Size(int64_t sanitized, int64_t ci, int64_t nightly);
// TRANCHE_SEED or a fixed one; printed.
uint64_t PrintedSeed();

// A folder of its own, in memory where the machine allows, gone at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }
  std::string ledger() const { return path_ + "/ledger.db"; }

 private:
  std::string path_;
};

// Copies the ledger's files but not what only a living process needs.
void CopyLedger(const std::string& from_folder, const std::string& to_folder);

struct Story {
  Book settled;                  // what the file is known to hold
  Log log;                       // appended since then
  std::size_t acknowledged = 0;  // batches of `log` the ledger said are on disk
  int lives = 0;                 // times the file was opened
  Instant now = Noon();
};

ledger::Options NextLife(Story& story, const std::string& path);

// Appends and waits until the ledger answered.
bool AppendAndWait(Ledger& ledger, Batch batch);
// Waits for everything appended before; false: commits fail.
bool WaitCommitted(Ledger& ledger);

// What the file says, through every door: export, report and history, as Book::Figures prints it.
absl::StatusOr<std::vector<std::string>> FiguresOf(const std::string& path,
                                                   const MeterHistory& history, Instant now);
testing::AssertionResult SameFigures(const std::vector<std::string>& found,
                                     const std::vector<std::string>& expected);
// Every rule holds.
testing::AssertionResult Verified(const std::string& path);

// The newly opened `ledger` holds every acknowledged batch, of the others the first ones, and
// nothing in part. The log up to there becomes settled, the rest is left in it.
testing::AssertionResult Settle(Story& story, const std::string& path,
                                const ledger::SqliteLedger& ledger);
// Appending all of `log` again leaves entries and figures as they are.
testing::AssertionResult RepeatsChangeNothing(const Log& log, ledger::SqliteLedger& ledger);

}  // namespace tranche::torture
