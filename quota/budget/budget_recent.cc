#include "quota/budget/budget_recent.h"

#include <algorithm>

namespace tranche {

void RecentRate::Add(Instant at, const GpuTime& change) {
  const auto place =
      std::upper_bound(changes_.begin(), changes_.end(), at,
                       [](Instant moment, const Bend& bend) { return moment < bend.at; });
  changes_.insert(place, {at, change});
}

void RecentRate::ForgetBefore(Instant at) {
  while (!changes_.empty() && changes_.front().at <= at) {
    before_ += changes_.front().change;
    changes_.pop_front();
  }
}

GpuTime RecentRate::At(Instant at) const {
  GpuTime rate = before_;
  for (const Bend& bend : changes_) {
    if (bend.at <= at) rate += bend.change;
  }
  return rate;
}

GpuTime RecentRate::Between(Instant from, Instant to) const {
  GpuTime sum = before_ * (to - from);
  for (const Bend& bend : changes_) {
    if (bend.at < to) sum += bend.change * (to - std::max(bend.at, from));
  }
  return sum;
}

}  // namespace tranche
