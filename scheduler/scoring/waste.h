// Expected terminal waste (benchmarks A7, step 1): of what is free on a node, the milli nobody will
// use when the cluster is full.
//
// Fixed sequences of requests are drawn from the mix, the same for every node; each fills the room
// with whatever fits, on the tightest cards, and the mean of what then is left over is the waste.
// Remembered per room.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scheduler/scoring/kinds.h"
#include "scheduler/scoring/mix.h"
#include "scheduler/scoring/room.h"
#include "scheduler/scoring/span_table.h"

namespace tranche {

class WasteTable {
 public:
  // `kinds` outlives it.
  explicit WasteTable(const NodeKinds& kinds) : kinds_(kinds) {}
  // Draws the sequences anew; every waste found before is stale.
  void SetMix(const Mix& mix);
  // Milli, 0 .. room.milli. Nothing is known of the mix: 0.
  // Cost: one look-up, and microseconds for a room not met since the mix changed.
  int64_t Of(const Room& room);
  // How many rooms were valued so far.
  uint64_t valued() const { return valued_; }

 private:
  // A type of request on one kind of node.
  struct Offer {
    int32_t cpu = 0;  // milli
    int16_t milli = 0;
    int16_t count = 0;
    int16_t pool = -1;  // -1: cards
  };
  // The sequences as one kind of node sees them: without what could never fit there.
  struct KindOffers {
    std::vector<Offer> offers;    // types that are possible
    std::vector<uint16_t> drawn;  // sequence after sequence, indices into offers
    std::vector<uint32_t> ends;   // of each sequence in drawn
  };
  struct State;

  const KindOffers& OffersOn(KindId id);
  int64_t Value(const Room& room);

  const NodeKinds& kinds_;
  std::vector<MixType> types_;
  std::size_t length_ = 0;       // of each sequence
  std::vector<uint16_t> drawn_;  // sequence after sequence, indices into types_
  std::vector<std::unique_ptr<KindOffers>> by_kind_;
  SpanTable rooms_;
  std::vector<int32_t> wastes_;  // by number of the room
  std::vector<uint8_t> fits_;    // by offer: it fits the room when that is yet untouched
  uint64_t valued_ = 0;
};

}  // namespace tranche
