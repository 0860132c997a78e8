// A run that failed once, as a file that is run ever after (test/sim/seeds/*.sim).
//
//   # one line that says why it failed
//   seed 42
//   lives 100
//   faults crash,disk
//   checker devices
//   without arrival#7 arrival#9
//
// `without` may come more than once. Plain values.
#pragma once

#include <optional>
#include <string>

#include "test/sim/tool/run.h"

namespace tranche::sim {

struct SeedFile {
  std::string why;
  std::string checker;
  RunOptions options;
};
// nullopt: `problem` says what was expected, and in which line.
std::optional<SeedFile> ReadSeedFile(const std::string& text, std::string& problem);
std::string WriteSeedFile(const SeedFile& file);

}  // namespace tranche::sim
