#include "scheduler/scoring/mig_room.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tranche {
namespace {

constexpr int kEighthsOfBoard = 8;

// What a step is worth; without values, the fuller the GPU the better.
int64_t GainOf(const MigSpace& space, const LayoutValues& values, LayoutId before, LayoutId after) {
  if (values.empty()) return space.used_units(before);
  return int64_t{values[after]} - values[before];
}

int IndexOf(const MigSpace& space, const MigProfile* profile) {
  return static_cast<int>(profile - space.board().profiles.data());
}

// Ways to clear one placement, tried on a copy of the layouts.
class RoomSearch {
 public:
  RoomSearch(const MigSpace& space, const LayoutValues& values, std::span<const LayoutId> layouts,
             int profile)
      : space_(space),
        values_(values),
        layouts_(layouts.begin(), layouts.end()),
        profile_(profile),
        width_(space.board().profiles[static_cast<std::size_t>(profile)].size) {}

  // The instances on the units that the request would take, widest first.
  std::vector<MigInstance> OccupantsOf(std::size_t gpu, int start) const {
    std::vector<MigInstance> occupants;
    for (const MigInstance& instance : space_.instances(layouts_[gpu])) {
      if (instance.start < start + width_ && start < instance.start + instance.profile->size) {
        occupants.push_back(instance);
      }
    }
    std::stable_sort(occupants.begin(), occupants.end(), [](const auto& left, const auto& right) {
      return left.profile->size > right.profile->size;
    });
    return occupants;
  }

  // Moves the occupants away and keeps the plan when it is the best so far.
  void Try(std::size_t gpu, int start, const std::vector<MigInstance>& occupants) {
    if (best_ && occupants.size() > best_->moves.size()) return;
    MigRoom plan = {.gpu = gpu, .start = start, .moves = {}};
    LayoutId cleared = layouts_[gpu];
    for (const MigInstance& occupant : occupants) {
      cleared = space_.Without(cleared, IndexOf(space_, occupant.profile), occupant.start);
    }
    const std::optional<LayoutId> taken = space_.With(cleared, profile_, start);
    if (!taken) return;  // an engine is missing
    int64_t gain = GainOf(space_, values_, layouts_[gpu], *taken);
    const LayoutId before = std::exchange(layouts_[gpu], *taken);
    std::vector<std::pair<std::size_t, LayoutId>> undo = {{gpu, before}};
    for (const MigInstance& occupant : occupants) {
      const int moved = IndexOf(space_, occupant.profile);
      const std::optional<MigRoom> place = BestPlace(space_, values_, layouts_, moved);
      if (!place) break;
      const LayoutId after = *space_.With(layouts_[place->gpu], moved, place->start);
      gain += GainOf(space_, values_, layouts_[place->gpu], after);
      undo.emplace_back(place->gpu, std::exchange(layouts_[place->gpu], after));
      plan.moves.push_back({gpu, occupant, place->gpu, place->start});
    }
    for (; !undo.empty(); undo.pop_back()) layouts_[undo.back().first] = undo.back().second;
    if (plan.moves.size() < occupants.size()) return;
    if (best_ && plan.moves.size() == best_->moves.size() && gain <= best_gain_) return;
    best_ = std::move(plan);
    best_gain_ = gain;
  }

  std::optional<MigRoom> TakeBest() { return std::move(best_); }

 private:
  const MigSpace& space_;
  const LayoutValues& values_;
  std::vector<LayoutId> layouts_;
  const int profile_;
  const int width_;
  std::optional<MigRoom> best_;
  int64_t best_gain_ = 0;
};

}  // namespace

std::optional<MigRoom> BestPlace(const MigSpace& space, const LayoutValues& values,
                                 std::span<const LayoutId> layouts, int profile) {
  std::optional<MigRoom> best;
  int64_t best_gain = 0;
  for (std::size_t gpu = 0; gpu < layouts.size(); ++gpu) {
    for (const MigSpace::Step& step : space.steps(layouts[gpu], profile)) {
      const int64_t gain = GainOf(space, values, layouts[gpu], step.after);
      // Starts ascend: the highest of equal ones is the last of its GPU.
      if (!best || gain > best_gain || (gain == best_gain && best->gpu == gpu)) {
        best = MigRoom{.gpu = gpu, .start = step.start, .moves = {}};
        best_gain = gain;
      }
    }
  }
  return best;
}

std::optional<MigRoom> MakeRoom(const MigSpace& space, const LayoutValues& values,
                                std::span<const LayoutId> layouts, int profile, int most_moves,
                                const std::function<bool(std::size_t, const MigInstance&)>& movable,
                                int eighths_per_move) {
  if (std::optional<MigRoom> place = BestPlace(space, values, layouts, profile)) return place;
  const MigBoard& board = space.board();
  const MigProfile& wanted = board.profiles[static_cast<std::size_t>(profile)];
  const int worth = wanted.size * kEighthsOfBoard / board.units / eighths_per_move;
  const auto limit = static_cast<std::size_t>(std::max(0, std::min(most_moves, worth)));
  RoomSearch search(space, values, layouts, profile);
  // Two GPUs of one layout make room alike; the lower one stands for both.
  std::set<std::pair<LayoutId, int>> tried;
  for (std::size_t gpu = 0; gpu < layouts.size(); ++gpu) {
    for (auto start = wanted.starts.rbegin(); start != wanted.starts.rend(); ++start) {
      const std::vector<MigInstance> occupants = search.OccupantsOf(gpu, *start);
      if (occupants.size() > limit || tried.contains({layouts[gpu], *start})) continue;
      if (!std::all_of(occupants.begin(), occupants.end(),
                       [&](const MigInstance& occupant) { return movable(gpu, occupant); })) {
        continue;
      }
      tried.emplace(layouts[gpu], *start);
      search.Try(gpu, *start, occupants);
    }
  }
  return search.TakeBest();
}

}  // namespace tranche
