#include "scheduler/index/card_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "scheduler/index/node_state.h"
#include "scheduler/index/runs_beside.h"

namespace tranche {
namespace {

SetRules RulesOf(const PodRequest& request, TopologyWish wish, const CardQuestion& question) {
  SetRules rules;
  rules.goal = wish == TopologyWish::kNone ? SetGoal::kPreserve : SetGoal::kConnected;
  rules.require_nvlink = wish == TopologyWish::kRequired;
  rules.floor = request.link_floor;
  rules.nic_floor = request.nic_floor;
  rules.one_numa = request.one_numa_node && question.one_container;
  return rules;
}

// What the exporter has not shown yet may be in any zone; where it has caught up with the books,
// its counts are the truth.
std::vector<ZoneRoom> RoomOfZones(const Inventory& inventory, const Load& load, GpuSet free) {
  int64_t capacity = 0;
  MilliCpu cpus_shown;
  for (const ZoneCounts& zone : inventory.zones) {
    capacity += zone.gpus_capacity;
    cpus_shown += zone.cpus_capacity - zone.cpus_available;
  }
  // What came since that was worked out is not shown either.
  const int64_t since = NodeState::BookedGpus(inventory, load) - load.booked;
  const int64_t unseen = load.unshown + std::max<int64_t>(since, 0);
  const MilliCpu cpus_unseen = std::max(load.pinned_cpu - cpus_shown, MilliCpu::Zero());
  // An agent's slots are counted, not cards. GPUs of no NUMA node are in no zone.
  const auto cards = static_cast<int64_t>(inventory.cards.size());
  const bool counts_cards =
      inventory.has_agent() ? capacity == cards : capacity > 0 && capacity <= cards;
  // The plugin of our own agent names no NUMA node.
  const bool unaligned = inventory.agent == AgentKind::kTranche && capacity == 0;
  std::vector<ZoneRoom> rooms;
  for (const ZoneCounts& zone : inventory.zones) {
    const auto in_zone = [&](int card) {
      return inventory.cards[static_cast<std::size_t>(card)].numa == zone.zone;
    };
    int64_t here = 0, free_here = 0;
    bool known = false;
    for (int card = 0; card < static_cast<int>(inventory.cards.size()); ++card) {
      known |= inventory.cards[static_cast<std::size_t>(card)].numa.has_value();
      here += in_zone(card);
      free_here += in_zone(card) && free.Has(card);
    }
    ZoneRoom room;
    room.gpus_capacity = counts_cards || !known ? zone.gpus_capacity : unaligned ? 0 : here;
    room.gpus_free = unaligned ? 0 : free_here;
    if (counts_cards) {
      const int64_t at_least = std::max<int64_t>(zone.gpus_available - unseen, 0);
      const bool books_count = known && (unseen > 0 || inventory.has_agent());
      room.gpus_free = books_count ? std::min(at_least, free_here) : at_least;
      // Which cards are free needs no exporter where each is known: it only is late.
      const bool exact = known && inventory.knowledge == Knowledge::kExact;
      if (exact && unseen > 0) room.gpus_free = free_here;
    }
    room.cpus_capacity = zone.cpus_capacity;
    room.cpus_free = std::max(zone.cpus_available - cpus_unseen, MilliCpu::Zero());
    rooms.push_back(room);
  }
  return rooms;
}

// Of the pod as a whole: what runs to its end, or an init container beside the sidecars before it.
AlignedNeed WholeNeed(const PodRequest& request, const std::vector<AlignedNeed>& needs) {
  AlignedNeed steady, sidecars, most;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const ContainerRole role = request.containers[i].role;
    if (role == ContainerRole::kInit) {
      most.gpus = std::max(most.gpus, sidecars.gpus + needs[i].gpus);
      most.cpus = std::max(most.cpus, sidecars.cpus + needs[i].cpus);
      continue;
    }
    steady.gpus += needs[i].gpus;
    steady.cpus += needs[i].cpus;
    if (role == ContainerRole::kSidecar) {
      sidecars.gpus += needs[i].gpus;
      sidecars.cpus += needs[i].cpus;
    }
  }
  return {std::max(steady.gpus, most.gpus), std::max(steady.cpus, most.cpus)};
}

// What the kubelet aligns: the pod as a whole, or each container that asks for GPUs in its turn.
std::vector<AlignedTurn> AlignedTurns(const PodRequest& request, NumaScope scope) {
  std::vector<AlignedNeed> needs(request.containers.size());
  for (std::size_t i = 0; i < needs.size(); ++i) needs[i].cpus = request.containers[i].pinned_cpu;
  for (const Ask& ask : request.asks) {
    if (ask.resource != Resource::kMig) {
      needs[static_cast<std::size_t>(ask.container)].gpus += ask.count;
    }
  }
  if (scope == NumaScope::kPod) return {{WholeNeed(request, needs), false}};
  std::vector<AlignedTurn> turns;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const bool lends = request.containers[i].role == ContainerRole::kInit;
    if (needs[i].gpus > 0) turns.push_back({needs[i], lends});
  }
  return turns;
}

// The cards the kubelet would choose among: those of the first NUMA node that can hold the need
// alone. nullopt: it would refuse the pod.
std::optional<GpuSet> CardsTheKubeletOffers(const Inventory& inventory, const Load& load,
                                            const PodRequest& request, GpuSet free) {
  if (inventory.numa_policy == NumaPolicy::kNone || inventory.zones.empty()) return free;
  const std::vector<ZoneRoom> rooms = RoomOfZones(inventory, load, free);
  const std::vector<AlignedTurn> turns = AlignedTurns(request, inventory.numa_scope);
  if (!KubeletAdmits(inventory.numa_policy, rooms, turns)) return std::nullopt;
  if (turns.size() != 1) return free;
  const AlignedNeed& need = turns[0].need;
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    if (rooms[i].gpus_free < need.gpus || rooms[i].cpus_free < need.cpus) continue;
    GpuSet offered;
    for (const int card : free) {
      if (inventory.cards[static_cast<std::size_t>(card)].numa == inventory.zones[i].zone) {
        offered.Add(card);
      }
    }
    if (offered.size() >= need.gpus) return offered;
  }
  return free;
}

SetAnswer Refuse(const Inventory& inventory, const SetRules& rules, const CardQuestion& question) {
  MachineTable& table = *inventory.table;
  if (!table.Best(table.machine().all(), question.count, rules)) return {Reason::kNoSuchSet, {}};
  SetRules anywhere = rules;
  anywhere.one_numa = false;
  if (rules.one_numa && table.Best(question.free, question.count, anywhere)) {
    return {Reason::kNumaMismatch, {}};
  }
  return {Reason::kBrokenSet, {}};
}

bool Obeys(const Inventory& inventory, const SetRules& rules, GpuSet cards) {
  return inventory.table->Best(cards, cards.size(), rules).has_value();
}

// What the plugin is asked for one container after another.
struct PluginTurns {
  std::vector<std::size_t> asks;
  std::vector<int> counts;
};
// Empty: not all of the question is asked by containers in their turn.
PluginTurns TurnsOf(const PodRequest& request, const CardQuestion& question) {
  PluginTurns turns;
  int sum = 0;
  for (std::size_t i = 0; i < request.asks.size(); ++i) {
    const Ask& ask = request.asks[i];
    if (ask.resource != Resource::kGpu || !IsLong(request, ask)) continue;
    turns.asks.push_back(i);
    turns.counts.push_back(static_cast<int>(ask.count));
    sum += turns.counts.back();
  }
  return sum == question.count ? turns : PluginTurns{};
}

// What it may give, the likeliest first; the lowest where its rule does not say.
std::vector<GpuSet> PluginChoices(MachineTable& table, GpuSet offered, int count) {
  std::vector<GpuSet> sets = table.PluginSets(offered, count);
  if (!sets.empty()) return sets;
  GpuSet lowest;
  for (const int card : offered) {
    if (lowest.size() < count) lowest.Add(card);
  }
  return {lowest};
}

// Whatever of equal sets each container gets. `budget`: of outcomes that are looked at; beyond it
// nothing is proven.
bool AllTurnsObey(const Inventory& inventory, const SetRules& rules, std::span<const int> counts,
                  GpuSet left, GpuSet taken, int& budget) {
  if (counts.empty()) return --budget >= 0 && Obeys(inventory, rules, taken);
  return std::ranges::all_of(PluginChoices(*inventory.table, left, counts.front()),
                             [&](GpuSet cards) {
                               return AllTurnsObey(inventory, rules, counts.subspan(1),
                                                   left - cards, taken | cards, budget);
                             });
}

// The kubelet asks for each container by itself, among what those before it have left.
SetAnswer FollowTurns(const Inventory& inventory, const SetRules& rules, bool strict,
                      const PodRequest& request, const PluginTurns& turns, GpuSet offered) {
  constexpr int kMostOutcomes = 256;
  MachineTable& table = *inventory.table;
  SetAnswer answer;
  answer.by_ask.resize(request.asks.size());
  GpuSet taken;
  for (std::size_t i = 0; i < turns.asks.size(); ++i) {
    const GpuSet left = offered - taken;
    const bool foretold = !table.PluginSets(left, turns.counts[i]).empty();
    if (!foretold && strict && !table.machine().uniform()) return {Reason::kTopologyUnknown, {}};
    const GpuSet cards = PluginChoices(table, left, turns.counts[i]).front();
    answer.by_ask[turns.asks[i]] = cards;
    taken = taken | cards;
  }
  int budget = kMostOutcomes;
  if (strict && !AllTurnsObey(inventory, rules, turns.counts, offered, {}, budget)) {
    if (!table.Best(table.machine().all(), taken.size(), rules)) return {Reason::kNoSuchSet, {}};
    return {rules.one_numa ? Reason::kNumaMismatch : Reason::kBrokenSet, {}};
  }
  answer.choice = table.Best(taken, taken.size(), SetRules{});
  return answer;
}

// The plugin takes what its rule says, whatever we would rather have. Of equal sets it may take
// any, so that rules must hold for all of them.
SetAnswer FollowPlugin(const Inventory& inventory, const SetRules& rules, bool strict,
                       const CardQuestion& question, GpuSet offered) {
  MachineTable& table = *inventory.table;
  const bool foretold = !table.PluginSets(offered, question.count).empty();
  if (!foretold && strict && !table.machine().uniform()) return {Reason::kTopologyUnknown, {}};
  const std::vector<GpuSet> sets = PluginChoices(table, offered, question.count);
  const bool obey = !strict || std::ranges::all_of(sets, [&](GpuSet cards) {
    return Obeys(inventory, rules, cards);
  });
  if (!obey) {
    if (!table.Best(table.machine().all(), question.count, rules)) return {Reason::kNoSuchSet, {}};
    return {rules.one_numa ? Reason::kNumaMismatch : Reason::kBrokenSet, {}};
  }
  return {Reason::kNone, table.Best(sets.front(), question.count, SetRules{})};
}

}  // namespace

TopologyWish WishOf(const PodRequest& request, const GpuPolicy& policy) {
  return request.topology.value_or(policy.topology);
}

bool HasSetRules(const PodRequest& request, const GpuPolicy& policy) {
  return WishOf(request, policy) == TopologyWish::kRequired || request.link_floor.has_value() ||
         request.nic_floor.has_value() || request.one_numa_node;
}

MilliCpu PinnedCpu(const PodRequest& request) {
  MilliCpu steady, init;
  for (const ContainerInfo& container : request.containers) {
    if (container.role == ContainerRole::kInit) {
      init = std::max(init, container.pinned_cpu);
    } else {
      steady += container.pinned_cpu;
    }
  }
  return std::max(steady, init);
}

SetAnswer ChooseCards(const Inventory& inventory, const Load& load, const PodRequest& request,
                      const GpuPolicy& policy, const CardQuestion& question) {
  if (question.count == 0) {
    // Init containers alone ask for cards: which ones makes no difference, but they are aligned.
    const bool admits = question.free.empty() ||
                        CardsTheKubeletOffers(inventory, load, request, question.free).has_value();
    return {admits ? Reason::kNone : Reason::kNumaMismatch, {}};
  }
  if (question.free.size() < question.count) return {};
  const TopologyWish wish = WishOf(request, policy);
  const SetRules rules = RulesOf(request, wish, question);
  const bool several = question.count > 1;
  const bool strict = several && (rules.require_nvlink || rules.floor.has_value());
  if (strict && !inventory.links_verified) return {Reason::kTopologyUnknown, {}};
  if (rules.nic_floor && inventory.table == nullptr) return {Reason::kTopologyUnknown, {}};
  const std::optional<GpuSet> offered =
      CardsTheKubeletOffers(inventory, load, request, question.free);
  if (!offered) return {Reason::kNumaMismatch, {}};
  if (inventory.table == nullptr) return {};
  if (inventory.plugin_chooses()) {
    const bool ruled = strict || rules.nic_floor || (several && rules.one_numa);
    const PluginTurns turns = question.one_container ? PluginTurns{} : TurnsOf(request, question);
    if (!turns.asks.empty()) {
      return FollowTurns(inventory, rules, ruled, request, turns, *offered);
    }
    return FollowPlugin(inventory, rules, ruled, question, *offered);
  }
  if (auto choice = inventory.table->Best(*offered, question.count, rules)) {
    return {Reason::kNone, *choice};
  }
  if (!several && !rules.nic_floor) return {};
  return Refuse(inventory, rules, question);
}

bool ObeysRules(const Inventory& inventory, const PodRequest& request, const GpuPolicy& policy,
                GpuSet cards) {
  if (inventory.table == nullptr || cards.size() < 2) return true;
  CardQuestion question{cards, cards.size(), false};
  return Obeys(inventory, RulesOf(request, WishOf(request, policy), question), cards);
}

std::string DescribeBrokenSet(const Inventory& inventory, const PodRequest& request,
                              const GpuPolicy& policy, const CardQuestion& question) {
  if (inventory.table == nullptr) return "";
  MachineTable& table = *inventory.table;
  const SetRules rules = RulesOf(request, WishOf(request, policy), question);
  GpuSet among = question.free;
  std::string_view whose = "in the best set of the free ones";
  if (inventory.plugin_chooses()) {
    const std::vector<GpuSet>& sets = table.PluginSets(question.free, question.count);
    if (sets.empty()) {
      return "expected a choice of the device plugin that can be foretold, found none";
    }
    const auto broken =
        std::ranges::find_if(sets, [&](GpuSet cards) { return !Obeys(inventory, rules, cards); });
    among = broken == sets.end() ? sets.front() : *broken;
    whose = "in a set the device plugin may give";
  }
  const auto missing = table.Missing(among, question.count, rules);
  if (!missing) return "";
  std::string needs = "NVLink";
  if (!rules.require_nvlink && rules.floor) {
    needs = rules.floor->nvlinks > 0 ? fmt::format("NV{}", rules.floor->nvlinks)
                                     : fmt::format("{} or better", PathName(rules.floor->path));
  }
  return fmt::format("expected {} between any two of {} GPUs, found {} between {} and {} {}", needs,
                     question.count, LinkName(missing->found),
                     table.machine().gpu(missing->left).name,
                     table.machine().gpu(missing->right).name, whose);
}

std::optional<Picks> PicksOn(const Inventory& inventory, const PodRequest& request,
                             const std::vector<GpuUuid>& uuids) {
  Picks picks;
  for (std::size_t i = 0; i < request.asks.size(); ++i) {
    const Ask& ask = request.asks[i];
    if (ask.resource != Resource::kGpu || !IsLong(request, ask)) return std::nullopt;
    for (int64_t unit = 0; unit < ask.count; ++unit) {
      if (picks.size() == uuids.size()) return std::nullopt;
      // Of which container each is makes no difference to what is taken.
      const auto card = std::ranges::find(inventory.cards, uuids[picks.size()], &Card::uuid);
      if (card == inventory.cards.end()) return std::nullopt;
      const CardNeed need = NeedOn(inventory, ask, *card);
      picks.push_back({static_cast<int>(i), static_cast<int>(card - inventory.cards.begin()), -1, 0,
                       need.milli, need.memory, need.exclusive});
    }
  }
  if (picks.empty() || picks.size() != uuids.size()) return std::nullopt;
  return picks;
}

}  // namespace tranche
