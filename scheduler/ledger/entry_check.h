// The rules one entry after another must keep: 1 (postings sum to 0), 5 (no gap, epochs never fall)
// and 6 (hash chain).
//
// Thread rule: one thread. Cost: one SHA-256 an entry.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/ledger/journal.h"

namespace tranche::ledger {

class EntryChecker {
 public:
  explicit EntryChecker(const AccountTable& accounts) : accounts_(&accounts) {}
  // The next entry follows this one; entry 0, kNoHash: the first.
  void StartAfter(int64_t entry, std::string hash, int64_t epoch);
  // Appends what is wrong, a line each, and goes on from what was found.
  void Check(const EntryRow& entry, std::vector<std::string>& faults);

  int64_t last_entry() const { return last_; }
  int64_t epoch() const { return epoch_; }
  const std::string& hash() const { return hash_; }

 private:
  const AccountTable* accounts_;
  HashChain chain_;
  int64_t last_ = 0;
  std::string hash_ = kNoHash;
  int64_t epoch_ = 0;
};

}  // namespace tranche::ledger
