// What a layout of a GPU is worth for the MIG requests that are to come ("priced layouts",
// benchmarks B7): the relative value of a chain in which one GPU is offered the mix's requests, may
// decline them at a price, and loses every instance at rate one; prices move until each profile is
// accepted at its fair rate. On boards that are not eight units wide all of it is done in eighths.
// Profiles that nobody asks for take room like others while they are there.
//
// Fixed point throughout, so that every machine finds the same table. Solving takes about a
// second from scratch and a third of that after a small change of the mix; it is cut into
// steps so that the one writer never stalls.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topology/mig_space.h"

namespace tranche {

// h of benchmarks B7 in 1/65536 of a memory unit, by LayoutId. Higher is better; a placement is
// worth value[after] - value[before].
using LayoutValues = std::vector<int32_t>;

class MigPricer {
 public:
  // `space` outlives it.
  explicit MigPricer(const MigSpace& space);

  // How often each profile of the board is asked for (decayed counts, parallel to board.profiles).
  // Work begins anew, from the prices and values there are; a small change of the shares needs a
  // third of the work. Nothing asked for: nothing to do.
  void SetMix(std::span<const int64_t> counts);
  // Goes on for a few sweeps over the space (about a millisecond for the largest). False: nothing
  // is left to do, and values() are those of the mix.
  bool Work();
  // The last finished table; empty until the first is.
  const LayoutValues& values() const { return values_; }

 private:
  // One profile that is asked for.
  struct Offer {
    int profile = 0;
    int64_t rate = 0;      // at which it is offered, in events (30 bits)
    int64_t accepted = 0;  // of the last sweep, in probability (40 bits)
  };
  // By layout, what goes on from sweep to sweep.
  struct Chain {
    std::vector<int64_t> values;         // relative to the empty layout's (eighths, 24 bits)
    std::vector<int64_t> probabilities;  // of finding the GPU in it (40 bits)
  };

  void Sweep();
  // The value that an offer adds to a layout; moves its share of the layout's probability on.
  int64_t SweepOffer(LayoutId layout, Offer& offer);
  // In eighths of the GPU (24 bits).
  int64_t WidthOf(int profile) const;
  // Towards those at which every profile is accepted at its fair rate.
  void MovePrices();
  void Publish();

  const MigSpace* space_;
  std::vector<LayoutId> without_;  // packed by layout: the layouts one departure away
  std::vector<std::size_t> first_without_;
  int64_t most_instances_ = 0;

  std::vector<int64_t> counts_;  // the mix, scaled
  std::vector<Offer> offers_;
  int64_t departure_rate_ = 0;  // of one instance, in events (30 bits)
  Chain now_;
  Chain next_;
  std::vector<int64_t> prices_;    // by profile of the board (eighths, 24 bits)
  std::vector<int64_t> averages_;  // of the values, over the last price steps
  int steps_left_ = 0;
  int sweeps_done_ = 0;
  LayoutValues values_;
};

}  // namespace tranche
