// The price of room for multi-GPU work (benchmarks A7, step 3).
//
// A slot of a type of request is a place where one more of it would fit: so many cards that nobody
// uses, with the CPU, on one node. For each type of several cards the chance is estimated that more
// slots are asked for than there are, by it or by types at least as hard to place.
#pragma once

#include <bitset>
#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/scoring/kinds.h"
#include "scheduler/scoring/mix.h"
#include "scheduler/scoring/normal.h"
#include "scheduler/scoring/room.h"
#include "scheduler/scoring/span_table.h"

namespace tranche {

using KindSet = std::bitset<kMaxKinds>;
inline bool IsWithin(const KindSet& inner, const KindSet& outer) { return (inner & ~outer).none(); }

// What is still to come until the cluster is full: for a type of that share, in milli-GPU,
// share * `milli` / `per_arrival` arrivals.
struct Outlook {
  Int128 milli = 0;        // usable, times the horizon
  Int128 per_arrival = 0;  // milli of an arrival, weighted by shares; zero: nothing is to come
};

// The parts of a request that decide its prices.
struct Asker {
  KindSet kinds;                    // that could take it, CPU aside
  std::vector<int32_t> card_milli;  // by kind: all it would take of cards there
  int cards = 0;
  int64_t cpu = 0;
};

class Slots {
 public:
  explicit Slots(const NodeKinds& kinds) : kinds_(kinds) {}

  // Types are those of the mix, and for the largest nodes `there` a request that wants the whole of
  // one: it counts as two arrivals and protects them until enough was seen. (One for every size of
  // node protects too much: 0.15 to 0.35 points of the fill benchmark.) True: sums start from zero,
  // losses anew; false: the types are what they were, and so are sums and losses.
  bool SetTypes(const Mix& mix, const KindSet& there);
  // Adds a node's room to the sums (or takes it away).
  void Add(const Room& room, int sign);
  void Refresh(const Outlook& outlook);

  // Number of the slots lost from one room of a node to the next; 0: none.
  uint16_t LossOf(const Room& before, const Room& after);
  // Nearly all numbers are given out; SetTypes starts anew.
  bool full() const { return losses_.size() > UINT16_MAX / 2; }
  std::size_t losses() const { return losses_.size() + 1; }
  // Milli that a request pays for a loss. What it takes for its own kind of work is free.
  int64_t PriceOf(uint16_t loss, const Asker& asker) const;

  // For tests: slots there are of each type, in the order of the types.
  std::span<const int64_t> sums() const { return sums_; }

 private:
  struct Type {
    int cards = 0;
    int64_t cpu = 0;
    KindSet kinds;
    bool IsAs(const Type& other) const {
      return cards == other.cards && cpu == other.cpu && kinds == other.kinds;
    }
    int64_t share = 0;                // of arrivals, lasting memory
    std::vector<std::size_t> harder;  // types at least as hard to place, itself too
    int64_t price = 0;                // 0 .. kCertain
  };

  void AddType(Type type);
  int64_t CountOf(const Type& type, const Room& room) const;

  const NodeKinds& kinds_;
  KindSet there_;
  std::vector<Type> types_;
  std::vector<int64_t> sums_;
  SpanTable losses_;
  std::vector<uint16_t> lost_;  // kept for its memory
};

}  // namespace tranche
