// The rate at which work consumed over the recent past, for rolling windows.
//
// A plain value: externally synchronised. One record per change of rate. Cost: Add O(log) for the
// newest, O(records) for late news; questions O(records).
#pragma once

#include <deque>

#include "quota/budget/budget_line.h"

namespace tranche {

class RecentRate {
 public:
  // From `at` on the rate is different by `change`. What was forgotten already changes no more.
  void Add(Instant at, const GpuTime& change);
  // Nobody asks for moments before this one any more.
  void ForgetBefore(Instant at);

  // In force from `at` on; not before what was forgotten.
  GpuTime At(Instant at) const;
  // Consumed from `from` to `to`.
  GpuTime Between(Instant from, Instant to) const;
  // The changes kept, ascending.
  const std::deque<Bend>& changes() const { return changes_; }

 private:
  GpuTime before_;  // in force until the first change kept
  std::deque<Bend> changes_;
};

}  // namespace tranche
