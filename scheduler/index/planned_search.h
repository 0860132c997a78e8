// Where to make the MIG instances a pod asks for, on a node whose executor makes them where we say.
//
// Units are served one after another, long-running containers before init containers and wide
// profiles before narrow ones, each on the best place left; where that leads nowhere the search
// goes back, so that it finds places whenever there are any, within the step bound. All of a pod's
// instances exist as long as the pod does: an init container may use those of the others, but no
// place they rule out. One search; not shared between threads. Cost: O(cards x starts) a step;
// bounds and remembered failures keep the steps near the number of units. Proof by brute force:
// test/property/mig_planned_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "scheduler/facts/pod_request.h"
#include "scheduler/index/inventory.h"
#include "scheduler/index/load.h"
#include "scheduler/index/placement.h"
#include "topology/mig_space.h"

namespace tranche {

class PlannedSearch {
 public:
  // The arguments outlive it. Requires: inventory.planned(), and a pool for every ask.
  PlannedSearch(const Inventory& inventory, const Load& load, const PodRequest& request,
                const LayoutValueMap* values);

  // True: `picks`, in the order they were served. False: there is no room, or gave_up().
  bool Run(int most_steps, Picks& picks);
  bool gave_up() const { return steps_left_ < 0; }
  std::size_t units() const { return queue_.size(); }

 private:
  struct Unit {
    int ask = 0;
    int pool = 0;
  };
  struct Place {
    std::array<int64_t, 7> rank;  // the least is the best
    int slot = 0;
    LayoutId after = kEmptyLayout;
  };
  // All that tells states of the search apart: per card in use, which one of equal cards it was and
  // what the pod has there.
  using State = std::vector<std::vector<int>>;

  bool Serve();
  bool MayFit() const;
  int64_t MostMore(int pool) const;
  std::vector<Place> Places(const Unit& unit) const;
  void AddPlacesOn(int card, const Unit& unit, std::vector<Place>& places) const;
  int64_t Users(const Ask& ask, int pool, int slot) const;
  bool Exists(int pool, int slot) const;
  State StateNow() const;

  const MigPool& PoolAt(int pool) const { return inventory_.pools[static_cast<std::size_t>(pool)]; }
  const Ask& AskOf(int ask) const { return request_.asks[static_cast<std::size_t>(ask)]; }

  const Inventory& inventory_;
  const Load& load_;
  const PodRequest& request_;
  const MigSpace& space_;
  const std::vector<int32_t>* values_ = nullptr;
  std::vector<Unit> queue_;
  std::vector<int> class_of_;      // card -> one number for all cards of equal load
  std::vector<LayoutId> layouts_;  // card -> layout with the picks
  Picks picks_;
  std::set<State> failed_;
  int steps_left_ = 0;
};

}  // namespace tranche
