// Bits of a ledger on the disk, and what it is to flip them.
#pragma once

#include <random>
#include <string>

namespace tranche::torture {

// All of a file; "" where there is none.
std::string BytesOf(const std::string& path);
// Flips a bit anywhere in a file; nothing where it is empty.
void FlipOneBit(const std::string& path, std::mt19937_64& random);
// Flips one of some row of some table or index, in its newest version, which may be in the log; of
// any byte where there is no row. Nobody writes the ledger meanwhile. Only tables of one page are
// looked at: all of a small ledger.
void FlipInUse(const std::string& path, std::mt19937_64& random);

}  // namespace tranche::torture
