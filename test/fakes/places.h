// Where a built test finds what it reads or starts. These are the only places of this checkout that
// are compiled in, in one small file, so that the other objects are equal in every checkout.
#pragma once

#include <string>

namespace tranche::fakes {

// The checkout, without a slash at the end.
std::string SourceFolder();
// The product's program.
const char* TrancheBinary();
// NVML without a GPU (fakes/nvml).
std::string FakeNvml();

}  // namespace tranche::fakes
