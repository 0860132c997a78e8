// Rules 3 and 4: what happens to an interval happens once, in order, with the amounts it was opened
// with; intervals of one pod do not overlap; a refund ends as it started.
// And rule 7: what is said of the fleet can be read.
//
// Thread rule: one thread. Memory: the open intervals.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "scheduler/ledger/journal.h"
#include "scheduler/ledger/sqlite/sqlite.h"

namespace tranche::ledger {

class IntervalChecker {
 public:
  struct Open {
    int64_t entry = 0;
    int64_t at = 0;
    int64_t running = 0;  // entry; 0: none
    std::vector<Posting> postings;
  };

  // Entries in order.
  void Check(const EntryRow& entry, std::vector<std::string>& faults);
  // Compares with the tables, in the transaction of the last entry.
  absl::Status Compare(Database& database, std::vector<std::string>& faults);
  const std::unordered_map<int64_t, Open>& open() const { return open_; }

 private:
  void CheckFleet(const EntryRow& entry, std::vector<std::string>& faults);
  void CheckOpen(const EntryRow& entry, std::vector<std::string>& faults);
  void CheckEnd(const EntryRow& entry, std::vector<std::string>& faults);
  void CheckRefundEnd(const EntryRow& entry, std::vector<std::string>& faults);
  absl::Status CompareOpen(Database& database, std::vector<std::string>& faults) const;
  absl::Status CheckRepeats(Database& database, std::vector<std::string>& faults) const;

  std::unordered_map<int64_t, Open> open_;  // by interval
  int64_t opened_ = 0;
  EntryRow refund_;  // the start entry that waits for its end; id 0: none
};

}  // namespace tranche::ledger
