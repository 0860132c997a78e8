#include "scheduler/index/planned_search.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "scheduler/index/eligibility.h"
#include "scheduler/index/runs_beside.h"
#include "topology/base/check.h"

namespace tranche {
namespace {

// Null: the board has none.
const std::vector<int32_t>* ValuesOf(const LayoutValueMap* values, const MigSpace& space) {
  if (values == nullptr) return nullptr;
  const auto found = values->find(&space);
  if (found == values->end() || found->second.empty()) return nullptr;
  TRANCHE_CHECK_EQ(found->second.size(), space.size());
  return &found->second;
}

}  // namespace

PlannedSearch::PlannedSearch(const Inventory& inventory, const Load& load,
                             const PodRequest& request, const LayoutValueMap* values)
    : inventory_(inventory),
      load_(load),
      request_(request),
      space_(*inventory.cards.front().space),
      values_(ValuesOf(values, space_)) {
  for (std::size_t a = 0; a < request.asks.size(); ++a) {
    const int pool = PoolFor(inventory, request.asks[a]);
    TRANCHE_CHECK_GE(pool, 0);
    queue_.insert(queue_.end(), static_cast<std::size_t>(request.asks[a].count),
                  {static_cast<int>(a), pool});
  }
  std::ranges::stable_sort(queue_, {}, [this](const Unit& unit) {
    const int index = PoolAt(unit.pool).planned_profile;
    const MigProfile& profile = space_.board().profiles[static_cast<std::size_t>(index)];
    return std::tuple(!IsLong(request_, AskOf(unit.ask)), -profile.size, -profile.compute_slices,
                      index, unit.pool);
  });
  const std::vector<std::vector<int64_t>> rows = PlannedRows(inventory, load);
  std::vector<std::vector<int64_t>> kinds = rows;
  std::ranges::sort(kinds);
  for (std::size_t card = 0; card < rows.size(); ++card) {
    class_of_.push_back(
        static_cast<int>(std::ranges::lower_bound(kinds, rows[card]) - kinds.begin()));
    layouts_.push_back(load.cards[card].layout);
  }
}

bool PlannedSearch::Run(int most_steps, Picks& picks) {
  steps_left_ = most_steps;
  const bool found = Serve();
  picks = std::move(picks_);
  picks_.clear();
  return found;
}

bool PlannedSearch::Serve() {
  if (picks_.size() == queue_.size()) return true;
  if (!MayFit()) return false;
  if (!failed_.empty() && failed_.contains(StateNow())) return false;
  const Unit unit = queue_[picks_.size()];
  const MigPool& pool = PoolAt(unit.pool);
  for (const Place& place : Places(unit)) {
    if (--steps_left_ < 0) return false;
    const int card = pool.slots[static_cast<std::size_t>(place.slot)].card;
    LayoutId& layout = layouts_[static_cast<std::size_t>(card)];
    const LayoutId before = std::exchange(layout, place.after);
    picks_.push_back({unit.ask, card, unit.pool, place.slot, pool.milli, pool.memory, 0});
    if (Serve()) return true;
    picks_.pop_back();
    layout = before;
  }
  failed_.insert(StateNow());
  return false;
}

// No more of a profile are still to come than the cards could take were it for that profile alone.
// Init containers may use again what the pod has, so that nothing is said of them.
bool PlannedSearch::MayFit() const {
  for (std::size_t i = picks_.size(); i < queue_.size();) {
    if (!IsLong(request_, AskOf(queue_[i].ask))) break;
    const int pool = queue_[i].pool;
    int64_t wanted = 0;
    for (; i < queue_.size() && queue_[i].pool == pool && IsLong(request_, AskOf(queue_[i].ask));
         ++i) {
      ++wanted;
    }
    if (wanted > MostMore(pool)) return false;
  }
  return true;
}

// At most so many more units of long-running containers find room in the pool.
int64_t PlannedSearch::MostMore(int index) const {
  const MigPool& pool = PoolAt(index);
  const MigProfile& profile =
      space_.board().profiles[static_cast<std::size_t>(pool.planned_profile)];
  const std::vector<int64_t>& users = load_.slots[static_cast<std::size_t>(index)];
  int64_t most = 0;
  for (std::size_t card = 0; card < layouts_.size(); ++card) {
    if (!inventory_.cards[card].usable() || load_.cards[card].layout_broken) continue;
    const auto have =
        std::ranges::count(space_.instances(layouts_[card]), &profile, &MigInstance::profile);
    const auto starts = std::ssize(space_.steps(layouts_[card], pool.planned_profile));
    most += pool.replicas * std::min<int64_t>(profile.max_instances - have, starts);
    if (pool.replicas == 1) continue;
    for (std::size_t i = 0; i < profile.starts.size(); ++i) {
      const std::size_t slot = card * profile.starts.size() + i;
      const auto own = std::ranges::count_if(picks_, [&](const Pick& pick) {
        return pick.pool == index && pick.slot == static_cast<int>(slot);
      });
      if (users[slot] + own > 0) most += std::max<int64_t>(pool.replicas - users[slot] - own, 0);
    }
  }
  return most;
}

// Of equal cards that the pod does not use yet, one stands for all.
std::vector<PlannedSearch::Place> PlannedSearch::Places(const Unit& unit) const {
  std::vector<Place> places;
  std::vector<bool> seen(layouts_.size());
  for (std::size_t card = 0; card < layouts_.size(); ++card) {
    const Card& self = inventory_.cards[card];
    if (!self.usable() || load_.cards[card].layout_broken) continue;
    if (!self.uuid.empty() && !IsSelected(request_, AskOf(unit.ask), self)) continue;
    const int at = static_cast<int>(card);
    const bool used =
        std::ranges::any_of(picks_, [at](const Pick& pick) { return pick.card == at; });
    if (!used) {
      const auto kind = static_cast<std::size_t>(class_of_[card]);
      if (seen[kind]) continue;
      seen[kind] = true;
    }
    AddPlacesOn(at, unit, places);
  }
  std::ranges::sort(places, {}, &Place::rank);
  return places;
}

// Instances that are there come first, the least used of them; then new ones by what the layout is
// worth. Cards are ordered by all that tells them apart, so that an equal node state gives an equal
// choice whichever card is which.
void PlannedSearch::AddPlacesOn(int card, const Unit& unit, std::vector<Place>& places) const {
  const MigPool& pool = PoolAt(unit.pool);
  const std::vector<int>& starts =
      space_.board().profiles[static_cast<std::size_t>(pool.planned_profile)].starts;
  const LayoutId layout = layouts_[static_cast<std::size_t>(card)];
  const int kind = class_of_[static_cast<std::size_t>(card)];
  const int first = card * static_cast<int>(starts.size());
  for (int i = 0; i < static_cast<int>(starts.size()); ++i) {
    const int slot = first + i;
    const int start = starts[static_cast<std::size_t>(i)];
    if (Exists(unit.pool, slot)) {
      const int64_t users = Users(AskOf(unit.ask), unit.pool, slot);
      if (users >= pool.replicas) continue;
      places.push_back({{0, users, 0, layout.number(), kind, card, -start}, slot, layout});
      continue;
    }
    const std::optional<LayoutId> after = space_.With(layout, pool.planned_profile, start);
    if (!after) continue;
    int64_t worth = space_.used_units(layout);
    int64_t later = std::ssize(space_.steps(*after));
    if (values_ != nullptr) {
      worth = int64_t{(*values_)[*after]} - (*values_)[layout];
      later = 0;
    }
    places.push_back({{1, -worth, -later, layout.number(), kind, card, -start}, slot, *after});
  }
}

// Of the instance, at the time the ask's container runs.
int64_t PlannedSearch::Users(const Ask& ask, int pool, int slot) const {
  return load_.slots[static_cast<std::size_t>(pool)][static_cast<std::size_t>(slot)] +
         std::ranges::count_if(picks_, [&](const Pick& pick) {
           return pick.pool == pool && pick.slot == slot &&
                  RunsBeside(request_, ask, AskOf(pick.ask));
         });
}

bool PlannedSearch::Exists(int pool, int slot) const {
  return load_.slots[static_cast<std::size_t>(pool)][static_cast<std::size_t>(slot)] > 0 ||
         std::ranges::any_of(
             picks_, [&](const Pick& pick) { return pick.pool == pool && pick.slot == slot; });
}

PlannedSearch::State PlannedSearch::StateNow() const {
  std::map<int, std::vector<std::array<int, 3>>> by_card;
  for (const Pick& pick : picks_) {
    const int container = AskOf(pick.ask).container;
    const ContainerRole role = request_.containers[static_cast<std::size_t>(container)].role;
    const auto starts =
        std::ssize(space_.board()
                       .profiles[static_cast<std::size_t>(PoolAt(pick.pool).planned_profile)]
                       .starts);
    // App containers are all alike to those that follow; of the others it matters who they are.
    by_card[pick.card].push_back({pick.pool, pick.slot % static_cast<int>(starts),
                                  role == ContainerRole::kApp ? -1 : container});
  }
  State state = {{static_cast<int>(picks_.size())}};
  for (auto& [card, held] : by_card) {
    std::ranges::sort(held);
    std::vector<int> row = {class_of_[static_cast<std::size_t>(card)]};
    for (const std::array<int, 3>& use : held) row.insert(row.end(), use.begin(), use.end());
    state.push_back(std::move(row));
  }
  std::ranges::sort(state.begin() + 1, state.end());
  return state;
}

int64_t LayoutGain(const Inventory& inventory, const Load& load, const Picks& picks,
                   const LayoutValueMap& values) {
  if (!inventory.planned()) return 0;
  const MigSpace& space = *inventory.cards.front().space;
  const std::vector<int32_t>* table = ValuesOf(&values, space);
  if (table == nullptr) return 0;
  std::map<int, LayoutId> after;
  std::set<std::pair<int, int>> made;
  for (const Pick& pick : picks) {
    const auto pool = static_cast<std::size_t>(pick.pool);
    const auto slot = static_cast<std::size_t>(pick.slot);
    if (load.slots[pool][slot] > 0 || !made.emplace(pick.pool, pick.slot).second) continue;
    const MigPool& from = inventory.pools[pool];
    const auto at =
        after.try_emplace(pick.card, load.cards[static_cast<std::size_t>(pick.card)].layout).first;
    // Picks that were forced may go together with nothing.
    at->second =
        space.With(at->second, from.planned_profile, from.slots[slot].start).value_or(at->second);
  }
  int64_t gain = 0;
  for (const auto& [card, layout] : after) {
    gain += int64_t{(*table)[layout]} - (*table)[load.cards[static_cast<std::size_t>(card)].layout];
  }
  return gain;
}

}  // namespace tranche
