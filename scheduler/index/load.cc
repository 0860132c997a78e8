#include "scheduler/index/load.h"

#include <algorithm>

#include "topology/base/plant.h"

namespace tranche {
namespace {

// Every part of a legal set is legal, so that the outcome does not depend on the order in which
// instances are added.
void MakeInstance(Load& load, std::size_t pool, std::size_t slot) {
  const int profile = load.profiles[pool];
  const std::vector<int>& starts =
      load.space->board().profiles[static_cast<std::size_t>(profile)].starts;
  CardLoad& card = load.cards[slot / starts.size()];
  const auto after = card.layout_broken
                         ? std::nullopt
                         : load.space->With(card.layout, profile, starts[slot % starts.size()]);
  card.layout = after.value_or(kEmptyLayout);
  card.layout_broken = !after.has_value();
}

}  // namespace

void AddUse(Load& load, const PodUse& use) {
  for (const CardUse& card : use.cards) {
    CardLoad& target = load.cards[static_cast<std::size_t>(card.card)];
    target.milli += card.milli;
    if (!TRANCHE_PLANTED(memory_is_not_counted)) target.memory += card.memory;
    target.slots += card.slots;
    target.beside += card.beside;
    target.exclusive += card.exclusive;
    target.kept += card.kept;
    for (const MigPlace& place : card.places) {
      const auto after = target.layout_broken ? std::nullopt : With(target.layout, place);
      target.layout = after.value_or(kEmptyLayout);
      target.layout_broken = !after.has_value();
    }
  }
  for (const InstanceUse& instance : use.instances) {
    const auto pool = static_cast<std::size_t>(instance.pool);
    const auto slot = static_cast<std::size_t>(instance.slot);
    if (load.space != nullptr && load.slots[pool][slot] == 0) MakeInstance(load, pool, slot);
    load.slots[pool][slot] += instance.users;
  }
}

bool HasRoomFor(const Inventory& inventory, Load load, const PodUse& use) {
  for (const CardUse& card : use.cards) {
    const CardLoad& held = load.cards[static_cast<std::size_t>(card.card)];
    if (held.exclusive > 0 || (card.exclusive > 0 && held.slots > 0)) return false;
  }
  AddUse(load, use);
  const bool cards_fit = std::ranges::all_of(use.cards, [&](const CardUse& used) {
    const Card& card = inventory.cards[static_cast<std::size_t>(used.card)];
    const CardLoad& now = load.cards[static_cast<std::size_t>(used.card)];
    const int64_t most = card.MostUsers();
    return card.usable() && now.milli <= card.capacity && !now.layout_broken &&
           (card.memory == Mebibytes::Zero() || now.memory <= card.memory) &&
           (most == 0 || now.slots <= most);
  });
  return cards_fit && std::ranges::all_of(use.instances, [&](const InstanceUse& used) {
           const auto pool = static_cast<std::size_t>(used.pool);
           const auto slot = static_cast<std::size_t>(used.slot);
           const auto card = static_cast<std::size_t>(inventory.pools[pool].slots[slot].card);
           return inventory.cards[card].usable() && !load.cards[card].layout_broken &&
                  load.slots[pool][slot] <= inventory.pools[pool].replicas;
         });
}

std::vector<std::vector<int64_t>> PlannedRows(const Inventory& inventory, const Load& load) {
  std::vector<std::vector<int64_t>> rows;
  if (!inventory.planned()) return rows;
  for (std::size_t i = 0; i < load.cards.size(); ++i) {
    const CardLoad& card = load.cards[i];
    const bool open = inventory.cards[i].usable() && !card.layout_broken;
    rows.push_back({open, card.layout.number()});
  }
  for (std::size_t p = 0; p < inventory.pools.size(); ++p) {
    const MigPool& pool = inventory.pools[p];
    if (pool.replicas == 1) continue;
    for (std::size_t s = 0; s < pool.slots.size(); ++s) {
      if (load.slots[p][s] == 0) continue;
      auto& row = rows[static_cast<std::size_t>(pool.slots[s].card)];
      row.insert(row.end(), {static_cast<int64_t>(p), pool.slots[s].start, load.slots[p][s]});
    }
  }
  return rows;
}

}  // namespace tranche
