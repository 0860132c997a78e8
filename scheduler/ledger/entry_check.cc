#include "scheduler/ledger/entry_check.h"

#include <fmt/format.h>

#include <utility>

namespace tranche::ledger {

void EntryChecker::StartAfter(int64_t entry, std::string hash, int64_t epoch) {
  last_ = entry;
  hash_ = std::move(hash);
  epoch_ = epoch;
}

void EntryChecker::Check(const EntryRow& entry, std::vector<std::string>& faults) {
  Int128 compute = 0;
  Int128 memory = 0;
  for (const Posting& posting : entry.postings) {
    compute += posting.compute;
    memory += posting.memory;
  }
  if (compute != 0 || memory != 0) {
    faults.push_back(
        fmt::format("rule 1: entry {}: expected postings that sum to 0, found a rest", entry.id));
  }
  if (entry.id != last_ + 1) {
    faults.push_back(fmt::format("rule 5: expected entry {}, found entry {}", last_ + 1, entry.id));
  }
  if (last_ > 0 && entry.epoch < epoch_) {
    faults.push_back(fmt::format("rule 5: entry {}: expected epoch {} or later, found {}", entry.id,
                                 epoch_, entry.epoch));
  }
  const std::string hash = chain_.Next(hash_, entry, *accounts_);
  if (hash != entry.hash) {
    faults.push_back(fmt::format("rule 6: entry {}: expected hash {}, found {}", entry.id,
                                 Hex(hash), Hex(entry.hash)));
  }
  last_ = entry.id;
  hash_ = entry.hash;
  epoch_ = entry.epoch;
}

}  // namespace tranche::ledger
