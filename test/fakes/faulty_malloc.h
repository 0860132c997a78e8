// SQLite's memory, failing on demand: a wrapper around the allocator that SQLite came with.
//
// Thread rule: Install before anything uses SQLite; the rest from any thread. One for the process.
#pragma once

#include <cstdint>

namespace tranche::fakes {

class FaultyMalloc {
 public:
  static void Install();
  // The n-th allocation from now fails (n >= 1) and the `times - 1` after it.
  static void Inject(int64_t n, int64_t times);
  static void Heal();
  // Since the last Inject.
  static int64_t allocations();
  static int64_t faults();
};

}  // namespace tranche::fakes
