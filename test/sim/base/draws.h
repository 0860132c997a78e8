// Random numbers of the simulator: the same seed gives the same draws with every compiler and
// library, which std's distributions do not promise.
//
// A plain value, one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tranche::sim {

class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}

  // Independent draws for a part of the world, so that one part drawing more leaves others alone.
  Draws Fork(uint64_t name) const { return Draws(Mix(state_ ^ Mix(name))); }
  uint64_t Next() { return Mix(state_ += 0x9e3779b97f4a7c15ULL); }
  // Of 0 .. n-1; requires n > 0.
  int64_t Below(int64_t n) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(n)); }
  // Of low .. high.
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }
  // True `parts` times in 10,000.
  bool Chance(int parts) { return Below(10'000) < parts; }
  template <typename T>
  const T& Pick(const std::vector<T>& of) {
    return of[static_cast<std::size_t>(Below(static_cast<int64_t>(of.size())))];
  }

 private:
  static uint64_t Mix(uint64_t x) {  // the finaliser of SplitMix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }

  uint64_t state_;
};

}  // namespace tranche::sim
