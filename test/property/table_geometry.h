// Devices of reclaim problems as tables of cards. Only tests use it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "quota/preemption/reclaim.h"
#include "quota/tree/charge.h"

namespace tranche {

// Cards of regions, each with what is free of it; a preemptor wants `count` cards with `milli`
// each. More gone leaves more free, so it is monotone.
class TableGeometry : public ReclaimGeometry {
 public:
  struct Region {
    std::vector<int> free_milli;  // by card
    int count = 0;
    int milli = 0;
  };
  struct Held {
    std::size_t region = 0;
    std::size_t card = 0;
    int milli = 0;
    Charge charge;
  };
  std::vector<Region> regions;
  std::vector<std::vector<Held>> held;  // by unit

  bool Fits(std::size_t region, std::span<const int> gone) override {
    std::vector<int> free = regions[region].free_milli;
    for (const int unit : gone) {
      for (const Held& one : held[static_cast<std::size_t>(unit)]) {
        if (one.region == region) free[one.card] += one.milli;
      }
    }
    const int wanted = regions[region].milli;
    return std::count_if(free.begin(), free.end(), [&](int milli) { return milli >= wanted; }) >=
           regions[region].count;
  }
};

}  // namespace tranche
