// Between picks and their written form, the allocation record.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "scheduler/index/placement.h"

namespace tranche {
namespace {

ContainerRole RoleOf(const PodRequest& request, const Pick& pick) {
  const Ask& ask = request.asks[static_cast<std::size_t>(pick.ask)];
  return request.containers[static_cast<std::size_t>(ask.container)].role;
}

int ContainerOf(const PodRequest& request, const Pick& pick) {
  return request.asks[static_cast<std::size_t>(pick.ask)].container;
}

// Amounts of one device over the pod's life: `steady` is what app containers and sidecars take
// together, `peak` the most that any moment of the init phase takes.
struct Phases {
  CardUse steady;
  CardUse peak;
};

void Add(CardUse& use, const PodRequest& request, const Pick& pick) {
  use.milli += pick.milli;
  use.memory += pick.memory;
  use.slots += 1;
  use.beside += TakesBeside(request.asks[static_cast<std::size_t>(pick.ask)]);
  use.exclusive += pick.exclusive;
}

void RaiseTo(CardUse& use, const CardUse& other) {
  use.milli = std::max(use.milli, other.milli);
  use.memory = std::max(use.memory, other.memory);
  use.slots = std::max(use.slots, other.slots);
  use.beside = std::max(use.beside, other.beside);
  use.exclusive = std::max(use.exclusive, other.exclusive);
}

// What one init container and the sidecars started before it take of one device.
template <typename OnDevice>
CardUse InitMoment(const PodRequest& request, const Picks& picks, int container,
                   OnDevice on_device) {
  CardUse moment;
  for (const Pick& pick : picks) {
    if (!on_device(pick)) continue;
    const int other = ContainerOf(request, pick);
    const bool sidecar_before =
        other < container && RoleOf(request, pick) == ContainerRole::kSidecar;
    if (other == container || sidecar_before) Add(moment, request, pick);
  }
  return moment;
}

template <typename OnDevice>
CardUse LifeUse(const PodRequest& request, const Picks& picks, OnDevice on_device) {
  CardUse use;
  for (const Pick& pick : picks) {
    if (on_device(pick) && RoleOf(request, pick) != ContainerRole::kInit) {
      Add(use, request, pick);
    }
  }
  for (const Pick& pick : picks) {
    if (!on_device(pick) || RoleOf(request, pick) != ContainerRole::kInit) continue;
    RaiseTo(use, InitMoment(request, picks, ContainerOf(request, pick), on_device));
  }
  return use;
}

// By UUID, or by index where the agent goes by it. Koordinator's records may lack the UUID.
std::optional<int> FindCard(const Inventory& inventory, const Device& device) {
  const bool by_index = device.uuid.empty() && inventory.agent == AgentKind::kKoordinator;
  for (std::size_t i = 0; i < inventory.cards.size(); ++i) {
    const Card& card = inventory.cards[i];
    const bool same =
        by_index || card.uuid.empty() ? card.index == device.card : card.uuid == device.uuid;
    if (same) return static_cast<int>(i);
  }
  return std::nullopt;
}

// Where the card of a recorded instance stands; -1: nowhere. Where only counts are known records
// have the position itself.
int PositionOf(const Inventory& inventory, const Device& device) {
  if (inventory.knowledge != Knowledge::kExact) return device.card;
  return FindCard(inventory, device).value_or(-1);
}

// The instance a record names on a cut card.
std::optional<MigPlace> ResolveInstance(const CardCut& cut, const Device& device,
                                        std::string& problem) {
  if (!device.mig) {
    problem = fmt::format("expected a MIG instance of {}, found the card", device.uuid.str());
    return std::nullopt;
  }
  const MigBoard& board = cut.space->board();
  const MigProfile* profile = FindMigProfile(board, device.mig->profile);
  for (const CutProfile& offered : cut.profiles) {
    if (profile != &board.profiles[static_cast<std::size_t>(offered.profile)]) continue;
    const bool legal = std::ranges::count(offered.starts, device.mig->start) > 0;
    if (!legal || device.mig->size != profile->size) break;
    return MigPlace{cut.space, offered.profile, device.mig->start};
  }
  problem =
      fmt::format("expected an instance that {} can have, found {} at {} of size {}",
                  device.uuid.str(), device.mig->profile, device.mig->start, device.mig->size);
  return std::nullopt;
}

// One recorded device as a pick for `ask`; nullopt and `problem` when it is none of this node's.
std::optional<Pick> ResolveDevice(const Inventory& inventory, const Ask& ask, const Device& device,
                                  std::string& problem) {
  Pick pick;
  if (const int pool = PoolFor(inventory, ask); pool >= 0) {
    if (!device.mig) {
      problem = "expected a MIG device, found a whole card";
      return std::nullopt;
    }
    const MigPool& from = inventory.pools[static_cast<std::size_t>(pool)];
    const int card = PositionOf(inventory, device);
    for (std::size_t i = 0; i < from.slots.size(); ++i) {
      if (from.slots[i].card != card || from.slots[i].start != device.mig->start) continue;
      if (device.mig->profile != from.profile) break;
      if (inventory.planned() && device.mig->size != from.slots[i].size) {
        problem = fmt::format("expected {} memory units for an instance of {}, found {}",
                              from.slots[i].size, from.profile, device.mig->size);
        return std::nullopt;
      }
      pick.card = card;
      pick.pool = pool;
      pick.slot = static_cast<int>(i);
      pick.milli = std::max(from.milli, device.milli);
      pick.memory = std::max(from.memory, device.memory);
      return pick;
    }
    problem = fmt::format("expected an instance of {} of the node, found {} at {} on card {}",
                          from.profile, device.mig->profile, device.mig->start, device.card);
    return std::nullopt;
  }
  int index = device.card;
  if (inventory.knowledge == Knowledge::kExact) {
    const std::optional<int> found = FindCard(inventory, device);
    if (!found) {
      problem = fmt::format("expected a GPU of the node, found uuid '{}', index {}",
                            device.uuid.str(), device.card);
      return std::nullopt;
    }
    index = *found;
  }
  if (index < 0 || index >= static_cast<int>(inventory.cards.size())) {
    problem = fmt::format("expected a card below {}, found {}", inventory.cards.size(), index);
    return std::nullopt;
  }
  const Card& card = inventory.cards[static_cast<std::size_t>(index)];
  if (card.mode == CardMode::kMig) {
    problem = fmt::format("expected a card that is not cut by MIG, found card {}", index);
    return std::nullopt;
  }
  const CardNeed need = NeedOn(inventory, ask, card);
  pick.card = index;
  pick.milli = std::max(need.milli, device.milli);
  pick.memory = std::max(need.memory, device.memory);
  pick.exclusive = need.exclusive;
  if (card.cut != nullptr) {
    const std::optional<MigPlace> place = ResolveInstance(*card.cut, device, problem);
    if (!place) return std::nullopt;
    // It may be larger than what the request takes today: another scheduler chose it.
    const CutProfile& held =
        *std::ranges::find(card.cut->profiles, place->profile, &CutProfile::profile);
    pick.milli = std::max(held.milli, device.milli);
    pick.memory = std::max(held.memory, device.memory);
    pick.place = *place;
    return pick;
  }
  if (device.mig) {
    problem = fmt::format("expected a card, found MIG device {}", device.mig->profile);
    return std::nullopt;
  }
  return pick;
}

// An agent's keys on a node without an agent are copies or forgeries, unless they name its cards.
bool IsOfThisNode(const Inventory& inventory, const Allocation& allocation, std::string& problem) {
  if (allocation.epoch > 0 || inventory.has_agent()) return true;
  for (const ContainerDevices& container : allocation.containers) {
    for (const Device& device : container.devices) {
      if (device.uuid.empty() ||
          std::ranges::count(inventory.cards, device.uuid, &Card::uuid) > 0) {
        continue;
      }
      problem =
          fmt::format("expected no device of a node agent, found uuid '{}'", device.uuid.str());
      return false;
    }
  }
  return true;
}

// What the pod alone would hold must be something the executor can make.
bool IsLegalOnIdleCards(const Inventory& inventory, const PodRequest& request, const Picks& picks,
                        std::string& problem) {
  Load load;
  load.Reset(inventory);
  AddUse(load, UseOf(request, picks));
  for (std::size_t i = 0; i < load.cards.size(); ++i) {
    if (!load.cards[i].layout_broken) continue;
    problem = fmt::format("expected instances that may exist together, found others on card {}", i);
    return false;
  }
  for (std::size_t p = 0; p < load.slots.size(); ++p) {
    const MigPool& pool = inventory.pools[p];
    for (std::size_t s = 0; s < load.slots[p].size(); ++s) {
      if (load.slots[p][s] <= pool.replicas) continue;
      problem =
          fmt::format("expected at most {} users of {} at {} on card {}, found {}", pool.replicas,
                      pool.profile, pool.slots[s].start, pool.slots[s].card, load.slots[p][s]);
      return false;
    }
  }
  return true;
}

}  // namespace

PodUse UseOf(const PodRequest& request, const Picks& picks) {
  PodUse result;
  for (const Pick& pick : picks) {
    if (pick.pool < 0) {
      const bool seen = std::ranges::any_of(
          result.cards, [&](const CardUse& use) { return use.card == pick.card; });
      if (seen) continue;
      CardUse use = LifeUse(request, picks, [&](const Pick& other) {
        return other.pool < 0 && other.card == pick.card;
      });
      use.card = pick.card;
      use.kept = request.follows_placeholder ? 1 : 0;
      for (const Pick& other : picks) {
        if (other.card == pick.card && other.place.space) use.places.push_back(other.place);
      }
      result.cards.push_back(std::move(use));
    } else {
      const bool seen = std::ranges::any_of(result.instances, [&](const InstanceUse& use) {
        return use.pool == pick.pool && use.slot == pick.slot;
      });
      if (seen) continue;
      const CardUse use = LifeUse(request, picks, [&](const Pick& other) {
        return other.pool == pick.pool && other.slot == pick.slot;
      });
      result.instances.push_back({pick.pool, pick.slot, use.slots});
    }
  }
  return result;
}

namespace {

// As the card's agent spells it.
MigDevice InstanceOf(const Card& card, const MigPlace& place) {
  const MigProfile& profile =
      place.space->board().profiles[static_cast<std::size_t>(place.profile)];
  std::string name(profile.name);
  if (card.cut != nullptr) {
    const auto offered = std::ranges::find(card.cut->profiles, place.profile, &CutProfile::profile);
    if (offered != card.cut->profiles.end()) name = offered->name;
  }
  return {std::move(name), place.start, profile.size};
}

}  // namespace

Allocation ToAllocation(const Inventory& inventory, const PodRequest& request, const Picks& picks) {
  Allocation allocation;
  allocation.knowledge = inventory.knowledge;
  for (std::size_t c = 0; c < request.containers.size(); ++c) {
    ContainerDevices container;
    container.container = request.containers[c].name;
    for (const Pick& pick : picks) {
      if (ContainerOf(request, pick) != static_cast<int>(c)) continue;
      Device device;
      const Card& card = inventory.cards[static_cast<std::size_t>(pick.card)];
      // People see the published index; where it is exact the UUID finds the card again.
      device.card = inventory.knowledge == Knowledge::kExact ? card.index : pick.card;
      device.uuid = card.uuid;
      device.milli = pick.milli;
      device.memory = pick.memory;
      if (pick.pool >= 0) {
        const MigPool& pool = inventory.pools[static_cast<std::size_t>(pick.pool)];
        const MigSlot& slot = pool.slots[static_cast<std::size_t>(pick.slot)];
        device.mig = MigDevice{pool.profile, slot.start, slot.size};
      } else if (pick.place.space != nullptr) {
        device.mig = InstanceOf(card, pick.place);
      }
      container.devices.push_back(std::move(device));
    }
    if (!container.devices.empty()) allocation.containers.push_back(std::move(container));
  }
  return allocation;
}

std::optional<Picks> FromAllocation(const Inventory& inventory, const PodRequest& request,
                                    const Allocation& allocation, std::string& problem) {
  if (!IsOfThisNode(inventory, allocation, problem)) return std::nullopt;
  Picks picks;
  std::size_t containers_used = 0;
  for (std::size_t c = 0; c < request.containers.size(); ++c) {
    const std::string& name = request.containers[c].name;
    const auto record =
        std::ranges::find(allocation.containers, name, &ContainerDevices::container);
    std::size_t next = 0;
    for (std::size_t a = 0; a < request.asks.size(); ++a) {
      const Ask& ask = request.asks[a];
      if (ask.container != static_cast<int>(c)) continue;
      for (int64_t unit = 0; unit < ask.count; ++unit, ++next) {
        if (record == allocation.containers.end() || next >= record->devices.size()) {
          problem = fmt::format("expected {} devices for container '{}', found {}", ask.count, name,
                                record == allocation.containers.end() ? 0 : record->devices.size());
          return std::nullopt;
        }
        auto pick = ResolveDevice(inventory, ask, record->devices[next], problem);
        if (!pick) return std::nullopt;
        pick->ask = static_cast<int>(a);
        picks.push_back(*pick);
      }
    }
    if (record == allocation.containers.end()) continue;
    ++containers_used;
    if (next != record->devices.size()) {
      problem = fmt::format("expected {} devices for container '{}', found {}", next, name,
                            record->devices.size());
      return std::nullopt;
    }
  }
  if (containers_used != allocation.containers.size()) {
    problem = "expected devices for containers of the pod only, found another container";
    return std::nullopt;
  }
  const bool instances = inventory.planned() || std::ranges::any_of(picks, [](const Pick& pick) {
                           return pick.place.space != nullptr;
                         });
  if (instances && !IsLegalOnIdleCards(inventory, request, picks, problem)) return std::nullopt;
  return picks;
}

namespace {

// The pool whose instance the device is; null: none of the node's.
const MigPool* PoolOf(const Inventory& inventory, const Device& device) {
  const int card = PositionOf(inventory, device);
  for (const MigPool& pool : inventory.pools) {
    if (!device.mig || pool.profile != device.mig->profile) continue;
    for (const MigSlot& slot : pool.slots) {
      if (slot.card == card && slot.start == device.mig->start) return &pool;
    }
  }
  return nullptr;
}

// The ask for units of a key that the kubelet counts; nullopt: no GPUs.
std::optional<Ask> AskForKey(std::string_view key) {
  constexpr std::string_view kMigPrefix = "nvidia.com/mig-";
  Ask ask;
  ask.count = 1;
  if (key == kGpuKey) return ask;
  ask.resource = Resource::kGpuShared;
  if (key == kGpuSharedKey) return ask;
  if (!key.starts_with(kMigPrefix)) return std::nullopt;
  const auto name = ParseMigResourceTail(key.substr(kMigPrefix.size()));
  if (!name) return std::nullopt;
  ask.resource = Resource::kMig;
  ask.mig = *name;
  return ask;
}

int64_t UnitsOf(const PodRequest& request, std::string_view key) {
  const auto need = std::ranges::find(request.pool_needs, key, &PoolNeed::key);
  return need == request.pool_needs.end() ? 0 : need->count;
}

// The ask that one recorded device answers by itself.
Ask AskOf(const Inventory& inventory, const PodRequest& request, const Device& device) {
  if (const MigPool* pool = PoolOf(inventory, device)) {
    if (const std::optional<Ask> ask = AskForKey(pool->key)) return *ask;
  }
  // Without an agent a unit of the kubelet's is all of what it stands for.
  if (!inventory.has_agent() && UnitsOf(request, kGpuKey) > 0) return *AskForKey(kGpuKey);
  Ask ask;
  ask.resource = Resource::kShare;
  ask.count = 1;
  ask.compute = device.milli;
  if (device.memory > Mebibytes::Zero()) {
    ask.memory = {MemoryNeed::Kind::kMib, device.memory.count()};
  }
  ask.exclusive = device.milli >= kWholeGpu;
  return ask;
}

bool AddDevice(const Inventory& inventory, int container, const Device& device, HeldDevices& held,
               std::string& problem) {
  Ask ask = AskOf(inventory, held.request, device);
  ask.container = container;
  std::optional<Pick> pick = ResolveDevice(inventory, ask, device, problem);
  if (!pick) return false;
  pick->ask = static_cast<int>(held.request.asks.size());
  held.request.asks.push_back(std::move(ask));
  held.picks.push_back(*pick);
  return true;
}

}  // namespace

bool MayBeEdited(const PodRequest& request) {
  switch (request.style) {
    case RequestStyle::kNone:
    case RequestStyle::kTranche:
    case RequestStyle::kKai:
    case RequestStyle::kOpenGpuShare:
    case RequestStyle::kHived:
      return true;
    default:
      return request.refusal.has_value();
  }
}

std::optional<HeldDevices> FromRecordAlone(const Inventory& inventory, const PodRequest& request,
                                           const Allocation& allocation, std::string& problem) {
  if (!IsOfThisNode(inventory, allocation, problem)) return std::nullopt;
  HeldDevices held{request, {}};
  held.request.asks.clear();
  for (const ContainerDevices& container : allocation.containers) {
    const auto at =
        std::ranges::find(request.containers, container.container, &ContainerInfo::name);
    if (at == request.containers.end()) {
      problem = "expected devices for containers of the pod only, found another container";
      return std::nullopt;
    }
    for (const Device& device : container.devices) {
      const auto index = static_cast<int>(at - request.containers.begin());
      if (!AddDevice(inventory, index, device, held, problem)) return std::nullopt;
    }
  }
  const int64_t units = std::max<int64_t>(UnitsOf(request, kGpuKey), 1);
  if (std::ssize(held.picks) < units) {
    problem = fmt::format("expected {} devices, found {}", units, held.picks.size());
    return std::nullopt;
  }
  if (!IsLegalOnIdleCards(inventory, held.request, held.picks, problem)) return std::nullopt;
  return held;
}

bool AddNamed(const Inventory& inventory, const Allocation& named, HeldDevices& held,
              std::string& problem) {
  if (inventory.knowledge != Knowledge::kExact || held.request.containers.empty()) return true;
  for (const ContainerDevices& container : named.containers) {
    for (Device device : container.devices) {
      const std::optional<int> card = FindCard(inventory, device);
      if (!card || std::ranges::count(held.picks, *card, &Pick::card) > 0) continue;
      if (device.milli == MilliGpu::Zero() && device.memory == Mebibytes::Zero()) {
        // An agent that names a card alone may have given all of it.
        device.milli = kWholeGpu;
        device.memory = inventory.cards[static_cast<std::size_t>(*card)].memory;
      }
      if (!AddDevice(inventory, 0, device, held, problem)) return false;
    }
  }
  return true;
}

PodRequest WholeUnits(const PodRequest& request) {
  PodRequest whole = request;
  whole.asks.clear();
  if (request.containers.empty()) return whole;
  for (const PoolNeed& need : request.pool_needs) {
    std::optional<Ask> ask = AskForKey(need.key);
    if (!ask) continue;
    ask->count = need.count;
    whole.asks.push_back(*std::move(ask));
  }
  return whole;
}

}  // namespace tranche
