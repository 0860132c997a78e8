#include "scheduler/dra/free.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tranche::dra {
namespace {

void AddAmount(std::vector<CapacityAmount>& amounts, const CapacityAmount& more) {
  const auto place = std::lower_bound(
      amounts.begin(), amounts.end(), more.name,
      [](const CapacityAmount& entry, const QualifiedName& name) { return entry.name < name; });
  if (place != amounts.end() && place->name == more.name) {
    place->amount = place->amount + more.amount;
  } else {
    amounts.insert(place, more);
  }
}

// Where each counter of a pool stands in NodeBooks::counters.
using CounterIndex = std::map<std::pair<std::string_view, std::string_view>, int>;

CounterIndex AddCounters(const Pool& pool, std::vector<Quantity>& counters) {
  CounterIndex index;
  for (const CounterSet* set : pool.counters) {
    for (const Counter& counter : set->counters) {
      index[{set->name, counter.name}] = static_cast<int>(counters.size());
      counters.push_back(counter.value);
    }
  }
  return index;
}

std::vector<DeviceBook::CounterUse> NeedsOf(const Device& device, const CounterIndex& index) {
  std::vector<DeviceBook::CounterUse> needs;
  for (const CounterSet& use : device.consumes) {
    for (const Counter& counter : use.counters) {
      needs.push_back({index.at({use.name, counter.name}), counter.value});
    }
  }
  return needs;
}

void Take(const std::vector<DeviceBook::CounterUse>& needs, std::vector<Quantity>& counters) {
  for (const DeviceBook::CounterUse& need : needs) {
    Quantity& left = counters[static_cast<std::size_t>(need.counter)];
    left = left - need.amount;
  }
}

std::vector<Quantity> CapacityLeft(const Device& device, const Occupancy::Use* use) {
  std::vector<Quantity> left;
  left.reserve(device.capacities.size());
  for (const Capacity& capacity : device.capacities) left.push_back(capacity.value);
  if (use == nullptr) return left;
  for (const CapacityAmount& consumed : use->consumed) {
    const Capacity* capacity = FindCapacity(device, consumed.name.domain, consumed.name.name);
    if (capacity == nullptr) continue;
    Quantity& rest = left[static_cast<std::size_t>(capacity - device.capacities.data())];
    rest = rest - consumed.amount;
  }
  return left;
}

bool HasCounters(const NodeBooks& books, const DeviceBook& device) {
  if (device.needs.empty()) return true;
  if (books.overdrawn[static_cast<std::size_t>(device.pool)]) return false;
  return std::ranges::all_of(device.needs, [&books](const DeviceBook::CounterUse& need) {
    return books.counters[static_cast<std::size_t>(need.counter)] >= need.amount;
  });
}

}  // namespace

Occupancy::Occupancy(std::span<const Claim* const> claims) {
  for (const Claim* claim : claims) Add(*claim);
}

void Occupancy::Add(const Claim& claim) {
  if (!claim.allocation) return;
  for (const AllocatedDevice& device : claim.allocation->devices) {
    if (device.admin) continue;
    Use& use = uses_[device.id];
    if (device.shared) {
      ++use.shares;
      for (const CapacityAmount& amount : device.consumed) AddAmount(use.consumed, amount);
    } else {
      use.whole = true;
    }
    use.holders.push_back(claim.str());
  }
}

const Occupancy::Use* Occupancy::Find(const DeviceId& id) const {
  const auto found = uses_.find(id);
  return found == uses_.end() ? nullptr : &found->second;
}

NodeBooks BooksOf(std::vector<Pool> pools, const Occupancy& occupancy) {
  NodeBooks books;
  books.pools = std::move(pools);
  books.overdrawn.resize(books.pools.size());
  for (std::size_t p = 0; p < books.pools.size(); ++p) {
    const Pool& pool = books.pools[p];
    if (!pool.usable()) continue;
    const auto first_counter = static_cast<std::ptrdiff_t>(books.counters.size());
    const std::size_t first_device = books.devices.size();
    const CounterIndex index = AddCounters(pool, books.counters);
    for (const Device* device : pool.devices) {
      const Occupancy::Use* use = occupancy.Find({pool.driver, pool.name, device->name});
      DeviceBook& book = books.devices.emplace_back();
      book.device = device;
      book.pool = static_cast<int>(p);
      book.taken = use != nullptr && use->whole;
      book.shares = use == nullptr ? 0 : use->shares;
      book.needs = NeedsOf(*device, index);
      book.capacity_left = CapacityLeft(*device, use);
      if (use != nullptr) Take(book.needs, books.counters);
    }
    for (const Device* device : pool.elsewhere) {
      if (occupancy.Find({pool.driver, pool.name, device->name}) != nullptr) {
        Take(NeedsOf(*device, index), books.counters);
      }
    }
    books.overdrawn[p] = std::any_of(books.counters.begin() + first_counter, books.counters.end(),
                                     [](Quantity left) { return left < Quantity(); });
    for (const Pool::Bystander& bystander : pool.bystanders) {
      const Occupancy::Use* use = occupancy.Find({pool.driver, pool.name, bystander.device->name});
      books.bystanders.push_back({bystander.device, static_cast<int>(p),
                                  first_device + bystander.place, use != nullptr && use->whole});
    }
  }
  return books;
}

DeviceState StateOf(const NodeBooks& books, const DeviceBook& device) {
  if (device.taken) return DeviceState::kTaken;
  if (device.shares > 0) return DeviceState::kShared;
  return HasCounters(books, device) ? DeviceState::kFree : DeviceState::kBlocked;
}

DeviceId IdOf(const NodeBooks& books, const DeviceBook& device) {
  const Pool& pool = books.pools[static_cast<std::size_t>(device.pool)];
  return {pool.driver, pool.name, device.device->name};
}

}  // namespace tranche::dra
