// Before SQLite is used for the first time its memory is made to fail on demand; and the binary is
// also the process that a test kills.
#include <gtest/gtest.h>

#include <string_view>

#include "test/fakes/faulty_malloc.h"
#include "test/torture/process.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == tranche::torture::kWriterFlag) {
    return tranche::torture::WriteUntilKilled(argc, argv);
  }
  tranche::fakes::FaultyMalloc::Install();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
