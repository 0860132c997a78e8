// How good a placement is for the cluster: a cost, lower is better, equal for equal node states.
//
// Strategies: Fragmentation (FGD's expected fragmentation in coarse levels, ties consolidate),
// BestFit (least room left), Spread (most room left). Integers; the caller breaks ties by name.
// Source: benchmarks A2, A5 (coarse levels and a fixed order beat fine scores and random ties).
#pragma once

#include <cstdint>
#include <vector>

#include "policy/spec.h"
#include "scheduler/index/inventory.h"
#include "scheduler/index/load.h"
#include "scheduler/index/placement.h"
#include "scheduler/scoring/mix.h"

namespace tranche {

// Lower is better. Bits, high to low: 1 zero, 2 how far down its class's list the worst way of
// sharing among the pod's devices stands, 1 kind of device, 8 score level, 20 room left.
using Cost = uint32_t;

class Scorer {
 public:
  // Fits the request on the node (kNone) and prices the best way to do it; picks are that way.
  // `sharing`: how the pod's class may share, in order of preference; null or empty: any way.
  // Cost: one placement, and for one shared card one more per distinct load of the node's cards.
  Reason Evaluate(const Inventory& inventory, const Load& load, const PodRequest& request,
                  const GpuPolicy& policy, const Mix& mix, Picks& picks, Cost& cost,
                  const std::vector<SharingMode>* sharing = nullptr);

  // Expected free milli-GPU of the node that a request drawn from the mix cannot use, times
  // mix.total (FGD's F_n).
  int64_t Fragmentation(const Inventory& inventory, const Load& load, const Mix& mix);

 private:
  Cost Price(const Inventory& inventory, const Load& load, const PodRequest& request,
             Strategy strategy, const Mix& mix, const Picks& picks);

  Placer placer_;
  Load after_;
  Picks trial_;
  std::vector<int64_t> free_;
};

}  // namespace tranche
