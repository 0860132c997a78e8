#include "scheduler/server/caller_rates.h"

#include <algorithm>

namespace tranche {

std::optional<std::chrono::seconds> CallerRates::Take(const std::string& caller, int cost) {
  if (per_second_ == 0) return std::nullopt;
  const TimePoint now = time_();
  const absl::MutexLock lock(&mutex_);
  auto at = done_at_.find(caller);
  if (at == done_at_.end() && done_at_.size() >= kMostCallers) {
    std::erase_if(done_at_, [now](const auto& each) { return each.second <= now; });
    at = done_at_.size() < kMostCallers ? done_at_.end() : done_at_.try_emplace("", now).first;
  }
  if (at == done_at_.end()) at = done_at_.emplace(caller, now).first;
  const auto begins = std::max(at->second, now);
  const auto asked = std::chrono::nanoseconds(std::chrono::seconds(cost)) / per_second_;
  const auto over = begins + asked - (now + kBurst);
  // Somebody who has asked nothing lately may, whatever it costs.
  if (over.count() > 0 && begins > now) return std::chrono::ceil<std::chrono::seconds>(over);
  at->second = begins + asked;
  return std::nullopt;
}

}  // namespace tranche
