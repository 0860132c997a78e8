// How long to wait after a failure: doubling from `first` to `cap`, plus a random part as long as
// the wait itself, so that many clients of a restarted server do not come back together.
//
// Thread rule: one thread at a time. Source: client-go's reflector (backoff 0.8 s, jitter 1.0).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace tranche::kube {

class Backoff {
 public:
  struct Limits {
    std::chrono::milliseconds first{800};
    std::chrono::milliseconds cap{30'000};
    std::chrono::milliseconds reset_after{120'000};  // without failure
  };

  Backoff(Limits limits, uint64_t seed) : limits_(limits), next_(limits.first), random_(seed) {}

  // What failed before says nothing of the next failure.
  void Reset() { failed_before_ = false, next_ = limits_.first; }

  // The wait after a failure at `now`: between d and 2d.
  std::chrono::milliseconds Next(std::chrono::steady_clock::time_point now) {
    if (failed_before_ && now - last_failure_ > limits_.reset_after) next_ = limits_.first;
    failed_before_ = true;
    last_failure_ = now;
    const std::chrono::milliseconds base = next_;
    next_ = std::min(base * 2, limits_.cap);
    std::uniform_int_distribution<int64_t> jitter(0, base.count());
    return base + std::chrono::milliseconds(jitter(random_));
  }

 private:
  Limits limits_;
  std::chrono::milliseconds next_;
  std::chrono::steady_clock::time_point last_failure_;
  bool failed_before_ = false;
  std::mt19937_64 random_;
};

}  // namespace tranche::kube
