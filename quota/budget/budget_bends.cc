#include "quota/budget/budget_bends.h"

#include <algorithm>

namespace tranche {

Bend Bends::operator[](std::size_t place) const {
  const Small& bend = bends_[place];
  const GpuTime& size = sizes_[bend.size].change;
  return {bend.at, bend.taken ? -size : size};
}

std::size_t Bends::After(Instant at) const {
  const auto next = std::ranges::upper_bound(bends_, at, {}, &Small::at);
  return static_cast<std::size_t>(next - bends_.begin());
}

uint32_t Bends::PlaceOf(const GpuTime& size) {
  if (last_ < sizes_.size() && sizes_[last_].bends > 0 && sizes_[last_].change == size) {
    return last_;
  }
  const auto [known, fresh] = places_.try_emplace({size.compute, size.memory});
  if (!fresh) return known->second;
  if (unused_.empty()) {
    unused_.push_back(static_cast<uint32_t>(sizes_.size()));
    sizes_.emplace_back();
  }
  known->second = unused_.back();
  unused_.pop_back();
  sizes_[known->second].change = size;
  return known->second;
}

Bends::Small Bends::Shrink(Instant at, const GpuTime& change) {
  // Work that starts and work that ends are of one size.
  const bool taken = change.compute < 0 || (change.compute == 0 && change.memory < 0);
  last_ = PlaceOf(taken ? -change : change);
  ++sizes_[last_].bends;
  return {at, last_, taken};
}

void Bends::Insert(Instant at, const GpuTime& change) {
  bends_.insert(std::ranges::upper_bound(bends_, at, {}, &Small::at), Shrink(at, change));
}

void Bends::Append(Instant at, const GpuTime& change) { bends_.push_back(Shrink(at, change)); }

void Bends::Sort() { std::ranges::sort(bends_, {}, &Small::at); }

void Bends::PopFront() {
  const uint32_t place = bends_.front().size;
  bends_.pop_front();
  Size& size = sizes_[place];
  if (--size.bends > 0) return;
  places_.erase({size.change.compute, size.change.memory});
  unused_.push_back(place);
}

}  // namespace tranche
