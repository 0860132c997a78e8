// What was freed goes back to the system, where the C library can be asked to: a process that was
// large for a minute would stay so.
//
// Thread rule: any thread; SettleLargeBlocks before others are started.
#pragma once

namespace tranche {

// Large blocks go back when they are freed, from here on: glibc raises its own threshold when it
// sees them freed, and then keeps them.
void SettleLargeBlocks();
// Whole pages between small blocks that are still used go back now. Cost: a few milliseconds for
// 100 MiB, in which other threads may wait for memory.
void ReturnFreePages();

}  // namespace tranche
