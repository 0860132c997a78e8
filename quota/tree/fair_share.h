// How surplus is divided among those who want it, and who comes first.
//
// quota-model section 5. share_i = min(demand_i, nominal_i + lambda * w'_i) by level filling, with
// w'_i = max(0, w^_i + k (w^_i - u^_i)), w^ = weight / sum of weights of leaves with demand, u^ =
// decayed usage / capacity; surplus left when only w' = 0 want more goes by w^. Integer quanta,
// largest remainder, ties by key. No floats: ratios are exact or 2^-62 fixed point.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topology/base/check.h"
#include "topology/base/units.h"

namespace tranche {

struct FairShareMember {
  std::string key;
  int64_t weight = 1;     // 0..1,000,000
  int64_t nominal = 0;    // quanta, >= 0
  int64_t demand = 0;     // quanta, >= 0
  int64_t usage_ppm = 0;  // decayed usage / capacity in millionths, >= 0
};

// Parallel to `members`. sum of result = min(capacity, sum of demand). `k_milli`: k in thousandths,
// 0..10,000. At most 2^14 members; amounts above 2^53 quanta (500 million GPUs) count as that.
// Example: 16 GPUs; A nominal 4, wants 16, weight 1; B 4, 6, 1; C 0, 16, 2; k = 0 -> 6, 6, 4.
std::vector<int64_t> DivideFairly(int64_t capacity, std::span<const FairShareMember> members,
                                  int64_t k_milli);

// Usage that fades: u <- u * 2^(-dt/H) + g * (H / ln 2) * (1 - 2^(-dt/H)), exact at events, no
// sampling. `g` is constant between events. Fixed point; the error stays below a GPU-second per
// GPU-year, for up to a million events a day.
class DecayedUsage {
 public:
  // `half_life` is positive, at most 2^40 ms (35 years).
  explicit DecayedUsage(Millis half_life) : half_life_(half_life) {
    TRANCHE_CHECK_GT(half_life.count(), 0);
    TRANCHE_CHECK_LE(half_life.count(), int64_t{1} << 40);
  }
  // From `at` on, `quanta` (GPU-equivalents in quanta, 0..2^53) are held. Times never go back; an
  // earlier one counts as the last.
  void Hold(int64_t quanta, Instant at);
  // Milli-GPU-hours at `at`, rounded to the nearest; before the last event: as of that event.
  int64_t MilliGpuHours(Instant at) const;

  // For storing and taking up again.
  struct State {
    int64_t quanta = 0;
    Instant at;
    int64_t usage_high = 0;  // quanta x ms as a 128-bit number
    uint64_t usage_low = 0;
  };
  State state() const { return state_; }
  void Restore(const State& state) { state_ = state; }

 private:
  Millis half_life_;
  State state_;
};

}  // namespace tranche
