// How much of a node's inventory is in use. Over-use is possible (pods others placed) and shows as
// a load above capacity; it never wraps.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/index/card_cut.h"
#include "scheduler/index/inventory.h"
#include "topology/base/units.h"
#include "topology/mig_space.h"

namespace tranche {

struct CardLoad {
  MilliGpu milli;
  Mebibytes memory;
  int64_t slots = 0;   // containers using the card
  int64_t beside = 0;  // of them those whose contexts take memory beside what they ask for
  int exclusive = 0;   // users that tolerate no other
  // Users of a card that a placeholder pod holds: the sharing pods, and the placeholder once it is
  // there.
  int kept = 0;
  // Of a planned or cut card: the instances that pods hold, and its closed places. A set that is
  // not legal (pods others placed, or devices kept for a pod whose victims have yet to go) is
  // broken, and nothing more fits there.
  LayoutId layout = kEmptyLayout;
  bool layout_broken = false;
  friend bool operator==(const CardLoad&, const CardLoad&) = default;
};

struct Load {
  std::vector<CardLoad> cards;              // parallel to Inventory::cards
  std::vector<std::vector<int64_t>> slots;  // pool -> instance -> users
  std::vector<int64_t> keys;                // parallel to Inventory::keys: units kubelet handed out
  MilliCpu cpu;                             // requested by all pods of the node
  MilliCpu pinned_cpu;                      // of that, pinned by pods with GPUs
  // Where zones are known: GPUs of pods that the exporter may not show yet, when `booked` were
  // handed out by the books.
  int64_t unshown = 0;
  int64_t booked = 0;
  bool devices_unknown = false;     // exact node, and a pod's devices cannot be named
  bool no_new_placeholder = false;  // making one failed here a moment ago
  const MigSpace* space = nullptr;  // planned layouts: of every card
  std::vector<int> profiles;        // planned layouts: pool -> MigPool::planned_profile

  void Reset(const Inventory& inventory) {
    cards.assign(inventory.cards.size(), CardLoad{});
    slots.resize(inventory.pools.size());
    for (std::size_t i = 0; i < slots.size(); ++i) {
      slots[i].assign(inventory.pools[i].slots.size(), 0);
    }
    keys.assign(inventory.keys.size(), 0);
    cpu = MilliCpu::Zero();
    pinned_cpu = MilliCpu::Zero();
    unshown = 0;
    booked = 0;
    devices_unknown = false;
    no_new_placeholder = false;
    space = inventory.planned() ? inventory.cards.front().space : nullptr;
    profiles.clear();
    if (space == nullptr) return;
    for (std::size_t i = 0; i < cards.size(); ++i) cards[i].layout = inventory.cards[i].closed;
    for (const MigPool& pool : inventory.pools) profiles.push_back(pool.planned_profile);
  }
};

// What one pod takes of one card, or of one MIG instance, over its whole life: the larger of its
// app containers and sidecars together and any init container with the sidecars before it.
struct CardUse {
  int card = 0;
  MilliGpu milli;
  Mebibytes memory;
  int64_t slots = 0;
  int64_t beside = 0;
  int exclusive = 0;
  int kept = 0;
  // Cut cards: an instance for each container that uses it, for as long as the pod lives.
  std::vector<MigPlace> places = {};
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

void AddUse(Load& load, const PodUse& use);

// Whether just these devices are free: nothing that the pod would use is over-used with it. Copies
// the load.
bool HasRoomFor(const Inventory& inventory, Load load, const PodUse& use);

// What placement sees of each planned card: its layout, and of shared instances the users. Cards of
// equal rows are interchangeable. Empty: the node has no planned layouts.
std::vector<std::vector<int64_t>> PlannedRows(const Inventory& inventory, const Load& load);

}  // namespace tranche
