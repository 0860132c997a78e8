#include "quota/budget/budget_recent.h"

#include <algorithm>

namespace tranche {

bool RecentRate::Sum(Instant at, const GpuTime& change) {
  if (!origin_) origin_ = last_ = at;
  rate_ += change;
  if (forgot_ && at <= *origin_) {
    before_ += change;
    total_ += change * (last_ - *origin_);
    return false;
  }
  origin_ = std::min(*origin_, at);
  if (at >= last_) {
    total_ += (rate_ - change) * (at - last_);
    last_ = at;
  } else {
    total_ += change * (last_ - at);
  }
  return true;
}

void RecentRate::Add(Instant at, const GpuTime& change) {
  if (Sum(at, change)) changes_.Insert(at, change);
}

void RecentRate::AddUnsorted(Instant at, const GpuTime& change) {
  if (Sum(at, change)) changes_.Append(at, change);
}

void RecentRate::ForgetBefore(Instant at) {
  if (!origin_ || at <= *origin_) return;
  forgot_ = true;
  while (!changes_.empty() && changes_[0].at <= at) {
    const Bend first = changes_[0];
    total_ -= before_ * (first.at - *origin_);
    origin_ = first.at;
    before_ += first.change;
    changes_.PopFront();
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
  const std::size_t next = changes_.After(at);
  for (std::size_t i = 0; i < next; ++i) rate += changes_[i].change;
  walked_ += static_cast<int64_t>(next);
  return rate;
}

GpuTime RecentRate::Until(Instant at) const {
  if (!origin_) return {};
  if (at >= last_) return total_ + rate_ * (at - last_);
  const std::size_t next = changes_.After(at);
  const std::size_t later = changes_.size() - next;
  walked_ += static_cast<int64_t>(std::min(next, later));
  if (next < later) {
    GpuTime sum = before_ * (at - *origin_);
    for (std::size_t i = 0; i < next; ++i) {
      const Bend bend = changes_[i];
      sum += bend.change * (at - bend.at);
    }
    return sum;
  }
  // From the end back to the moment.
  GpuTime sum = total_ - rate_ * (last_ - at);
  for (std::size_t i = next; i < changes_.size(); ++i) {
    const Bend bend = changes_[i];
    sum += bend.change * (bend.at - at);
  }
  return sum;
}

std::vector<GpuTime> RecentRate::InParts(Instant from, Millis length, int parts) const {
  std::vector<GpuTime> used;
  std::size_t next = changes_.After(from);
  GpuTime rate = before_;
  for (std::size_t i = 0; i < next; ++i) rate += changes_[i].change;
  Instant start = from;
  for (int i = 1; i <= parts; ++i) {
    const Instant end = from + length * i / parts;
    GpuTime& sum = used.emplace_back();
    for (; next < changes_.size(); ++next) {
      const Bend bend = changes_[next];
      if (bend.at >= end) break;
      sum += rate * (bend.at - start);
      rate += bend.change;
      start = bend.at;
    }
    sum += rate * (end - start);
    start = end;
  }
  return used;
}

}  // namespace tranche
