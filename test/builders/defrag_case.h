// A small fleet as plain values, for tests of defragmentation advice.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "scheduler/advice/case.h"
#include "test/builders/cluster.h"
#include "topology/base/check.h"

namespace tranche::test {

class DefragCase {
 public:
  DefragCase() { fleet_.policy.unenforced_sharing = Permission::kAllow; }

  // In ascending order of name.
  AdviceNode& Node(const NodeFacts& facts) {
    AdviceNode node;
    node.name = facts.name;
    node.inventory = BuildInventory(facts, 0);
    node.load.Reset(node.inventory);
    fleet_.nodes.push_back(std::move(node));
    return fleet_.nodes.back();
  }

  // On that card of the node, or where the placement rules put it.
  AdvicePod& Pod(const PodRequest& request, const std::string& node, int64_t lost, int card = -1) {
    const std::size_t at = Find(node);
    PlaceRules rules;
    rules.policy = &fleet_.policy;
    rules.preferred_card = card;
    Placer placer;
    Picks picks;
    const AdviceNode& host = fleet_.nodes[at];
    TRANCHE_CHECK(placer.Place(host.inventory, host.load, request, rules, picks) == Reason::kNone);
    return Put(request, at, lost, std::move(picks));
  }
  // An instance of a planned card, there and nowhere else.
  AdvicePod& Instance(const PodRequest& request, const std::string& node, int64_t lost, int card,
                      int start) {
    const std::size_t at = Find(node);
    const Inventory& inventory = fleet_.nodes[at].inventory;
    const int pool = PoolFor(inventory, request.asks.front());
    const MigPool& from = inventory.pools.at(static_cast<std::size_t>(pool));
    const auto slot = std::ranges::find_if(
        from.slots, [&](const MigSlot& some) { return some.card == card && some.start == start; });
    TRANCHE_CHECK(slot != from.slots.end());
    Pick pick;
    pick.card = card;
    pick.pool = pool;
    pick.slot = static_cast<int>(slot - from.slots.begin());
    pick.milli = from.milli;
    pick.memory = from.memory;
    return Put(request, at, lost, {pick});
  }
  void Waits(const PodRequest& request, bool quota_allows = true) {
    AdviceWaiter waiter;
    waiter.name = request.name;
    waiter.uid = request.uid;
    waiter.request = std::make_shared<const PodRequest>(request);
    waiter.quota_allows = quota_allows;
    fleet_.waiting.push_back(std::move(waiter));
  }
  void Wanted(int64_t gpus, int64_t peak) {
    DemandRow row;
    row.kind.devices = gpus;
    row.peak = peak;
    fleet_.demand.push_back(row);
  }

  AdviceCase Build() {
    std::ranges::sort(fleet_.pods, {},
                      [](const AdvicePod& pod) { return std::tuple(pod.node, pod.uid); });
    return fleet_;
  }

 private:
  std::size_t Find(const std::string& name) const {
    const auto at = std::ranges::find(fleet_.nodes, NodeName(name), &AdviceNode::name);
    TRANCHE_CHECK(at != fleet_.nodes.end());
    return static_cast<std::size_t>(at - fleet_.nodes.begin());
  }
  AdvicePod& Put(const PodRequest& request, std::size_t at, int64_t lost, Picks picks) {
    AdviceNode& node = fleet_.nodes[at];
    AdvicePod pod;
    pod.name = request.name;
    pod.uid = request.uid;
    pod.node = at;
    pod.request = std::make_shared<const PodRequest>(request);
    pod.picks = std::move(picks);
    pod.use = UseOf(request, pod.picks);
    pod.lost_gpu_ms = lost;
    AddTo(node.load, node.inventory, pod);
    fleet_.pods.push_back(std::move(pod));
    return fleet_.pods.back();
  }

 public:
  // As the engine's books count it.
  static void AddTo(Load& load, const Inventory& inventory, const AdvicePod& pod) {
    AddUse(load, pod.use);
    for (const PoolNeed& need : pod.request->pool_needs) {
      const CountedKey* key = inventory.FindKey(need.key);
      if (key != nullptr) {
        load.keys[static_cast<std::size_t>(key - inventory.keys.data())] += need.count;
      }
    }
  }

 private:
  AdviceCase fleet_;
};

}  // namespace tranche::test
