// What arrives: Poisson arrivals of MIG profiles with exponential lifetimes (mean 1) for a fleet of
// equal GPUs. The streams depend on seed, mix and load alone, so that policies are compared on one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "topology/mig_space.h"

namespace tranche::bench {

// The profiles of the benchmark, in the order of a mix: 7g 4g 3g 2g 1g.20gb 1g.10gb of an H100.
inline constexpr std::size_t kMigProfiles = 6;
const MigBoard& BenchBoard();
// By position in a mix: index into BenchBoard().profiles.
const std::array<int, kMigProfiles>& BenchProfiles();
// Of these profiles alone.
const MigSpace& BenchSpace();

struct MigMix {
  std::string name;
  std::array<double, kMigProfiles> shares = {};  // sum 1
  double MeanWidth() const;                      // memory units
};
// "uniform", "small", "big" or six weights, "w7,w4,w3,w2,w1d,w1".
absl::StatusOr<MigMix> ParseMigMix(const std::string& text);

struct MigArrival {
  double at = 0;
  double leaves = 0;
  std::size_t kind = 0;  // position in the mix
};

inline constexpr double kMigEnd = 30;
inline constexpr double kMigMeasuredFrom = 10;

std::vector<MigArrival> DrawMigArrivals(const MigMix& mix, double load, int gpus, uint64_t seed);

}  // namespace tranche::bench
