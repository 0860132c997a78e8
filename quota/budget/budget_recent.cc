#include "quota/budget/budget_recent.h"

#include <algorithm>

namespace tranche {

void RecentRate::Add(Instant at, const GpuTime& change) {
  if (!origin_) origin_ = last_ = at;
  rate_ += change;
  if (forgot_ && at <= *origin_) {
    before_ += change;
    total_ += change * (last_ - *origin_);
    return;
  }
  origin_ = std::min(*origin_, at);
  if (at >= last_) {
    total_ += (rate_ - change) * (at - last_);
    last_ = at;
  } else {
    total_ += change * (last_ - at);
  }
  const auto place =
      std::upper_bound(changes_.begin(), changes_.end(), at,
                       [](Instant moment, const Bend& bend) { return moment < bend.at; });
  changes_.insert(place, {at, change});
}

void RecentRate::ForgetBefore(Instant at) {
  if (!origin_ || at <= *origin_) return;
  forgot_ = true;
  while (!changes_.empty() && changes_.front().at <= at) {
    const Bend& first = changes_.front();
    total_ -= before_ * (first.at - *origin_);
    origin_ = first.at;
    before_ += first.change;
    changes_.pop_front();
  }
  if (changes_.empty()) {
    total_ = {};
    last_ = at;
  } else {
    total_ -= before_ * (at - *origin_);
  }
  origin_ = at;
}

GpuTime RecentRate::At(Instant at) const {
  GpuTime rate = before_;
  for (const Bend& bend : changes_) {
    if (bend.at > at) break;
    ++walked_;
    rate += bend.change;
  }
  return rate;
}

GpuTime RecentRate::Until(Instant at) const {
  if (!origin_) return {};
  if (at >= last_) return total_ + rate_ * (at - last_);
  const auto next =
      std::upper_bound(changes_.begin(), changes_.end(), at,
                       [](Instant moment, const Bend& bend) { return moment < bend.at; });
  if (next - changes_.begin() < changes_.end() - next) {
    GpuTime sum = before_ * (at - *origin_);
    for (auto bend = changes_.begin(); bend != next; ++bend) {
      ++walked_;
      sum += bend->change * (at - bend->at);
    }
    return sum;
  }
  // From the end back to the moment.
  GpuTime sum = total_ - rate_ * (last_ - at);
  for (auto bend = next; bend != changes_.end(); ++bend) {
    ++walked_;
    sum += bend->change * (bend->at - at);
  }
  return sum;
}

std::vector<GpuTime> RecentRate::InParts(Instant from, Millis length, int parts) const {
  std::vector<GpuTime> used;
  GpuTime rate = before_;
  auto bend = changes_.begin();
  for (; bend != changes_.end() && bend->at <= from; ++bend) rate += bend->change;
  Instant start = from;
  for (int i = 1; i <= parts; ++i) {
    const Instant end = from + length * i / parts;
    GpuTime& sum = used.emplace_back();
    for (; bend != changes_.end() && bend->at < end; ++bend) {
      sum += rate * (bend->at - start);
      rate += bend->change;
      start = bend->at;
    }
    sum += rate * (end - start);
    start = end;
  }
  return used;
}

}  // namespace tranche
