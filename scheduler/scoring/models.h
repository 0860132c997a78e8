// The price of a scarce GPU model (benchmarks A7, step 2).
//
// Requests bound to some models make a set of kinds of nodes; the chance is estimated that what
// they will ask for exceeds what the set has left. A pod that could go elsewhere pays for using it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/scoring/mix.h"
#include "scheduler/scoring/slots.h"

namespace tranche {

class Models {
 public:
  explicit Models(const NodeKinds& kinds) : kinds_(kinds) {}

  // Sets are those of the mix's requests for cards that part of the kinds `there` cannot meet.
  void SetTypes(const Mix& mix, const KindSet& there);
  // Milli of an arrival, weighted by shares; the part of Outlook that does not change with nodes.
  Int128 per_arrival() const { return per_arrival_; }
  // `usable`: milli by kind.
  void Refresh(const Outlook& outlook, std::span<const int64_t> usable);
  // Milli a request pays for cards of a node of that kind.
  int64_t PriceOf(KindId kind, const Asker& asker) const;

 private:
  struct Set {
    KindSet kinds;
    Int128 milli = 0;    // that an arrival asks for inside, weighted by shares
    Int128 squares = 0;  // likewise
    int64_t price = 0;   // 0 .. kCertain
  };

  const NodeKinds& kinds_;
  KindSet there_;
  std::vector<Set> sets_;
  Int128 per_arrival_ = 0;
};

}  // namespace tranche
