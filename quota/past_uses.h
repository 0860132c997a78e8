// Use that ended within the longest window, for budgets that are declared later: they count it too.
//
// A million pods may have ended in a month, of few kinds: what they have in common is kept once,
// and 24 bytes of each. A plain value: externally synchronised. Cost: Add O(log kinds); Forget
// constant most of the time.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "quota/tree/model_charge.h"
#include "topology/base/units.h"

namespace tranche {

// What many uses have in common.
struct PastKind {
  std::string leaf;  // empty: none
  std::string ns;
  std::string workload_class;  // empty: none
  std::vector<ModelCharge> parts;
  int sign = 1;  // -1: it was given back
};

// [since, until), of one use.
struct PastLife {
  static constexpr Instant kNeverRan = Instant::max();
  Instant since;
  Instant running = kNeverRan;  // containers started
  Instant until;
};

class PastUses {
 public:
  struct InOrder {
    bool operator()(const PastKind& left, const PastKind& right) const;
  };
  // Those of one kind, most of them in the order they ended.
  class Lives {
   public:
    std::span<const PastLife> all() const { return std::span(lives_).subspan(gone_); }
    Instant newest() const { return newest_; }  // end of any

   private:
    friend class PastUses;
    std::vector<PastLife> lives_;
    std::size_t gone_ = 0;  // forgotten ones in front, whose room is not given back yet
    Instant newest_ = Instant::min();
  };

  void Add(const PastKind& kind, std::span<const PastLife> lives);
  // What ended before that moment may be dropped.
  void Forget(Instant before);
  const std::map<PastKind, Lives, InOrder>& kinds() const { return kinds_; }

 private:
  std::map<PastKind, Lives, InOrder> kinds_;
  Instant forgot_ = Instant::min();
};

}  // namespace tranche
