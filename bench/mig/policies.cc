#include "bench/mig/policies.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <random>
#include <string_view>
#include <utility>

#include "bench/mig/engine_policy.h"
#include "bench/mig/tranche_policy.h"

namespace tranche::bench {
namespace {

constexpr std::string_view kMovesPrefix = "tranche+";

int FreeUnits(const MigFleet& fleet, std::size_t gpu) {
  return fleet.space().board().units - fleet.space().used_units(fleet.layouts()[gpu]);
}

// Any legal (GPU, start), all alike.
class RandomPolicy : public MigPolicy {
 public:
  explicit RandomPolicy(uint64_t seed) : random_(seed ^ 0x9e3779b97f4a7c15) {}
  std::optional<MigRoom> Choose(const MigFleet& fleet, std::size_t kind, double) override {
    std::vector<MigRoom> fitting;
    for (std::size_t gpu = 0; gpu < fleet.layouts().size(); ++gpu) {
      for (const auto& step : fleet.space().steps(fleet.layouts()[gpu], BenchProfiles()[kind])) {
        fitting.push_back({.gpu = gpu, .start = step.start, .moves = {}});
      }
    }
    if (fitting.empty()) return std::nullopt;
    return fitting[random_() % fitting.size()];
  }

 private:
  std::mt19937_64 random_;
};

enum class Order { kFirst, kRoundRobin, kFullest, kEmptiest };

// Highest legal start on the GPU that comes first in an order.
class OrderPolicy : public MigPolicy {
 public:
  explicit OrderPolicy(Order order) : order_(order) {}
  std::optional<MigRoom> Choose(const MigFleet& fleet, std::size_t kind, double) override {
    const std::size_t gpus = fleet.layouts().size();
    std::optional<MigRoom> best;
    int best_free = 0;
    for (std::size_t i = 0; i < gpus; ++i) {
      const std::size_t gpu = order_ == Order::kRoundRobin ? (next_ + i) % gpus : i;
      const auto steps = fleet.space().steps(fleet.layouts()[gpu], BenchProfiles()[kind]);
      if (steps.empty()) continue;
      const int free = FreeUnits(fleet, gpu);
      if (best && (order_ == Order::kFullest ? free >= best_free : free <= best_free)) continue;
      best = MigRoom{.gpu = gpu, .start = steps.back().start, .moves = {}};
      best_free = free;
      if (order_ == Order::kFirst || order_ == Order::kRoundRobin) break;
    }
    if (best) next_ = (best->gpu + 1) % gpus;
    return best;
  }

 private:
  const Order order_;
  std::size_t next_ = 0;
};

using Badness = std::vector<double>;  // of a layout

// The step that makes the fleet's badness grow least; lowest GPU, then lowest start on ties.
class GrowthPolicy : public MigPolicy {
 public:
  explicit GrowthPolicy(std::shared_ptr<const Badness> badness) : badness_(std::move(badness)) {}
  std::optional<MigRoom> Choose(const MigFleet& fleet, std::size_t kind, double) override {
    constexpr double kEqual = 1e-12;
    std::optional<MigRoom> best;
    double least = 0;
    for (std::size_t gpu = 0; gpu < fleet.layouts().size(); ++gpu) {
      const LayoutId before = fleet.layouts()[gpu];
      for (const MigSpace::Step& step : fleet.space().steps(before, BenchProfiles()[kind])) {
        const double growth = (*badness_)[step.after] - (*badness_)[before];
        if (best && growth >= least - kEqual) continue;
        best = MigRoom{.gpu = gpu, .start = step.start, .moves = {}};
        least = growth;
      }
    }
    return best;
  }

 private:
  std::shared_ptr<const Badness> badness_;
};

// Where nothing fits, all live instances and the new one are laid out from scratch, widest first,
// on the fullest GPU that has room. A reference, not a product: hundreds of moves for a request.
class RepackPolicy : public GrowthPolicy {
 public:
  using GrowthPolicy::GrowthPolicy;
  std::optional<MigRoom> Choose(const MigFleet& fleet, std::size_t kind, double time) override {
    if (auto place = GrowthPolicy::Choose(fleet, kind, time)) return place;
    const MigSpace& space = fleet.space();
    std::vector<MigFleet::Live> order = {{.profile = BenchProfiles()[kind]}};
    for (const MigFleet::Live& live : fleet.lives()) {
      if (!live.gone) order.push_back(live);
    }
    const auto width = [&](const MigFleet::Live& live) {
      return space.board().profiles[static_cast<std::size_t>(live.profile)].size;
    };
    std::vector<std::size_t> by_width(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) by_width[i] = i;
    std::stable_sort(by_width.begin(), by_width.end(), [&](std::size_t left, std::size_t right) {
      return width(order[left]) > width(order[right]);
    });
    std::vector<LayoutId> layouts(fleet.layouts().size(), kEmptyLayout);
    MigRoom room;
    for (const std::size_t i : by_width) {
      // Without values BestPlace takes the fullest GPU.
      const std::optional<MigRoom> place = BestPlace(space, {}, layouts, order[i].profile);
      if (!place) return std::nullopt;
      layouts[place->gpu] = *space.With(layouts[place->gpu], order[i].profile, place->start);
      if (i == 0) {
        room.gpu = place->gpu;
        room.start = place->start;
      } else if (place->gpu != order[i].gpu || place->start != order[i].start) {
        const MigProfile* profile =
            &space.board().profiles[static_cast<std::size_t>(order[i].profile)];
        room.moves.push_back({order[i].gpu, {profile, order[i].start}, place->gpu, place->start});
      }
    }
    return room;
  }
};

// Per profile no wider than the free units: units of its placements that a used unit spoils.
Badness Blocked() {
  const MigSpace& space = BenchSpace();
  Badness badness(space.size());
  for (std::size_t layout = 0; layout < space.size(); ++layout) {
    uint64_t used = 0;
    for (const MigInstance& instance : space.instances(static_cast<LayoutId>(layout))) {
      used |= ((uint64_t{1} << instance.profile->size) - 1) << instance.start;
    }
    const int free = space.board().units - space.used_units(static_cast<LayoutId>(layout));
    for (const int index : BenchProfiles()) {
      const MigProfile& profile = space.board().profiles[static_cast<std::size_t>(index)];
      if (profile.size > free) continue;
      for (const int start : profile.starts) {
        const uint64_t range = ((uint64_t{1} << profile.size) - 1) << start;
        if ((range & used) != 0) badness[layout] += profile.size;
      }
    }
  }
  return badness;
}

// FGD's expected fragmentation: free units that a request drawn from the mix cannot use.
Badness Fragmentation(const MigMix& mix) {
  const MigSpace& space = BenchSpace();
  Badness badness(space.size());
  for (std::size_t layout = 0; layout < space.size(); ++layout) {
    const auto id = static_cast<LayoutId>(layout);
    const int free = space.board().units - space.used_units(id);
    for (std::size_t i = 0; i < kMigProfiles; ++i) {
      if (space.steps(id, BenchProfiles()[i]).empty()) badness[layout] += mix.shares[i] * free;
    }
  }
  return badness;
}

template <typename Policy>
MigPolicyFactory WithTable(Badness badness) {
  return [table = std::make_shared<const Badness>(std::move(badness))](uint64_t) {
    return std::make_unique<Policy>(table);
  };
}

}  // namespace

std::string MigPolicyNames() {
  return "random, first-fit, round-robin, best-fit, worst-fit, blocked, fgd-mig, fgd-mig-repack, "
         "tranche, tranche+<moves per 100 accepts>";
}

std::optional<MigPolicyFactory> MakeMigPolicy(const std::string& name, const MigMix& mix,
                                              bool known) {
  const std::pair<std::string_view, Order> kOrders[] = {{"first-fit", Order::kFirst},
                                                        {"round-robin", Order::kRoundRobin},
                                                        {"best-fit", Order::kFullest},
                                                        {"worst-fit", Order::kEmptiest}};
  for (const auto& [order_name, order] : kOrders) {
    if (name != order_name) continue;
    return [order = order](uint64_t) { return std::make_unique<OrderPolicy>(order); };
  }
  if (name == "random") return [](uint64_t seed) { return std::make_unique<RandomPolicy>(seed); };
  if (name == "blocked") return WithTable<GrowthPolicy>(Blocked());
  if (name == "fgd-mig") return WithTable<GrowthPolicy>(Fragmentation(mix));
  if (name == "fgd-mig-repack") return WithTable<RepackPolicy>(Fragmentation(mix));
  if (name == "tranche") return MakeEnginePolicy(mix, known);
  if (name.starts_with(kMovesPrefix)) {
    int moves = 0;
    const char* end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + kMovesPrefix.size(), end, moves);
    if (error == std::errc() && rest == end && moves >= 0) {
      return MakeTranchePolicy(mix, known, moves);
    }
  }
  return std::nullopt;
}

}  // namespace tranche::bench
