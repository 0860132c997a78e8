#include "test/sim/base/faults.h"

#include <iterator>
#include <set>
#include <sstream>

namespace tranche::sim {

const char* NameOf(Fault fault) {
  constexpr const char* kNames[] = {"crash",     "pause", "clock", "disk",  "network",  "apiserver",
                                    "scheduler", "agent", "users", "nodes", "strangers"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Fault::kCount));
  return kNames[static_cast<std::size_t>(fault)];
}

FaultPlan DrawFaults(Draws& draws, const std::string& names, std::string& problem) {
  std::set<std::string> wanted;
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) wanted.insert(name);
  const bool all = wanted.erase("all") > 0;
  wanted.erase("none");
  FaultPlan plan;
  plan.trial = wanted.erase("trial") > 0;
  for (int kind = 0; kind < static_cast<int>(Fault::kCount); ++kind) {
    const bool named = wanted.erase(NameOf(static_cast<Fault>(kind))) > 0;
    // Drawn for every kind, so that naming fewer leaves the others' rates as they were.
    const bool drawn = draws.Chance(5'000);
    const int rate = static_cast<int>(draws.Between(1, 100) * draws.Between(1, 5));
    if (named || (all && drawn)) plan.rates[kind] = rate;
  }
  if (!wanted.empty()) problem = "expected kinds of faults, found \"" + *wanted.begin() + "\"";
  return plan;
}

}  // namespace tranche::sim
