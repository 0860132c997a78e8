// The policies that are compared.
//
//   cheapest-first    the cheapest GPU that fits, rented or to be rented
//   cheapest-machine  likewise, but it rents the cheapest machine that holds the pod
//   best-fit          the machine left with least; of offers the one that wastes least
//   tranche           the engine with GPUPrices, also asked which of the offers it would take
//   tranche-declared  likewise, and pods say how long they run, wrong by up to a half
//   tranche-no-money  the engine with placement.money Off
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "bench/cost/fleet.h"

namespace tranche::bench::cost {

const std::vector<std::string_view>& PolicyNames();

// What the engine is told.
struct Told {
  std::optional<int> money_rate = {};  // placement.money; absent: Auto
  bool runtimes = false;               // pods declare how long they run
  uint64_t seed = 0;                   // of how wrong they are
};
std::unique_ptr<Policy> MakeEnginePolicy(const Told& told, const std::vector<Task>& tasks,
                                         const std::vector<Offer>& offers);

// `told`: for those with money; their names say the rest. nullptr: there is no such policy.
std::unique_ptr<Policy> MakePolicy(std::string_view name, const std::vector<Task>& tasks,
                                   const std::vector<Offer>& offers, Told told);

}  // namespace tranche::bench::cost
