#include "bench/mig/workload.h"

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <random>
#include <sstream>
#include <string_view>

#include "fmt/format.h"
#include "topology/base/check.h"

namespace tranche::bench {
namespace {

// Numbers in [0, 1); the library's distributions differ between implementations. Every quantity has
// a sequence of its own, so that one seed means the same fortune at every load and mix.
class Draws {
 public:
  Draws(uint64_t seed, uint32_t quantity) {
    std::seed_seq sequence{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
                           quantity};
    random_.seed(sequence);
  }
  double Uniform() { return static_cast<double>(random_() >> 11) * 0x1.0p-53; }
  double Exponential() { return -std::log1p(-Uniform()); }

 private:
  std::mt19937_64 random_;
};

}  // namespace

const MigBoard& BenchBoard() {
  for (const MigBoard& board : MigBoards()) {
    if (board.id == "h100-80") return board;
  }
  TRANCHE_CHECK(false);
  return MigBoards().front();
}

const std::array<int, kMigProfiles>& BenchProfiles() {
  static const std::array<int, kMigProfiles> profiles = [] {
    constexpr std::array<std::string_view, kMigProfiles> kNames = {"7g.80gb", "4g.40gb", "3g.40gb",
                                                                   "2g.20gb", "1g.20gb", "1g.10gb"};
    std::array<int, kMigProfiles> found = {};
    for (std::size_t i = 0; i < kMigProfiles; ++i) {
      found[i] =
          static_cast<int>(FindMigProfile(BenchBoard(), kNames[i]) - BenchBoard().profiles.data());
    }
    return found;
  }();
  return profiles;
}

const MigSpace& BenchSpace() {
  static const MigSpace& space = *new MigSpace(BenchBoard(), BenchProfiles());
  return space;
}

double MigMix::MeanWidth() const {
  double mean = 0;
  for (std::size_t i = 0; i < kMigProfiles; ++i) {
    mean += shares[i] * BenchBoard().profiles[static_cast<std::size_t>(BenchProfiles()[i])].size;
  }
  return mean;
}

absl::StatusOr<MigMix> ParseMigMix(const std::string& text) {
  if (text == "uniform") return MigMix{text, {1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6}};
  if (text == "small") return MigMix{text, {.05, .10, .10, .20, .25, .30}};
  if (text == "big") return MigMix{text, {.30, .25, .20, .10, .10, .05}};
  MigMix mix = {.name = text, .shares = {}};
  std::istringstream fields(text);
  std::string field;
  std::size_t count = 0;
  bool sound = true;
  while (std::getline(fields, field, ',')) {
    char* end = nullptr;
    const double share = std::strtod(field.c_str(), &end);
    sound = sound && !field.empty() && *end == '\0' && share >= 0 && std::isfinite(share);
    if (count < kMigProfiles) mix.shares[count] = share;
    ++count;
  }
  const double sum = std::accumulate(mix.shares.begin(), mix.shares.end(), 0.0);
  if (!sound || count != kMigProfiles || !(sum > 0)) {
    return absl::InvalidArgumentError(fmt::format(
        "--mix: expected uniform, small, big or six weights (7g,4g,3g,2g,1g.20gb,1g.10gb), found "
        "\"{}\"",
        text));
  }
  for (double& share : mix.shares) share /= sum;
  return mix;
}

std::vector<MigArrival> DrawMigArrivals(const MigMix& mix, double load, int gpus, uint64_t seed) {
  Draws gaps(seed, 0);
  Draws kinds(seed, 1);
  Draws lifetimes(seed, 2);
  const double rate = load * gpus * BenchBoard().units / mix.MeanWidth();
  std::vector<MigArrival> arrivals;
  double now = 0;
  while (true) {
    now += gaps.Exponential() / rate;
    if (now >= kMigEnd) return arrivals;
    MigArrival arrival = {.at = now};
    double point = kinds.Uniform();
    while (arrival.kind + 1 < kMigProfiles && point >= mix.shares[arrival.kind]) {
      point -= mix.shares[arrival.kind++];
    }
    while (mix.shares[arrival.kind] <= 0) --arrival.kind;  // rounding at the end of the mix
    arrival.leaves = now + lifetimes.Exponential();
    arrivals.push_back(arrival);
  }
}

}  // namespace tranche::bench
