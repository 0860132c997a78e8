// The changes of a rate over time, ascending: many moments, few different sizes.
//
// A window of a month may hold a million of them, two for every piece of work, and most work is as
// large as other work: a change is 16 bytes, and each size is kept once. A plain value: externally
// synchronised. Cost: Insert O(log) at the newest end, O(changes after it) for late news; the rest
// constant but for After, O(log), and Sort.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "quota/budget/budget_amounts.h"
#include "topology/base/units.h"

namespace tranche {

// From `at` on the rate is different by `change`.
struct Bend {
  Instant at;
  GpuTime change;
};

class Bends {
 public:
  std::size_t size() const { return bends_.size(); }
  bool empty() const { return bends_.empty(); }
  Bend operator[](std::size_t place) const;
  // The place of the first that is later; size() when there is none.
  std::size_t After(Instant at) const;

  void Insert(Instant at, const GpuTime& change);
  // At the end, wherever it belongs; nothing may be asked until Sort has put all in order.
  void Append(Instant at, const GpuTime& change);
  void Sort();
  void PopFront();

 private:
  struct Small {
    Instant at;
    uint32_t size = 0;   // its place in sizes_
    bool taken = false;  // off the rate, not added
  };
  struct Size {
    GpuTime change;
    int64_t bends = 0;
  };
  using Key = std::pair<Int128, Int128>;

  Small Shrink(Instant at, const GpuTime& change);
  uint32_t PlaceOf(const GpuTime& size);

  std::deque<Small> bends_;
  std::vector<Size> sizes_;
  std::map<Key, uint32_t> places_;  // of sizes in use
  std::vector<uint32_t> unused_;    // places in sizes_
  uint32_t last_ = 0;               // most that follow each other are of one size
};

}  // namespace tranche
