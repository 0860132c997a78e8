// Which spans of idleness the ledger is to be told of, from what stands at each measurement.
//
// A span is told of once it has lasted kShortest, again every kEvery while it goes on, and when it
// is over: who stops in between has told all but the last minutes of it.
//
// Externally synchronised. Cost of Note: O(pods log pods).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/facts/gpu_use.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

class IdleSpans {
 public:
  static constexpr Millis kShortest{600'000};  // a shorter one is a pause in work
  static constexpr Millis kEvery{600'000};

  // All pods that are idle now, and until when that is known. Whoever is not among them works, is
  // gone, or is not measured. What is to be told, ascending uid and since.
  std::vector<IdleSpan> Note(std::span<const IdleSpan> idle);

 private:
  struct Known {
    IdleSpan span;
    std::optional<Instant> told;  // until when
  };
  static void Tell(Known& known, std::vector<IdleSpan>& news);

  std::map<PodUid, Known> known_;
};

}  // namespace tranche
