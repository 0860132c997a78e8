// The verdict cache (ADR 0001): what request shapes get from node states. Values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/facts/reason.h"
#include "scheduler/scoring/score.h"

namespace tranche {

// A cached answer: what a request shape gets from a node state.
struct Verdict {
  uint32_t generation = 0;  // of the state; 0: never evaluated
  uint32_t version = 0;     // of the scorer
  Worth worth;
  Reason reason = Reason::kNone;
  uint64_t priced = 0;  // the selection that `cost` is for
  int64_t cost = 0;     // without money, which equal states do not share
};

// Counting as taken allocations and reservations, or tentative placements too.
enum class Taken : uint8_t { kFirmly, kTentatively };

// Everything about a request that decides where it fits; pods of equal shape share verdicts.
struct Shape {
  std::vector<Verdict> by_state;
  uint64_t last_used = 0;
};

// Ranks of prioritize, strict: kTopRank for the best node, one less for each after it, down to 0.
inline constexpr int kTopRank = 10;
inline int RankAt(std::size_t place) { return std::max(kTopRank - static_cast<int>(place), 0); }

}  // namespace tranche
