#include "test/fakes/places.h"

namespace tranche::fakes {

std::string SourceFolder() { return TRANCHE_SOURCE_DIR; }
const char* TrancheBinary() { return TRANCHE_BINARY; }
std::string FakeNvml() { return TRANCHE_FAKE_NVML; }

}  // namespace tranche::fakes
