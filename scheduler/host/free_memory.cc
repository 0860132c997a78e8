#include "scheduler/host/free_memory.h"

#include <malloc.h>

namespace tranche {

void SettleLargeBlocks() {
  mallopt(M_MMAP_THRESHOLD, 1024 * 1024);
  mallopt(M_TRIM_THRESHOLD, 8 * 1024 * 1024);
}

void ReturnFreePages() { malloc_trim(0); }

}  // namespace tranche
