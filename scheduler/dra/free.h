// What claims hold, and what is left of a node's devices.
//
// An allocation takes its device whole, or, of a device with several allocations, the capacity its
// result names. A device that is held takes its part of the shared counters, once. Devices of
// placements that overlap (dynamic MIG) exclude each other by these counters alone. adminAccess
// takes nothing. One thread at a time; cost logarithmic a device.
// Source: dra facts sections 2 and 5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "scheduler/dra/model.h"
#include "scheduler/dra/pools.h"

namespace tranche::dra {

// What all claims of the cluster hold together.
class Occupancy {
 public:
  struct Use {
    bool whole = false;                    // held by a claim that shares it with no other
    int shares = 0;                        // claims that hold a part
    std::vector<CapacityAmount> consumed;  // by those, ascending name
    std::vector<std::string> holders;      // "namespace/name" of the claims, in order of adding
  };

  Occupancy() = default;
  explicit Occupancy(std::span<const Claim* const> claims);
  void Add(const Claim& claim);
  // nullptr: nobody holds it.
  const Use* Find(const DeviceId& id) const;

 private:
  std::map<DeviceId, Use> uses_;
};

enum class DeviceState : uint8_t {
  kFree,
  kShared,   // in part, and more may come
  kTaken,    // by a claim
  kBlocked,  // the counters it needs are taken by other devices: another placement of its GPU
};

// A device of a node with its books.
struct DeviceBook {
  struct CounterUse {
    int counter = 0;  // of NodeBooks::counters
    Quantity amount;
    friend bool operator==(const CounterUse&, const CounterUse&) = default;
  };
  const Device* device = nullptr;
  int pool = 0;  // of NodeBooks::pools
  bool taken = false;
  int shares = 0;
  std::vector<CounterUse> needs;        // until it is held
  std::vector<Quantity> capacity_left;  // parallel to Device::capacities
};

struct NodeBooks {
  std::vector<Pool> pools;
  std::vector<DeviceBook> devices;  // of usable pools, in allocation order
  std::vector<Quantity> counters;   // what is left; below zero: taken twice
  // Devices of other nodes on which selectors are tried as well, in allocation order.
  struct Bystander {
    const Device* device = nullptr;
    int pool = 0;           // of NodeBooks::pools
    std::size_t place = 0;  // how many of `devices` come before it
    bool taken = false;
  };
  std::vector<Bystander> bystanders;
  std::vector<bool> overdrawn;  // by pool: some counter is below zero, and none may be taken
};

// The slices behind `pools` must outlive the books.
NodeBooks BooksOf(std::vector<Pool> pools, const Occupancy& occupancy);
DeviceState StateOf(const NodeBooks& books, const DeviceBook& device);
DeviceId IdOf(const NodeBooks& books, const DeviceBook& device);

}  // namespace tranche::dra
