// The matrices of test/cases/topologies by name.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "test/fakes/places.h"
#include "topology/base/check.h"
#include "topology/machine/machine_parse.h"

namespace tranche {

inline std::string CapturedText(const std::string& name) {
  std::ifstream file(fakes::SourceFolder() + "/test/cases/topologies/" + name + ".txt");
  TRANCHE_CHECK(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Machine CapturedMachine(const std::string& name) {
  absl::StatusOr<ParsedMachine> parsed = ParseMachine(CapturedText(name));
  TRANCHE_CHECK(parsed.ok() && parsed->problems.empty());
  return std::move(parsed->machine);
}

}  // namespace tranche
