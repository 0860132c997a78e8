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

using PoolId = std::pair<std::string, std::string>;  // driver, name

// Slices of a pool.
struct Parts {
  SliceList here;  // for the node, of the highest generation that it has slices of
  SliceList all;
};

std::map<PoolId, Parts> PartsByPool(std::span<const Slice* const> slices, const NodeView& node) {
  std::map<PoolId, Parts> pools;
  for (const Slice* slice : slices) {
    Parts& parts = pools[{slice->driver, slice->pool}];
    parts.all.push_back(slice);
    if (!IsForNode(*slice, node)) continue;
    SliceList& here = parts.here;
    if (!here.empty() && slice->generation < here.front()->generation) continue;
    if (!here.empty() && slice->generation > here.front()->generation) here.clear();
    here.push_back(slice);
  }
  const auto by_name = [](const Slice* left, const Slice* right) {
    return left->name < right->name;
  };
  for (auto& [id, parts] : pools) {
    std::sort(parts.here.begin(), parts.here.end(), by_name);
    std::sort(parts.all.begin(), parts.all.end(), by_name);
  }
  return pools;
}

bool IsComplete(const SliceList& slices) {
  return std::cmp_equal(slices.size(), slices.front()->slice_count);
}

void CollectHere(const Slice& slice, const NodeView& node, Pool& pool) {
  const bool per_device = slice.node.kind == NodeChoice::Kind::kPerDevice;
  for (const Device& device : slice.devices) {
    if (!per_device || Chooses(device.node, node)) {
      pool.devices.push_back(&device);
    } else {
      pool.bystanders.push_back({&device, pool.devices.size()});
      pool.elsewhere.push_back(&device);
    }
  }
}

// `counting`: all slices of the pool that count, those of `here` among them, in the same order.
void Collect(const SliceList& here, const SliceList& counting, const NodeView& node, Pool& pool) {
  auto own = here.begin();
  for (const Slice* slice : counting) {
    if (own != here.end() && *own == slice) {
      ++own;
      CollectHere(*slice, node, pool);
    } else {
      for (const Device& device : slice->devices) pool.elsewhere.push_back(&device);
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

// Devices of slices for the node, its own first.
std::vector<const Device*> Listed(const Pool& pool) {
  std::vector<const Device*> listed = pool.devices;
  for (const Pool::Bystander& bystander : pool.bystanders) listed.push_back(bystander.device);
  return listed;
}

std::string WhyInvalid(const Pool& pool) {
  std::set<std::string_view> names;
  for (const Device* device : Listed(pool)) {
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
  return std::ranges::any_of(Listed(pool),
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
  for (const auto& [id, parts] : PartsByPool(slices, node)) {
    if (parts.here.empty()) continue;
    const int64_t generation = parts.here.front()->generation;
    SliceList counting = parts.here;
    if (!IsComplete(counting)) {
      counting = parts.all;
      const auto is_newer = [generation](const Slice* slice) {
        return slice->generation > generation;
      };
      if (std::ranges::any_of(counting, is_newer)) continue;
      std::erase_if(counting,
                    [generation](const Slice* slice) { return slice->generation < generation; });
    }
    Pool& pool = pools.emplace_back();
    pool.driver = id.first;
    pool.name = id.second;
    pool.incomplete = !IsComplete(counting);
    if (pool.incomplete) continue;
    Collect(parts.here, counting, node, pool);
    pool.invalid = WhyInvalid(pool);
  }
  std::stable_partition(pools.begin(), pools.end(),
                        [](const Pool& pool) { return !HasConditions(pool); });
  return pools;
}

}  // namespace tranche::dra
