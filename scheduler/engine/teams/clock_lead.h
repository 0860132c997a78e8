// How far our clock is ahead of the cluster's, by the news of pods that are made: they are heard
// of a moment after the API server has stamped them, so the smallest difference of late is what
// the clocks differ by. It is never too small; where all news are late it is too large by that.
//
// Externally synchronised. Cost: a handful of comparisons.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "topology/base/units.h"

namespace tranche {

class ClockLead {
 public:
  // A pod that the API server made at `stamp` by its clock is heard of for the first time.
  void Note(Instant stamp, Instant now) {
    last_[next_++ % last_.size()] = std::chrono::duration_cast<Millis>(now - stamp);
  }
  // Our clock was set, by so much: against the cluster's everything seen before lies as far off.
  // Where nothing was seen the two are taken to have been the same.
  void Step(Millis by) {
    if (next_ == 0) last_[next_++] = Millis{0};
    for (Millis& difference : last_) difference += by;
  }
  // Zero where it is not told from news on their way, as stamps are cut to whole seconds.
  Millis Now() const {
    const std::size_t known = std::min(next_, last_.size());
    if (known == 0) return Millis{0};
    const Millis least = *std::min_element(last_.begin(), last_.begin() + known);
    return least > kOnTheWay ? least : Millis{0};
  }
  // A time of the cluster's clock by ours, never in the future.
  std::optional<Instant> Ours(std::optional<Instant> told, Instant now) const {
    return told ? std::optional(std::min(*told + Now(), now)) : std::nullopt;
  }

 private:
  static constexpr Millis kOnTheWay{2'000};

  std::array<Millis, 16> last_{};
  std::size_t next_ = 0;
};

}  // namespace tranche
