// The devices of one node in a form placement can work with: cards, MIG instances, counted keys.
//
// Derived from NodeFacts alone and immutable. A card is a physical GPU; where only counts are known
// cards are bookkeeping and their order means nothing outside this process. A card is either whole,
// replicated, divided by an agent or cut into MIG instances, never two of these. On a node of
// planned MIG layouts index and start are ours to say, so that what is known of its devices is
// exact; UUIDs of cards are known there only where an agent tells them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policy/spec.h"
#include "scheduler/facts/allocation.h"
#include "scheduler/facts/node_facts.h"
#include "scheduler/index/card_cut.h"
#include "topology/base/ids.h"
#include "topology/base/units.h"
#include "topology/machine/machine_sources.h"
#include "topology/machine/machine_table.h"
#include "topology/machine/numa_align.h"
#include "topology/mig.h"
#include "topology/mig_space.h"
#include "topology/vgpu.h"

namespace tranche {

// Cards and GPU counts above this are refused: no machine has more, and books stay small.
inline constexpr int kMaxCards = 64;

enum class CardMode : uint8_t {
  kWhole,       // stock plugin, one unit a card
  kReplicated,  // stock plugin, time-sliced or MPS
  kAgent,       // an agent divides or cuts it as we say
  kMig,         // cut into instances, or to be cut as we say
};

struct Card {
  CardMode mode = CardMode::kWhole;
  int index = 0;        // as published by the agent, else the position
  GpuUuid uuid;         // empty: unknown
  std::string product;  // label or the agent's type
  MilliGpu capacity = kWholeGpu;
  GpuPart part;       // of a physical GPU that it is
  Mebibytes memory;   // zero: unknown
  int64_t slots = 0;  // pods (replicas) that may use it; 0: no limit
  // Client containers its MPS server takes; 0: no MPS, no such limit (time-slicing knows none).
  int64_t contexts = 0;
  std::optional<int> numa;
  bool healthy = true;
  bool cordoned = false;
  std::string vgpu_mode;            // HAMi: "hami-core", "mig", "mps"
  const MigSpace* space = nullptr;  // planned layouts: instances are made where we say
  // Planned layouts: places that its agent has closed, as instances that nobody holds.
  LayoutId closed = kEmptyLayout;
  // Its agent makes an instance for each container's share. Null: it does not.
  std::shared_ptr<const CardCut> cut;

  bool planned() const { return space != nullptr; }
  bool usable() const { return healthy && !cordoned; }

  // Containers that may use it at a time: the smaller of slots and contexts; 0: no limit.
  int64_t MostUsers() const {
    return slots > 0 && contexts > 0 ? std::min(slots, contexts) : std::max(slots, contexts);
  }
};

struct MigSlot {
  int card = 0;
  int start = 0;
  int size = 0;
};

// All instances of one profile behind one resource key. On a node of planned layouts the slots are
// all places an instance could have, start by start and card by card; which of them are taken, and
// which still go together with those, only the load can tell.
struct MigPool {
  std::string key;             // "nvidia.com/mig-1g.10gb", or "nvidia.com/gpu" (strategy single)
  std::string profile;         // canonical name
  int64_t replicas = 1;        // pods that may share an instance
  MilliGpu milli;              // of one replica
  Mebibytes memory;            // of one replica
  std::vector<MigSlot> slots;  // ascending card, start
  int planned_profile = -1;    // planned layouts: index into the board's profiles
};

// What kubelet counts: a resource key of status.allocatable.
struct CountedKey {
  std::string key;
  int64_t allocatable = 0;
  int64_t capacity = 0;
};

// What one unit of nvidia.com/gpu is on this node.
enum class GpuUnit : uint8_t { kNone, kCard, kReplica, kMigDevice };

struct Inventory {
  std::string product;  // base product label
  std::string model;    // short name for people
  Knowledge knowledge = Knowledge::kCounts;
  GpuUnit gpu_unit = GpuUnit::kNone;
  AgentKind agent = AgentKind::kNone;        // it divides the cards and gives the ones we name
  int agent_minor = 0;                       // HAMi's version
  Mebibytes memory_unit = Mebibytes::Of(1);  // of requests in the agent's units
  bool has_agent() const { return agent != AgentKind::kNone; }
  // Its cards may be held by placeholders: whole ones of the stock plugin, where that is switched
  // on.
  bool placeholders = false;
  SharingMethod sharing = SharingMethod::kNone;
  int64_t replicas = 1;  // of each replicated card
  NodeRules rules;       // that administrators gave the node
  // The pool it is in, where quotas or budgets tell its GPUs apart; else empty.
  std::string metered_pool;
  std::vector<Card> cards;
  std::vector<MigPool> pools;    // ascending key
  std::vector<CountedKey> keys;  // ascending key

  // How the cards are connected: GPU i of the machine is card i. Null: nobody says, or the cards
  // cannot be told apart (instances, replicas, one of them ill and nobody knows which).
  std::shared_ptr<MachineTable> table;
  MachineSource links = MachineSource::kNone;
  bool links_verified = false;  // what requires NVLink may rely on it
  // Cards of one class are interchangeable in everything a choice depends on; by card. Empty: none
  // are, position by position.
  std::vector<int> card_class;
  // What the kubelet demands of GPUs and pinned CPUs; zones ascending, empty: nobody says.
  NumaPolicy numa_policy = NumaPolicy::kNone;
  NumaScope numa_scope = NumaScope::kContainer;
  std::vector<ZoneCounts> zones;

  std::vector<std::string> problems;

  const CountedKey* FindKey(std::string_view key) const;
  // Index into pools; -1: none.
  int FindPool(std::string_view key) const;
  // Its executor makes the instances we name; then all its cards are such.
  bool planned() const { return !cards.empty() && cards.front().planned(); }
  // Its agent cuts some card.
  bool has_cut_cards() const {
    return std::ranges::any_of(cards, [](const Card& card) { return card.cut != nullptr; });
  }
  // The device plugin chooses the cards, by a rule that we can follow.
  bool plugin_chooses() const {
    return table != nullptr && !has_agent() && links > MachineSource::kZones;
  }
  // True when the node has any GPU to give now.
  bool has_devices() const;
};

// `hami_minor`: version set by policy, 0: as the register's form says. `tables`: where nodes with
// interchangeable machines share a table; null: the node gets one of its own.
Inventory BuildInventory(const NodeFacts& facts, int hami_minor, MachineTables* tables = nullptr);

}  // namespace tranche
