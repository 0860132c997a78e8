// One run of the churn protocol: the file's tasks arrive at random at an empty cluster and end
// after a while; one that fits nowhere when it arrives is lost. Time counts in mean lifetimes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/fill/books.h"
#include "bench/fill/placer.h"
#include "bench/fill/trace.h"

namespace tranche::bench::fill {

inline constexpr double kWarmUp = 2;
inline constexpr double kMeasured = 4;

struct Visit {
  double arrives = 0;
  double leaves = 0;
  int type = 0;
};

// What a seed fixes; equal for every policy.
struct ChurnDeal {
  std::vector<int> order;  // of the machines: node i is machine order[i]
  std::vector<Visit> visits;
};

// Poisson arrivals, uniform among the file's tasks; exponential lifetimes. `load`: the GPU milli
// that would be in use on average if nothing were lost, by those there are.
ChurnDeal DealChurn(const Fleet& fleet, const Variant& variant, double load, uint64_t seed);

// Of the measured time alone.
struct ChurnRun {
  double allocation = 0;  // percent of all GPUs, on average over time
  std::array<int64_t, kClasses> arrived{};
  std::array<int64_t, kClasses> lost{};
  int64_t decisions = 0;  // of the whole run
  double seconds = 0;     // that the policy took for them
};

// Errors as Replay's.
absl::StatusOr<ChurnRun> RunChurn(const Variant& variant, const ChurnDeal& deal, Books& books,
                                  Placer& placer);

}  // namespace tranche::bench::fill
