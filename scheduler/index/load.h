// How much of a node's inventory is in use. Over-use is possible (pods others placed) and shows as
// a load above capacity; it never wraps.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/index/inventory.h"
#include "topology/base/units.h"

namespace tranche {

struct CardLoad {
  MilliGpu milli;
  Mebibytes memory;
  int64_t slots = 0;  // containers using the card
  int exclusive = 0;  // users that tolerate no other
  friend bool operator==(const CardLoad&, const CardLoad&) = default;
};

struct Load {
  std::vector<CardLoad> cards;              // parallel to Inventory::cards
  std::vector<std::vector<int64_t>> slots;  // pool -> instance -> users
  std::vector<int64_t> keys;                // parallel to Inventory::keys: units kubelet handed out
  bool devices_unknown = false;             // exact node, and a pod's devices cannot be named

  void Reset(const Inventory& inventory) {
    cards.assign(inventory.cards.size(), CardLoad{});
    slots.resize(inventory.pools.size());
    for (std::size_t i = 0; i < slots.size(); ++i) {
      slots[i].assign(inventory.pools[i].slots.size(), 0);
    }
    keys.assign(inventory.keys.size(), 0);
    devices_unknown = false;
  }
};

// What one pod takes of one card, or of one MIG instance, over its whole life: the larger of its
// app containers and sidecars together and any init container with the sidecars before it.
struct CardUse {
  int card = 0;
  MilliGpu milli;
  Mebibytes memory;
  int64_t slots = 0;
  int exclusive = 0;
};
struct InstanceUse {
  int pool = 0;
  int slot = 0;
  int64_t users = 0;
};
struct PodUse {
  std::vector<CardUse> cards;
  std::vector<InstanceUse> instances;
};

inline void AddUse(Load& load, const PodUse& use) {
  for (const CardUse& card : use.cards) {
    CardLoad& target = load.cards[static_cast<std::size_t>(card.card)];
    target.milli += card.milli;
    target.memory += card.memory;
    target.slots += card.slots;
    target.exclusive += card.exclusive;
  }
  for (const InstanceUse& instance : use.instances) {
    load.slots[static_cast<std::size_t>(instance.pool)][static_cast<std::size_t>(instance.slot)] +=
        instance.users;
  }
}

}  // namespace tranche
