// What a fleet offered, what of it was stranded and what it cost at each moment, as the entries of
// a ledger say it.
//
// Plain values. Cost: O(n log n) in entries, and for each moment at which a price changed all that
// are in force.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "policy/prices.h"
#include "scheduler/ledger/bill/bill.h"
#include "scheduler/ledger/bill/fleet_text.h"

namespace tranche::ledger {

// Values of one key, ascending `at`.
template <typename Value>
class Timeline {
 public:
  // In the order they were written: a later word also stands where an earlier one spoke of later.
  void Add(int64_t at, Value value) {
    while (!stands_.empty() && stands_.back().first >= at) stands_.pop_back();
    stands_.emplace_back(at, std::move(value));
  }
  // nullptr: nothing holds yet.
  const Value* Of(int64_t at) const {
    const auto after = std::ranges::upper_bound(stands_, at, {}, &std::pair<int64_t, Value>::first);
    return after == stands_.begin() ? nullptr : &std::prev(after)->second;
  }
  const std::vector<std::pair<int64_t, Value>>& stands() const { return stands_; }

 private:
  std::vector<std::pair<int64_t, Value>> stands_;
};

struct FleetTimes {
  std::map<std::string, Timeline<NodeOffer>> nodes;
  std::map<std::string, Timeline<StrandedGpus>> stranded;         // by KindText
  Timeline<std::shared_ptr<const std::vector<GpuPrice>>> prices;  // all in force, ascending name
  // The first moment of which it is told; nullopt: it is not.
  std::optional<Instant> fleet_from;
  std::optional<Instant> stranded_from;
  std::optional<Instant> prices_from;
};

// Errors: DataLoss naming an entry that cannot be read.
absl::StatusOr<FleetTimes> ReadFleetTimes(const std::vector<FleetEntry>& entries);

}  // namespace tranche::ledger
