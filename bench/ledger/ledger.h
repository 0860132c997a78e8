// tranche-bench ledger: how fast metering is written, how large the file gets, and how long a start
// and a report take on it.
//
// Protocol (hazards E, hazard 56): one year of pods on a cluster, three entries a pod (open,
// running, close), appended in batches to a new ledger on the given folder's disk, every batch a
// commit with a full sync. Then the ledger is closed, opened again, and asked for the year and for
// a span that starts and ends inside a day.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace tranche::bench {

struct LedgerOptions {
  int64_t entries = 1'000'000;
  int seconds = 0;      // stop writing after this long; 0: when all entries are written
  int batch = 256;      // events a commit
  std::string folder;   // where the file goes; it is removed again. Empty: the temporary folder
  bool keep = false;    // leave the file
  bool verify = false;  // check the whole file at the end
  uint64_t seed = 42;
  std::string out;  // JSON file; empty: none
};

absl::Status RunLedger(const LedgerOptions& options);

}  // namespace tranche::bench
