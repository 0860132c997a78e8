#include "test/fakes/faulty_malloc.h"

#include <sqlite3.h>

#include <atomic>

#include "topology/base/check.h"

namespace tranche::fakes {
namespace {

sqlite3_mem_methods real;
std::atomic<int64_t> calls = 0;
std::atomic<int64_t> first_failing = 0;  // 0: none
std::atomic<int64_t> last_failing = 0;
std::atomic<int64_t> failed = 0;

bool Fails() {
  const int64_t call = ++calls;
  const int64_t first = first_failing;
  if (first == 0 || call < first || call > last_failing) return false;
  ++failed;
  return true;
}

}  // namespace

void FaultyMalloc::Install() {
  TRANCHE_CHECK(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real) == SQLITE_OK);
  sqlite3_mem_methods methods = real;
  methods.xMalloc = [](int size) -> void* { return Fails() ? nullptr : real.xMalloc(size); };
  methods.xRealloc = [](void* old, int size) -> void* {
    return Fails() ? nullptr : real.xRealloc(old, size);
  };
  TRANCHE_CHECK(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK);
}

void FaultyMalloc::Inject(int64_t n, int64_t times) {
  first_failing = 0;
  calls = 0;
  failed = 0;
  last_failing = n + times - 1;
  first_failing = n;
}

void FaultyMalloc::Heal() { first_failing = 0; }

int64_t FaultyMalloc::allocations() { return calls; }
int64_t FaultyMalloc::faults() { return failed; }

}  // namespace tranche::fakes
