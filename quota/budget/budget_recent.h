// The rate at which work consumed over the recent past, for rolling windows.
//
// What was consumed since the moment before which nobody asks is kept as one sum, so that a window
// of a month with hundreds of thousands of starts and stops in it costs no more to ask about than
// an empty one. A plain value: externally synchronised. One record per change of rate. Cost: Add
// O(log) for the newest, O(records) for late news; At and Between O(log + changes between the
// moment asked about and the nearer end of what is kept): none in practice, as both ends of a
// window lie at these ends.
#pragma once

#include <optional>
#include <vector>

#include "quota/budget/budget_bends.h"

namespace tranche {

class RecentRate {
 public:
  // From `at` on the rate is different by `change`. What was forgotten already changes no more.
  void Add(Instant at, const GpuTime& change);
  // Many, in any order; nothing may be asked until Sort.
  void AddUnsorted(Instant at, const GpuTime& change);
  void Sort() { changes_.Sort(); }
  // Nobody asks for moments before this one any more.
  void ForgetBefore(Instant at);

  // In force from `at` on; not before what was forgotten.
  GpuTime At(Instant at) const;
  // Consumed from `from` to `to`.
  GpuTime Between(Instant from, Instant to) const { return Until(to) - Until(from); }
  // Consumed in each of so many equal parts of the span, in one walk.
  std::vector<GpuTime> InParts(Instant from, Millis length, int parts) const;
  // The changes kept, ascending.
  const Bends& changes() const { return changes_; }
  // How many of them questions have walked over, as a measure of the work.
  int64_t walked() const { return walked_; }

 private:
  // Whether it is to be kept as a change of its own.
  bool Sum(Instant at, const GpuTime& change);
  GpuTime Until(Instant at) const;  // from origin_ on

  std::optional<Instant> origin_;  // where the sum begins; nullopt: nothing was ever told
  bool forgot_ = false;
  GpuTime before_;  // in force from origin_ until the first change kept
  Bends changes_;
  Instant last_;   // of the last change, or the origin
  GpuTime total_;  // consumed from origin_ to last_
  GpuTime rate_;   // in force from last_ on
  mutable int64_t walked_ = 0;
};

}  // namespace tranche
