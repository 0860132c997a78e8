// The index names nodes where a place is likely; the placement rules judge. Between Keep and Undo
// the index is that of before: a place that is gone by then costs one more try.
#include "scheduler/advice/defrag_books.h"

#include <algorithm>
#include <bit>

#include "scheduler/advice/rules.h"
#include "topology/base/check.h"

namespace tranche {
namespace {

// Nodes the placement rules look at for one move, and entries of the index passed over for it.
constexpr int kMostTries = 24;
constexpr int kMostSteps = 512;

bool IsIdle(const CardLoad& card) {
  return card.slots == 0 && card.exclusive == 0 && card.milli == MilliGpu::Zero() &&
         card.memory == Mebibytes::Zero();
}

// Rounded up, so that a need that is at most the free share may fit and a larger one cannot.
int64_t ShareOf(Mebibytes memory, const Card& card) {
  if (card.memory.count() <= 0) return 0;
  return (memory.count() * 1000 + card.memory.count() - 1) / card.memory.count();
}

int64_t FreeShare(const Card& card, const CardLoad& load) {
  const int64_t milli = (card.capacity - load.milli).count();
  if (card.memory.count() <= 0) return milli;
  return std::min(milli, 1000 - load.memory.count() * 1000 / card.memory.count());
}

// The inverse of AddUse and of the counted keys. A layout that is broken stays so: nothing fits.
void RemoveUse(Load& load, const Inventory& inventory, const AdvicePod& pod) {
  for (const CardUse& use : pod.use.cards) {
    CardLoad& card = load.cards[static_cast<std::size_t>(use.card)];
    card.milli -= use.milli;
    card.memory -= use.memory;
    card.slots -= use.slots;
    card.beside -= use.beside;
    card.exclusive -= use.exclusive;
    for (const MigPlace& place : use.places) {
      if (card.layout_broken) break;
      card.layout = place.space->Without(card.layout, place.profile, place.start);
    }
  }
  for (const InstanceUse& use : pod.use.instances) {
    const MigPool& pool = inventory.pools[static_cast<std::size_t>(use.pool)];
    const MigSlot& slot = pool.slots[static_cast<std::size_t>(use.slot)];
    CardLoad& card = load.cards[static_cast<std::size_t>(slot.card)];
    int64_t& users =
        load.slots[static_cast<std::size_t>(use.pool)][static_cast<std::size_t>(use.slot)];
    users -= use.users;
    if (users > 0 || pool.planned_profile < 0 || card.layout_broken) continue;
    card.layout = load.space->Without(card.layout, pool.planned_profile, slot.start);
  }
}

void AddKeys(Load& load, const Inventory& inventory, const PodRequest& request, int64_t times) {
  load.cpu += request.cpu * times;
  for (const PoolNeed& need : request.pool_needs) {
    const CountedKey* key = inventory.FindKey(need.key);
    if (key == nullptr) continue;
    load.keys[static_cast<std::size_t>(key - inventory.keys.data())] += times * need.count;
  }
}

// How many more instances of a profile the layout takes.
int RoomFor(const MigSpace& space, LayoutId layout, int profile) {
  int most = 0;
  for (const MigSpace::Step& step : space.steps(layout, profile)) {
    most = std::max(most, 1 + RoomFor(space, step.after, profile));
  }
  return most;
}

// What the pod needs at least of a GPU like this one if it uses it at all.
struct LeastNeed {
  bool whole = false;  // of one of them all
  CardNeed need{kWholeGpu, Mebibytes::Zero(), 0};
};
LeastNeed LeastOf(const Inventory& inventory, const PodRequest& request, const Card& card) {
  LeastNeed least;
  least.need.memory = card.memory;
  for (const Ask& ask : request.asks) {
    if (PoolFor(inventory, ask) >= 0) continue;
    const CardNeed need = NeedOn(inventory, ask, card);
    least.whole |= need.exclusive > 0 || need.milli >= kWholeGpu ||
                   (card.memory > Mebibytes::Zero() && need.memory >= card.memory);
    least.need.milli = std::min(least.need.milli, need.milli);
    least.need.memory = std::min(least.need.memory, need.memory);
  }
  return least;
}

}  // namespace

int64_t MilliOf(const AdvicePod& pod, const Inventory& inventory) {
  int64_t milli = 0;
  for (const CardUse& use : pod.use.cards) milli += use.milli.count();
  for (const InstanceUse& use : pod.use.instances) {
    const auto pool = static_cast<std::size_t>(use.pool);
    if (pool < inventory.pools.size()) milli += inventory.pools[pool].milli.count();
  }
  return milli;
}

void RemoveFrom(Load& load, const Inventory& inventory, const AdvicePod& pod) {
  RemoveUse(load, inventory, pod);
  AddKeys(load, inventory, *pod.request, -1);
}

DefragBooks::DefragBooks(const AdviceCase& fleet, std::vector<int> room_sizes)
    : fleet_(fleet), room_sizes_(std::move(room_sizes)) {
  const std::size_t nodes = fleet.nodes.size();
  moved_.assign(fleet.pods.size(), 0);
  usable_.assign(nodes, 0);
  promised_.assign(nodes, 0);
  card_products_.resize(nodes);
  std::size_t pod = 0;
  for (std::size_t n = 0; n < nodes; ++n) {
    first_pod_.push_back(pod);
    while (pod < fleet.pods.size() && fleet.pods[pod].node == n) ++pod;
    const AdviceNode& node = fleet.nodes[n];
    loads_.push_back(node.load);
    cpu_free_.push_back(node.cpu_free);
    for (std::size_t c = 0; c < node.inventory.cards.size(); ++c) {
      const Card& card = node.inventory.cards[c];
      const int next = static_cast<int>(products_.size());
      const auto product = products_.emplace(std::pair(card.product, card.space), next).first;
      card_products_[n].push_back(product->second);
      const bool usable = node.open && !node.load.devices_unknown && card.healthy &&
                          !card.cordoned && card.mode != CardMode::kMig && card.cut == nullptr;
      if (usable) usable_[n] |= OneCard(c);
    }
    WithEntries(n, Entries::kAdd);
  }
  TRANCHE_CHECK_EQ(pod, fleet.pods.size());
  first_pod_.push_back(pod);
}

CardSet DefragBooks::IdleIn(std::size_t node, const Load& load) const {
  CardSet idle = 0;
  for (std::size_t c = 0; c < load.cards.size(); ++c) {
    if (IsIdle(load.cards[c])) idle |= OneCard(c);
  }
  return idle & usable_[node];
}

CardSet DefragBooks::PartlyUsed(std::size_t node) const {
  CardSet partly = 0;
  for (std::size_t c = 0; c < loads_[node].cards.size(); ++c) {
    const CardLoad& card = loads_[node].cards[c];
    if (!IsIdle(card) && card.milli < this->node(node).inventory.cards[c].capacity) {
      partly |= OneCard(c);
    }
  }
  return partly & usable_[node];
}

Load DefragBooks::LoadWithout(std::size_t node, std::span<const std::size_t> pods) const {
  Load load = loads_[node];
  for (const std::size_t pod : pods) {
    RemoveUse(load, fleet_.nodes[node].inventory, fleet_.pods[pod]);
  }
  return load;
}

void DefragBooks::WithEntries(std::size_t n, Entries change) {
  const AdviceNode& node = fleet_.nodes[n];
  const Load& load = loads_[n];
  const CardSet idle = Idle(n) & ~promised_[n];
  const CardSet partly = PartlyUsed(n) & ~promised_[n];
  const auto put = [change](auto& entries, const auto& entry) {
    if (change == Entries::kAdd) {
      entries.insert(entry);
    } else {
      entries.erase(entry);
    }
  };
  for (std::size_t c = 0; c < load.cards.size(); ++c) {
    const Card& card = node.inventory.cards[c];
    const int product = card_products_[n][c];
    if ((partly & OneCard(c)) != 0)
      put(holes_, Hole{product, FreeShare(card, load.cards[c]), n, c});
    const bool planned = card.planned() && node.open && !load.devices_unknown && card.healthy &&
                         !load.cards[c].layout_broken && (promised_[n] & OneCard(c)) == 0;
    if (!planned) continue;
    const LayoutId layout = load.cards[c].layout;
    const int free = card.space->board().units - card.space->used_units(layout);
    put(layouts_[{product, free, layout}], std::pair(n, c));
  }
  if (idle == 0) return;
  const auto first = static_cast<std::size_t>(std::countr_zero(idle));
  put(rooms_, Room{card_products_[n][first], std::popcount(idle), n});
}

void DefragBooks::Touch(std::size_t node) {
  if (std::ranges::find(touched_, node, &Touched::node) != touched_.end()) return;
  touched_.push_back({node, loads_[node], cpu_free_[node]});
}

const Load& DefragBooks::LoadBefore(std::size_t node) const {
  const auto at = std::ranges::find(touched_, node, &Touched::node);
  return at == touched_.end() ? loads_[node] : at->load;
}

void DefragBooks::Undo() {
  for (Touched& touched : touched_) {
    loads_[touched.node] = std::move(touched.load);
    cpu_free_[touched.node] = touched.cpu_free;
  }
  for (const std::size_t pod : moves_) moved_[pod] = 0;
  touched_.clear();
  moves_.clear();
  taken_ = 0;
}

void DefragBooks::Keep(std::size_t node, CardSet promised) {
  Touch(node);
  for (Touched& touched : touched_) {
    std::swap(loads_[touched.node], touched.load);
    WithEntries(touched.node, Entries::kRemove);
    std::swap(loads_[touched.node], touched.load);
  }
  promised_[node] |= promised;
  for (const Touched& touched : touched_) WithEntries(touched.node, Entries::kAdd);
  touched_.clear();
  moves_.clear();
  taken_ = 0;
}

bool DefragBooks::MayHost(std::size_t node, const PodRequest& request) const {
  const bool cpu_said = fleet_.nodes[node].cpu_capacity > MilliCpu::Zero();
  return fleet_.nodes[node].open && (!cpu_said || cpu_free_[node] >= request.cpu);
}

void DefragBooks::Add(Load& load, const Inventory& inventory, const PodRequest& request,
                      const Picks& picks) {
  AddUse(load, UseOf(request, picks));
  AddKeys(load, inventory, request, 1);
}

std::optional<std::size_t> DefragBooks::Move(std::size_t pod, const DefragTarget& target) {
  const AdvicePod& mover = fleet_.pods[pod];
  const Inventory& inventory = fleet_.nodes[mover.node].inventory;
  Touch(mover.node);
  RemoveUse(loads_[mover.node], inventory, mover);
  AddKeys(loads_[mover.node], inventory, *mover.request, -1);
  cpu_free_[mover.node] += mover.request->cpu;
  moved_[pod] = 1;
  moves_.push_back(pod);
  tries_left_ = kMostTries;

  const bool found = [&] {
    if (mover.use.cards.empty()) return TryLayouts(pod, target);
    const auto card = static_cast<std::size_t>(mover.use.cards.front().card);
    const LeastNeed least = LeastOf(inventory, *mover.request, inventory.cards[card]);
    whole_ = least.whole;
    return whole_ ? TryRooms(pod, target) : TryHoles(pod, least.need, target);
  }();
  if (!found) return std::nullopt;
  return moved_to_;
}

bool DefragBooks::TryHoles(std::size_t pod, const CardNeed& need, const DefragTarget& target) {
  const AdvicePod& mover = fleet_.pods[pod];
  const auto card = static_cast<std::size_t>(mover.use.cards.front().card);
  const int product = card_products_[mover.node][card];
  const bool replicas = std::ranges::none_of(
      mover.request->asks, [](const Ask& ask) { return ask.resource == Resource::kShare; });
  const Card& home = fleet_.nodes[mover.node].inventory.cards[card];
  // The scarcer of what is free is at least the lesser of what is needed.
  const int64_t least = home.memory > Mebibytes::Zero()
                            ? std::min(need.milli.count(), ShareOf(need.memory, home))
                            : need.milli.count();
  std::size_t last = SIZE_MAX;
  int steps = kMostSteps;
  for (auto hole = holes_.lower_bound({product, least, 0, 0});
       hole != holes_.end() && hole->product == product && --steps > 0; ++hole) {
    if (hole->node == last) continue;  // its cards often lie side by side
    const Card& at = fleet_.nodes[hole->node].inventory.cards[hole->card];
    const CardLoad& load = loads_[hole->node].cards[hole->card];
    if (load.milli + need.milli > at.capacity || load.memory + need.memory > at.memory) continue;
    last = hole->node;
    // Replicas are taken of the least used GPU.
    if (replicas && Idle(hole->node) != 0) continue;
    if (TryNode(pod, hole->node, target)) return true;
    if (tries_left_ == 0) return false;
  }
  return false;
}

// Of pods that need whole GPUs: where the fewest idle ones are.
bool DefragBooks::TryRooms(std::size_t pod, const DefragTarget& target) {
  const AdvicePod& mover = fleet_.pods[pod];
  const auto card = static_cast<std::size_t>(mover.use.cards.front().card);
  const int product = card_products_[mover.node][card];
  int most = 0;
  for (const Ask& ask : mover.request->asks) most = std::max(most, static_cast<int>(ask.count));
  int steps = kMostSteps;
  for (auto room = rooms_.lower_bound({product, most, 0});
       room != rooms_.end() && room->product == product && --steps > 0; ++room) {
    // Its own node would give it what it has just left.
    if (room->node == mover.node) continue;
    if (TryNode(pod, room->node, target)) return true;
    if (tries_left_ == 0) return false;
  }
  return false;
}

// Of pods that hold MIG instances only: the fullest planned cards that take the first of them.
bool DefragBooks::TryLayouts(std::size_t pod, const DefragTarget& target) {
  const AdvicePod& mover = fleet_.pods[pod];
  const AdviceNode& home = fleet_.nodes[mover.node];
  if (mover.use.instances.empty()) return false;
  const InstanceUse& first = mover.use.instances.front();
  const MigPool& pool = home.inventory.pools[static_cast<std::size_t>(first.pool)];
  if (pool.planned_profile < 0) return false;
  const auto card = static_cast<std::size_t>(pool.slots[static_cast<std::size_t>(first.slot)].card);
  const int product = card_products_[mover.node][card];
  const MigSpace& space = *home.inventory.cards[card].space;
  int steps = kMostSteps;
  for (auto group = layouts_.lower_bound({product, 0, kEmptyLayout});
       group != layouts_.end() && group->first.product == product; ++group) {
    if (space.steps(group->first.layout, pool.planned_profile).empty()) continue;
    for (const auto& [node, at] : group->second) {
      if (--steps == 0) return false;
      if (TryNode(pod, node, target)) return true;
      if (tries_left_ == 0) return false;
    }
  }
  return false;
}

bool DefragBooks::TryNode(std::size_t pod, std::size_t node, const DefragTarget& target) {
  const AdvicePod& mover = fleet_.pods[pod];
  const AdviceNode& host = fleet_.nodes[node];
  const PodRequest& request = *mover.request;
  if (node != mover.node && !SuitsNode(*mover.request, host)) return false;
  if (!MayHost(node, request)) return false;
  --tries_left_;
  ++trials_;
  const PlaceRules rules = RulesIn(fleet_, request, mover.workload_class);
  const Reason reason = placer_.Place(host.inventory, loads_[node], request, rules, picks_);
  if (reason != Reason::kNone) return false;
  int64_t taken = 0;
  if (!MayTake(mover, node, target, taken)) return false;

  Load after = loads_[node];
  Add(after, host.inventory, request, picks_);
  if (!KeepsSlices(node, after, target)) return false;
  Touch(node);
  loads_[node] = std::move(after);
  cpu_free_[node] -= request.cpu;
  taken_ += taken;
  moved_to_ = node;
  return true;
}

// The GPUs chosen are of the mover's model, promised to nobody and no part of the target; idle ones
// only where no room for several GPUs is lost.
bool DefragBooks::MayTake(const AdvicePod& mover, std::size_t node, const DefragTarget& target,
                          int64_t& taken) const {
  const auto product_of = [this](std::size_t n, int card) {
    return card_products_[n][static_cast<std::size_t>(card)];
  };
  const int product = product_of(mover.node, mover.picks.front().card);
  const CardSet idle = Idle(node);
  CardSet touched = 0;
  for (const Pick& pick : picks_) {
    if (product_of(node, pick.card) != product) return false;
    touched |= OneCard(static_cast<std::size_t>(pick.card));
  }
  const CardSet closed =
      promised_[node] | (node == target.node && !target.slice ? target.cards : 0);
  if ((touched & closed) != 0) return false;
  const CardSet opened = touched & idle;
  if (opened == 0) return true;
  if (node == target.node || !whole_) return false;
  taken = std::popcount(opened);
  const int before = std::popcount(idle);
  const int after = before - static_cast<int>(taken);
  return std::ranges::all_of(room_sizes_, [&](int size) { return before / size == after / size; });
}

// Of a slice: no other planned card takes fewer instances of its profile, or of a larger one,
// than before, and its own units stay free.
bool DefragBooks::KeepsSlices(std::size_t node, const Load& after,
                              const DefragTarget& target) const {
  if (!target.slice) return true;
  const MigSpace& space = *fleet_.nodes[target.node].inventory.cards.front().space;
  const MigBoard& board = space.board();
  const MigProfile& wanted = board.profiles[static_cast<std::size_t>(target.slice->profile)];
  for (const Pick& pick : picks_) {
    const auto card = static_cast<std::size_t>(pick.card);
    if (node == target.node && OneCard(card) == target.cards) {
      const MigSlot& slot = fleet_.nodes[node]
                                .inventory.pools[static_cast<std::size_t>(pick.pool)]
                                .slots[static_cast<std::size_t>(pick.slot)];
      const int start = target.slice->start;
      if (slot.start < start + wanted.size && start < slot.start + slot.size) return false;
      continue;
    }
    for (std::size_t p = 0; p < board.profiles.size(); ++p) {
      if (board.profiles[p].size < wanted.size) continue;
      const int profile = static_cast<int>(p);
      if (RoomFor(space, after.cards[card].layout, profile) <
          RoomFor(space, loads_[node].cards[card].layout, profile)) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace tranche
