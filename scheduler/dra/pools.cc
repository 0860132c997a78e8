#include "scheduler/dra/pools.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace tranche::dra {
namespace {

using SliceList = std::vector<const Slice*>;

bool SuitsNode(const NodeConstraints& constraints, const NodeView& node) {
  static const LabelText kNoLabels;
  return Suits(constraints, node.name, node.labels == nullptr ? kNoLabels : *node.labels, {});
}

bool IsForNode(const Slice& slice, const NodeView& node) {
  if (slice.node.kind != NodeChoice::Kind::kPerDevice) return Chooses(slice.node, node);
  return std::ranges::any_of(slice.devices,
                             [&node](const Device& device) { return Chooses(device.node, node); });
}

// The slices of each pool's highest generation, by name.
std::map<std::pair<std::string, std::string>, SliceList> NewestByPool(
    std::span<const Slice* const> slices) {
  std::map<std::pair<std::string, std::string>, SliceList> pools;
  for (const Slice* slice : slices) {
    SliceList& newest = pools[{slice->driver, slice->pool}];
    if (!newest.empty() && slice->generation < newest.front()->generation) continue;
    if (!newest.empty() && slice->generation > newest.front()->generation) newest.clear();
    newest.push_back(slice);
  }
  for (auto& [id, list] : pools) {
    std::sort(list.begin(), list.end(),
              [](const Slice* left, const Slice* right) { return left->name < right->name; });
  }
  return pools;
}

void Collect(const SliceList& slices, const NodeView& node, Pool& pool) {
  for (const Slice* slice : slices) {
    const bool per_device = slice->node.kind == NodeChoice::Kind::kPerDevice;
    const bool whole_slice = !per_device && Chooses(slice->node, node);
    for (const Device& device : slice->devices) {
      const bool here = per_device ? Chooses(device.node, node) : whole_slice;
      (here ? pool.devices : pool.elsewhere).push_back(&device);
    }
    for (const CounterSet& set : slice->counters) pool.counters.push_back(&set);
  }
  std::sort(
      pool.counters.begin(), pool.counters.end(),
      [](const CounterSet* left, const CounterSet* right) { return left->name < right->name; });
}

bool HasCounter(const CounterSet& set, const std::string& name) {
  return std::ranges::any_of(set.counters,
                             [&name](const Counter& counter) { return counter.name == name; });
}

// Empty: the device takes only from counters that are there.
std::string UnknownCounter(const Pool& pool, const Device& device) {
  for (const CounterSet& use : device.consumes) {
    const auto set = std::ranges::find_if(
        pool.counters, [&use](const CounterSet* found) { return found->name == use.name; });
    if (set == pool.counters.end()) return fmt::format("no counter set {}", use.name);
    for (const Counter& counter : use.counters) {
      if (!HasCounter(**set, counter.name)) {
        return fmt::format("no counter {} in counter set {}", counter.name, use.name);
      }
    }
  }
  return {};
}

std::string WhyInvalid(const Pool& pool) {
  std::set<std::string_view> names;
  for (const Device* device : pool.devices) {
    if (!names.insert(device->name).second) {
      return fmt::format("two devices named {}", device->name);
    }
  }
  for (std::size_t i = 1; i < pool.counters.size(); ++i) {
    if (pool.counters[i - 1]->name == pool.counters[i]->name) {
      return fmt::format("two counter sets named {}", pool.counters[i]->name);
    }
  }
  for (const std::vector<const Device*>* devices : {&pool.devices, &pool.elsewhere}) {
    for (const Device* device : *devices) {
      if (std::string why = UnknownCounter(pool, *device); !why.empty()) return why;
    }
  }
  return {};
}

bool HasConditions(const Pool& pool) {
  return std::ranges::any_of(pool.devices,
                             [](const Device* device) { return device->conditional; });
}

}  // namespace

bool Chooses(const NodeChoice& choice, const NodeView& node) {
  switch (choice.kind) {
    case NodeChoice::Kind::kName:
      return choice.name.str() == node.name;
    case NodeChoice::Kind::kSelector:
      return SuitsNode(choice.selector, node);
    case NodeChoice::Kind::kAll:
      return true;
    case NodeChoice::Kind::kNone:
    case NodeChoice::Kind::kPerDevice:
      break;
  }
  return false;
}

bool Reaches(const Allocation& allocation, const NodeView& node) {
  return !allocation.nodes || SuitsNode(*allocation.nodes, node);
}

std::vector<Pool> PoolsOf(std::span<const Slice* const> slices, const NodeView& node) {
  std::vector<Pool> pools;
  for (const auto& [id, newest] : NewestByPool(slices)) {
    const bool for_node = std::ranges::any_of(newest, [&node](const Slice* slice) {
      return !slice->devices.empty() && IsForNode(*slice, node);
    });
    if (!for_node) continue;
    Pool& pool = pools.emplace_back();
    pool.driver = id.first;
    pool.name = id.second;
    pool.incomplete = std::cmp_not_equal(newest.size(), newest.front()->slice_count);
    if (pool.incomplete) continue;
    Collect(newest, node, pool);
    pool.invalid = WhyInvalid(pool);
  }
  std::stable_partition(pools.begin(), pools.end(),
                        [](const Pool& pool) { return !HasConditions(pool); });
  return pools;
}

}  // namespace tranche::dra
