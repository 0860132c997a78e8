#include "scheduler/advice/geometry_trial.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "scheduler/advice/rules.h"
#include "topology/base/check.h"

namespace tranche {
namespace {

// Adds `units` (negative: takes away) of a key; a key not there before goes where it belongs.
void AddUnits(std::string_view key, int64_t units, TrialNode& node) {
  std::vector<CountedKey>& keys = node.inventory.keys;
  const auto at = std::ranges::lower_bound(keys, key, {}, &CountedKey::key);
  const auto index = at - keys.begin();
  if (at == keys.end() || at->key != key) {
    keys.insert(at, {std::string(key), 0, 0});
    node.load.keys.insert(node.load.keys.begin() + index, 0);
  }
  CountedKey& counted = keys[static_cast<std::size_t>(index)];
  counted.allocatable += units;
  counted.capacity += units;
}

// The pool of the profile, under the key the node has for it.
std::size_t PoolOf(const MigBoard& board, const MigProfile& profile, TrialNode& node) {
  std::vector<MigPool>& pools = node.inventory.pools;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    if (FindMigProfile(board, pools[i].profile) == &profile) return i;
  }
  MigPool pool;
  pool.profile = std::string(profile.name);
  pool.key = FormatMigResource({pool.profile, false});
  pool.milli = MilliGpu::Of(int64_t{1000} * profile.compute_slices / board.compute_slices);
  pool.memory = profile.memory.value_or(Mebibytes::Zero());
  const auto at = std::ranges::lower_bound(pools, pool.key, {}, &MigPool::key) - pools.begin();
  pools.insert(pools.begin() + at, std::move(pool));
  node.load.slots.insert(node.load.slots.begin() + at, std::vector<int64_t>{});
  return static_cast<std::size_t>(at);
}

void RemoveInstances(int card, TrialNode& node) {
  for (std::size_t i = 0; i < node.inventory.pools.size(); ++i) {
    MigPool& pool = node.inventory.pools[i];
    std::vector<int64_t>& users = node.load.slots[i];
    for (std::size_t slot = pool.slots.size(); slot-- > 0;) {
      if (pool.slots[slot].card != card) continue;
      pool.slots.erase(pool.slots.begin() + static_cast<std::ptrdiff_t>(slot));
      users.erase(users.begin() + static_cast<std::ptrdiff_t>(slot));
      AddUnits(pool.key, -pool.replicas, node);
    }
  }
}

void AddInstance(const MigBoard& board, const MigInstance& instance, int card, TrialNode& node) {
  const std::size_t at = PoolOf(board, *instance.profile, node);
  MigPool& pool = node.inventory.pools[at];
  const MigSlot slot{card, instance.start, instance.profile->size};
  const auto behind = std::ranges::find_if(pool.slots, [&slot](const MigSlot& other) {
    return std::pair(other.card, other.start) > std::pair(slot.card, slot.start);
  });
  const auto index = behind - pool.slots.begin();
  pool.slots.insert(behind, slot);
  node.load.slots[at].insert(node.load.slots[at].begin() + index, 0);
  AddUnits(pool.key, pool.replicas, node);
}

bool SameAsk(const Ask& left, const Ask& right) {
  const auto rest = [](const Ask& ask) {
    return std::tie(ask.container, ask.resource, ask.count, ask.mig.profile, ask.mig.shared,
                    ask.memory.kind, ask.memory.value, ask.compute, ask.exclusive);
  };
  return rest(left) == rest(right);
}

}  // namespace

TrialNode TrialOf(const AdviceNode& node) {
  return {&node, node.inventory, node.load, node.cpu_free};
}

Geometry GeometryOfCard(const Inventory& inventory, int card) {
  Geometry geometry;
  for (const MigPool& pool : inventory.pools) {
    const auto count = std::ranges::count(pool.slots, card, &MigSlot::card);
    if (count > 0) geometry.profiles.emplace_back(pool.profile, static_cast<int>(count));
  }
  std::ranges::sort(geometry.profiles);
  return geometry;
}

bool IsIdle(const Inventory& inventory, const Load& load, int card) {
  const auto at = static_cast<std::size_t>(card);
  if (!inventory.cards[at].healthy || inventory.cards[at].cordoned) return false;
  if (load.cards[at] != CardLoad{}) return false;
  for (std::size_t i = 0; i < inventory.pools.size(); ++i) {
    for (std::size_t slot = 0; slot < inventory.pools[i].slots.size(); ++slot) {
      if (inventory.pools[i].slots[slot].card == card && load.slots[i][slot] > 0) return false;
    }
  }
  return true;
}

bool HasUnseenUse(const Load& load) {
  if (load.devices_unknown) return true;
  int64_t handed_out = 0;
  int64_t seen = 0;
  for (const int64_t units : load.keys) handed_out += units;
  for (const CardLoad& card : load.cards) seen += card.slots;
  for (const auto& pool : load.slots) {
    for (const int64_t users : pool) seen += users;
  }
  return handed_out > seen;
}

void CutCard(const MigBoard& board, const GeometryChoice& choice, int card, TrialNode& node) {
  Card& target = node.inventory.cards[static_cast<std::size_t>(card)];
  if (target.mode == CardMode::kWhole) AddUnits(kGpuKey, -1, node);
  RemoveInstances(card, node);
  if (choice.counts.empty()) {
    target.mode = CardMode::kWhole;
    AddUnits(kGpuKey, 1, node);
    node.inventory.gpu_unit = GpuUnit::kCard;
    return;
  }
  target.mode = CardMode::kMig;
  const auto layout = LayOutMig(board, choice.counts, 1);
  TRANCHE_CHECK(layout.has_value());
  for (const MigInstance& instance : layout->front()) AddInstance(board, instance, card, node);
}

TrialPlacer::TrialPlacer(const AdviceCase& fleet) : fleet_(&fleet) {
  for (std::size_t waiter = 0; waiter < fleet.waiting.size(); ++waiter) {
    const auto known = std::ranges::find_if(
        first_of_kind_, [&](std::size_t first) { return AreAlike(first, waiter); });
    kinds_.push_back(static_cast<std::size_t>(known - first_of_kind_.begin()));
    if (known == first_of_kind_.end()) first_of_kind_.push_back(waiter);
  }
}

bool TrialPlacer::AreAlike(std::size_t left, std::size_t right) const {
  const auto rest = [](const PodRequest& request) {
    return std::tie(request.style, request.models_any, request.models_none, request.uuids_any,
                    request.uuids_none, request.min_gpu_memory, request.one_numa_node, request.cpu,
                    request.vgpu_mode, request.card_choice);
  };
  const AdviceWaiter& a = fleet_->waiting[left];
  const AdviceWaiter& b = fleet_->waiting[right];
  const PodRequest& one = *a.request;
  const PodRequest& other = *b.request;
  const auto& demands = one.constraints;
  const auto& others = other.constraints;
  if (a.workload_class != b.workload_class || rest(one) != rest(other)) return false;
  if (demands != others && (!demands || !others || *demands != *others)) return false;
  const auto same_role = [](const ContainerInfo& x, const ContainerInfo& y) {
    return x.role == y.role && x.plugin_count == y.plugin_count;
  };
  const auto same_need = [](const PoolNeed& x, const PoolNeed& y) {
    return x.key == y.key && x.count == y.count;
  };
  return std::ranges::equal(one.containers, other.containers, same_role) &&
         std::ranges::equal(one.asks, other.asks, SameAsk) &&
         std::ranges::equal(one.pool_needs, other.pool_needs, same_need);
}

bool TrialPlacer::Suited(std::size_t waiter, const AdviceNode& node) const {
  const PodRequest& request = *fleet_->waiting[waiter].request;
  if (request.refusal || request.asks.empty()) return false;
  return SuitsNode(request, node);
}

bool TrialPlacer::Place(std::size_t waiter, TrialNode& node) {
  const AdviceWaiter& pod = fleet_->waiting[waiter];
  const PodRequest& request = *pod.request;
  if (!Suited(waiter, *node.origin)) return false;
  const bool binds = node.origin->cpu_capacity > MilliCpu::Zero();
  if (binds && request.cpu > node.cpu_free) return false;
  const PlaceRules rules = RulesIn(*fleet_, request, pod.workload_class);
  if (placer_.Place(node.inventory, node.load, request, rules, picks_) != Reason::kNone) {
    return false;
  }
  AddUse(node.load, UseOf(request, picks_));
  for (const PoolNeed& need : request.pool_needs) {
    const CountedKey* key = node.inventory.FindKey(need.key);
    if (key == nullptr) continue;
    node.load.keys[static_cast<std::size_t>(key - node.inventory.keys.data())] += need.count;
  }
  node.cpu_free -= request.cpu;
  return true;
}

std::vector<std::size_t> TrialPlacer::PlaceAll(std::span<const std::size_t> waiters,
                                               TrialNode& node) {
  std::vector<std::size_t> placed;
  std::vector<bool> full(kinds(), false);
  for (const std::size_t waiter : waiters) {
    if (full[kind(waiter)]) continue;
    if (Place(waiter, node)) {
      placed.push_back(waiter);
    } else {
      full[kind(waiter)] = true;
    }
  }
  return placed;
}

}  // namespace tranche
