// Pods whose devices are unknown and for which the books leave no room.
#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "scheduler/index/eligibility.h"
#include "scheduler/index/placement.h"

namespace tranche {
namespace {

// Units of one ask that are put anywhere, and of a pod on one device.
constexpr int64_t kMostUnits = 128;

// Puts units of a pod on devices whether there is room or not: each on the one that has the fewest
// of the pod, then of others. Once the pod has all that each of them can give, one more unit says
// that it is over, and all further ones would say no more.
class Spread {
 public:
  Spread(const Inventory& inventory, const Load& load, Picks& picks)
      : inventory_(inventory), load_(load), picks_(picks) {}

  // False: no more units of the ask are to come.
  bool Put(int ask_index, const Ask& ask, int pool) {
    std::vector<Taken>& taken = OfPool(pool);
    int best = -1;
    bool full = true;
    bool over = false;
    std::tuple<int64_t, int64_t> best_rank;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      if (pool < 0 && !IsRightKind(inventory_, ask, inventory_.cards[i])) continue;
      full &= IsFull(taken[i], pool, i);
      over |= taken[i].over;
      const int64_t users =
          pool >= 0 ? load_.slots[static_cast<std::size_t>(pool)][i] : load_.cards[i].slots;
      const std::tuple rank(taken[i].units, users);
      if (best >= 0 && rank >= best_rank) continue;
      best = static_cast<int>(i);
      best_rank = rank;
    }
    if (best < 0 || (full && over)) return false;
    const auto at = static_cast<std::size_t>(best);
    ++taken[at].units;
    taken[at].over = full;
    if (pool >= 0) {
      const MigPool& from = inventory_.pools[static_cast<std::size_t>(pool)];
      picks_.push_back({ask_index, from.slots[at].card, pool, best, from.milli, from.memory, 0});
      return !full;
    }
    const CardNeed need = NeedOn(inventory_, ask, inventory_.cards[at]);
    taken[at].milli += need.milli;
    taken[at].memory += need.memory;
    picks_.push_back({ask_index, best, -1, 0, need.milli, need.memory, need.exclusive});
    return !full;
  }

 private:
  // Of one card, or one slot of a pool, by this pod.
  struct Taken {
    int64_t units = 0;
    MilliGpu milli;
    Mebibytes memory;
    bool over = false;  // has the unit that came when all that it could be on were full
  };

  std::vector<Taken>& OfPool(int pool) {
    const std::size_t devices = pool >= 0
                                    ? inventory_.pools[static_cast<std::size_t>(pool)].slots.size()
                                    : inventory_.cards.size();
    return taken_.try_emplace(pool, devices).first->second;
  }
  bool IsFull(const Taken& taken, int pool, std::size_t at) const {
    if (taken.units >= kMostUnits) return true;
    if (pool >= 0) {
      return taken.units >= inventory_.pools[static_cast<std::size_t>(pool)].replicas;
    }
    const Card& card = inventory_.cards[at];
    return taken.units > 0 && (taken.milli >= card.capacity ||
                               (card.memory.count() > 0 && taken.memory >= card.memory));
  }

  const Inventory& inventory_;
  const Load& load_;
  Picks& picks_;
  std::map<int, std::vector<Taken>> taken_;  // by pool; -1: cards
};

}  // namespace

void Placer::Force(const Inventory& inventory, const Load& load, const PodRequest& request,
                   Picks& picks) {
  static const GpuPolicy open = [] {
    GpuPolicy policy;
    policy.takes_all = true;
    return policy;
  }();
  const PlaceRules rules{&open, CardChoice::kTightest, -1};
  if (Place(inventory, load, request, rules, picks) == Reason::kNone) return;
  // No room by the books: put every unit on the least used device of its kind.
  picks.clear();
  Spread spread(inventory, load, picks);
  for (std::size_t a = 0; a < request.asks.size(); ++a) {
    const Ask& ask = request.asks[a];
    const int pool = PoolFor(inventory, ask);
    for (int64_t unit = 0; unit < std::min(ask.count, kMostUnits); ++unit) {
      if (!spread.Put(static_cast<int>(a), ask, pool)) break;
    }
  }
}

}  // namespace tranche
