#include "scheduler/advice/emptying.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "quota/tree/limits.h"
#include "scheduler/advice/defrag_books.h"
#include "scheduler/advice/rules.h"

namespace tranche {
namespace {

bool IsFree(const Load& load) {
  const auto unused = [](const CardLoad& card) { return card == CardLoad{}; };
  const auto idle = [](const std::vector<int64_t>& users) {
    return std::ranges::all_of(users, [](int64_t count) { return count == 0; });
  };
  return !load.devices_unknown && std::ranges::all_of(load.cards, unused) &&
         std::ranges::all_of(load.slots, idle);
}

int64_t GpuMilliOf(const Inventory& inventory) {
  int64_t milli = 0;
  for (const Card& card : inventory.cards) milli += card.capacity.count();
  return milli;
}

// The GPU model of what the pod has.
const std::string& ProductOf(const Inventory& inventory, const Picks& picks) {
  return inventory.cards[static_cast<std::size_t>(picks.front().card)].product;
}

class EmptyingSearch {
 public:
  EmptyingSearch(const AdviceCase& fleet, const EmptyingLimits& limits)
      : fleet_(fleet), limits_(limits), books_(fleet, {}), trials_(limits.most_trials) {
    for (std::size_t n = 0; n < fleet.nodes.size(); ++n) {
      const AdviceNode& node = fleet.nodes[n];
      int64_t used = 0;
      const auto [first, last] = books_.pods_of(n);
      for (std::size_t p = first; p < last; ++p) used += MilliOf(fleet.pods[p], node.inventory);
      places_.push_back({node.load, node.cpu_free, used, GpuMilliOf(node.inventory), last > first});
      order_.push_back(n);
    }
    // By what is free: the fullest first.
    std::ranges::stable_sort(order_, {}, [this](std::size_t n) {
      return std::pair(!places_[n].works, places_[n].capacity - places_[n].used);
    });
  }

  std::vector<EmptiedNode> Consolidate(const std::set<NodeName>& apart) {
    std::vector<EmptiedNode> entries;
    for (const std::size_t n : Candidates(apart)) {
      if (std::ssize(entries) >= limits_.most_entries || trials_ <= 0) break;
      // What came from another node stays where it went.
      if (places_[n].received) continue;
      std::optional<EmptiedNode> entry = Empty(n, EmptyFor::kConsolidation);
      if (!entry || entry->moves.empty()) continue;
      places_[n].emptied = true;
      entries.push_back(*std::move(entry));
    }
    return entries;
  }

  // Takes the places its work would get, or none.
  std::optional<EmptiedNode> Empty(std::size_t n, EmptyFor purpose) {
    const AdviceNode& node = fleet_.nodes[n];
    const std::optional<std::vector<std::size_t>> movers = MoversOf(n, purpose);
    if (!movers) return std::nullopt;
    EmptiedNode entry;
    entry.node = node.name;
    entry.gpus = std::ssize(node.inventory.cards);
    std::vector<std::pair<std::size_t, Place>> before;
    for (const std::size_t p : *movers) {
      const AdvicePod& pod = fleet_.pods[p];
      const std::optional<std::size_t> to = PlaceFor(pod, n, purpose, before);
      if (!to) {
        while (!before.empty()) {
          places_[before.back().first] = std::move(before.back().second);
          before.pop_back();
        }
        return std::nullopt;
      }
      entry.moves.push_back({pod.name, pod.uid, pod.leaf, fleet_.nodes[*to].name, pod.lost_gpu_ms});
      entry.lost_gpu_ms = AddSaturating(entry.lost_gpu_ms, pod.lost_gpu_ms);
    }
    return entry;
  }

 private:
  struct Place {
    Load load;
    MilliCpu cpu_free;
    int64_t used = 0;      // milli-GPU
    int64_t capacity = 0;  // milli-GPU
    bool works = false;    // somebody is there
    bool received = false;
    bool emptied = false;
  };

  // All pods of the node, the largest first; nullopt: one of them stays, or somebody else is there.
  std::optional<std::vector<std::size_t>> MoversOf(std::size_t n, EmptyFor purpose) const {
    const auto [first, last] = books_.pods_of(n);
    // A node whose layout is being changed shows no devices for a while.
    if (fleet_.nodes[n].inventory.cards.empty() || first == last ||
        last - first > static_cast<std::size_t>(limits_.most_moves)) {
      return std::nullopt;
    }
    std::vector<std::size_t> all;
    std::vector<std::size_t> movers;
    for (std::size_t p = first; p < last; ++p) {
      const AdvicePod& pod = fleet_.pods[p];
      all.push_back(p);
      if (pod.leaves) continue;
      const bool may =
          purpose == EmptyFor::kLayout ? pod.moves_for_layout : pod.moves_to_consolidate;
      if (!may || pod.picks.empty()) return std::nullopt;
      movers.push_back(p);
    }
    if (!IsFree(books_.LoadWithout(n, all))) return std::nullopt;
    const Inventory& inventory = fleet_.nodes[n].inventory;
    std::ranges::sort(movers, {}, [&](std::size_t p) {
      return std::tuple(-MilliOf(fleet_.pods[p], inventory), fleet_.pods[p].uid);
    });
    return movers;
  }

  std::vector<std::size_t> Candidates(const std::set<NodeName>& apart) const {
    std::vector<std::tuple<int64_t, int64_t, std::size_t>> found;  // lost a GPU, used, node
    for (std::size_t n = 0; n < fleet_.nodes.size(); ++n) {
      const Place& place = places_[n];
      if (!place.works || !fleet_.nodes[n].open || place.used * 2 > place.capacity ||
          apart.contains(fleet_.nodes[n].name)) {
        continue;
      }
      const auto [first, last] = books_.pods_of(n);
      int64_t lost = 0;
      for (std::size_t p = first; p < last; ++p) {
        lost = AddSaturating(lost, fleet_.pods[p].lost_gpu_ms);
      }
      const int64_t gpus = std::ssize(fleet_.nodes[n].inventory.cards);
      if (gpus == 0 || lost / gpus > limits_.most_lost.count()) continue;
      found.emplace_back(lost / gpus, place.used, n);
    }
    std::ranges::sort(found);
    std::vector<std::size_t> nodes;
    for (const auto& [lost, used, n] : found) nodes.push_back(n);
    return nodes;
  }

  std::optional<std::size_t> PlaceFor(const AdvicePod& pod, std::size_t from, EmptyFor purpose,
                                      std::vector<std::pair<std::size_t, Place>>& before) {
    const PodRequest& request = *pod.request;
    const PlaceRules rules = RulesIn(fleet_, request, pod.workload_class);
    const std::string& product = ProductOf(fleet_.nodes[from].inventory, pod.picks);
    for (const std::size_t n : order_) {
      const AdviceNode& node = fleet_.nodes[n];
      Place& place = places_[n];
      if (n == from || !node.open || place.emptied) continue;
      if (purpose == EmptyFor::kConsolidation && !place.works) continue;
      const bool cpu_said = node.cpu_capacity > MilliCpu::Zero();
      if ((cpu_said && place.cpu_free < request.cpu) || !SuitsNode(request, node)) continue;
      if (--trials_ < 0) return std::nullopt;
      if (placer_.Place(node.inventory, place.load, request, rules, picks_) != Reason::kNone ||
          picks_.empty() || ProductOf(node.inventory, picks_) != product) {
        continue;
      }
      before.emplace_back(n, place);
      DefragBooks::Add(place.load, node.inventory, request, picks_);
      place.cpu_free -= request.cpu;
      place.received = true;
      return n;
    }
    return std::nullopt;
  }

  const AdviceCase& fleet_;
  const EmptyingLimits limits_;
  const DefragBooks books_;
  std::vector<Place> places_;       // by node
  std::vector<std::size_t> order_;  // of nodes, as places are looked for
  int64_t trials_;
  Placer placer_;
  Picks picks_;
};

std::optional<std::size_t> IndexOf(const AdviceCase& fleet, const NodeName& name) {
  const auto found = std::ranges::lower_bound(fleet.nodes, name, {}, &AdviceNode::name);
  if (found == fleet.nodes.end() || found->name != name) return std::nullopt;
  return static_cast<std::size_t>(found - fleet.nodes.begin());
}

}  // namespace

std::vector<EmptiedNode> PlanConsolidation(const AdviceCase& fleet, const EmptyingLimits& limits,
                                           const std::set<NodeName>& apart) {
  return EmptyingSearch(fleet, limits).Consolidate(apart);
}

std::optional<EmptiedNode> PlanEmptying(const AdviceCase& fleet, const NodeName& node,
                                        EmptyFor purpose, const EmptyingLimits& limits) {
  const std::optional<std::size_t> found = IndexOf(fleet, node);
  return found ? EmptyingSearch(fleet, limits).Empty(*found, purpose) : std::nullopt;
}

AdviceCase WithoutWorkOn(const AdviceCase& fleet, const NodeName& name) {
  AdviceCase without = fleet;
  const std::optional<std::size_t> found = IndexOf(fleet, name);
  if (!found) return without;
  AdviceNode& node = without.nodes[*found];
  const bool unknown = node.load.devices_unknown;
  node.load.Reset(node.inventory);
  node.load.devices_unknown = unknown;
  node.cpu_free = node.cpu_capacity;
  std::erase_if(without.pods, [&](const AdvicePod& pod) { return pod.node == *found; });
  return without;
}

bool NobodyHolds(const AdviceCase& fleet, const AdviceNode& node) {
  const auto here = static_cast<std::size_t>(&node - fleet.nodes.data());
  const auto first = std::ranges::lower_bound(fleet.pods, here, {}, &AdvicePod::node);
  const bool somebody = first != fleet.pods.end() && first->node == here;
  return !somebody && IsFree(node.load);
}

const AdviceWaiter* WaiterFor(const AdviceCase& fleet, const AdviceNode& node, Millis patience) {
  Placer placer;
  Picks picks;
  Load empty = node.load;
  empty.Reset(node.inventory);
  for (const AdviceWaiter& waiter : fleet.waiting) {
    const PodRequest& request = *waiter.request;
    const bool waits = waiter.quota_allows && !request.refusal && !request.asks.empty() &&
                       fleet.now - waiter.since >= patience;
    if (!waits || !SuitsNode(request, node)) continue;
    const PlaceRules rules = RulesIn(fleet, request, waiter.workload_class);
    if (placer.Place(node.inventory, empty, request, rules, picks) == Reason::kNone) return &waiter;
  }
  return nullptr;
}

}  // namespace tranche
