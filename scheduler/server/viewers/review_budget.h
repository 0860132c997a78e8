// How many reviews the API server is asked for: so many a second, with room for the rush after a
// start. The lower half of that room is kept for callers who were known before, so that no crowd of
// strangers keeps them from being asked about again.
//
// Thread rule: one thread at a time. Cost: some additions.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace tranche {

enum class Caller : uint8_t { kKnown, kStranger };

class ReviewBudget {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // Room for as many as the steady rate comes to in this time.
  static constexpr std::chrono::nanoseconds kRush = std::chrono::seconds(60);
  static constexpr std::chrono::nanoseconds kKept = kRush / 2;

  // `per_second`: at least 1.
  ReviewBudget(int per_second, TimePoint now)
      : each_(std::chrono::nanoseconds(std::chrono::seconds(1)) / per_second),
        empty_at_(now - kRush) {}

  // False: not now.
  bool Take(TimePoint now, Caller caller) {
    if (Wait(now, caller).count() > 0) return false;
    empty_at_ = std::max(empty_at_, now - kRush) + each_;
    return true;
  }
  // After how long Take will do; 0: now.
  std::chrono::nanoseconds Wait(TimePoint now, Caller caller) const {
    const std::chrono::nanoseconds kept = caller == Caller::kStranger ? kKept : kKept * 0;
    return std::max(empty_at_ + each_ + kept - now, std::chrono::nanoseconds(0));
  }
  // How long so many take at the steady rate.
  std::chrono::nanoseconds TimeOf(int64_t reviews) const { return each_ * reviews; }

 private:
  const std::chrono::nanoseconds each_;
  // The time since then is what is left, at the steady rate.
  TimePoint empty_at_;
};

}  // namespace tranche
