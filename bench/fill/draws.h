// Draws at random that are the same with every standard library: the generator's bits are fixed by
// the language, what std::distributions make of them is not.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace tranche::bench::fill {

class Draws {
 public:
  explicit Draws(uint64_t seed) : engine_(seed) {}

  // Each of 0..bound-1 equally often. Requires: bound > 0.
  uint64_t Below(uint64_t bound) {
    constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
    const uint64_t limit = kMost - kMost % bound;
    uint64_t bits = engine_();
    while (bits >= limit) bits = engine_();
    return bits % bound;
  }
  std::size_t Index(std::size_t size) { return static_cast<std::size_t>(Below(size)); }

  // Above 0, mean 1.
  double Exponential() {
    constexpr double kStep = 1.0 / (uint64_t{1} << 53);
    return -std::log((static_cast<double>(engine_() >> 11) + 1) * kStep);
  }

  // Every order equally often.
  template <typename T>
  void Shuffle(std::vector<T>& items) {
    for (std::size_t left = items.size(); left > 1; --left) {
      std::swap(items[left - 1], items[Index(left)]);
    }
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace tranche::bench::fill
