// Stranded GPUs as parts of the free ones: of each kind no more at a moment than was free then.
//
// A ledger tells of stranded GPUs by kind and now and then, of what is free by node and at once; so
// what is free is gathered by kind first. Cost: O(n log n) in changes of what is free; memory some
// 32 bytes a change, for kinds of which the ledger tells.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "policy/prices.h"
#include "scheduler/ledger/bill/fleet_times.h"

namespace tranche::ledger {

class FreeOfKind {
 public:
  // So many quanta more are free in [from, until).
  void Add(int64_t from, int64_t until, int64_t quanta);

 private:
  friend class FreeTimes;
  std::vector<std::pair<int64_t, int64_t>> changes_;  // at, by how much
};

class FreeTimes {
 public:
  // `fleet` outlives it.
  explicit FreeTimes(const FleetTimes& fleet);
  bool empty() const { return kinds_.empty(); }
  // nullptr: the ledger does not tell of that kind. Good as long as this is.
  FreeOfKind* KindOf(const std::string& model, const NodeTraits& traits);

  // So many quanta were stranded for so many milliseconds, at that price; null: at none.
  using Count = std::function<void(int64_t quanta, int64_t length, const GpuPrice* price)>;
  void EachStranded(const Count& count);

 private:
  void Each(const Timeline<StrandedGpus>& said, FreeOfKind& kind, const Count& count) const;
  void Price(const StrandedGpus& said, int64_t quanta, int64_t from, int64_t until,
             const Count& count) const;

  const FleetTimes& fleet_;
  std::map<std::string, FreeOfKind> kinds_;
};

}  // namespace tranche::ledger
