// Which of the published slices count, and which devices a node can use.
//
// Of a pool only the slices of the highest generation count that the node has slices of, and only
// when all of them are there. Where the node's own slices are as many as the pool should have, no
// other is looked at. Else a newer generation, of other nodes, takes the pool away from the node,
// and a pool that lacks slices is incomplete: nothing is allocated from it. Counter sets lie in the
// slice of the devices (1.34) or in slices of their own (1.35 on). Order is the allocator's: pools
// by driver and name, those with binding conditions last; slices by name; devices as listed. (Some
// releases take pools and slices in the order of their memory: see README.) Values in, views out:
// the slices must outlive the pools. Any thread; cost linear in the slices given, which may be
// those of all nodes. Source: dra facts section 2, allocator of kubernetes/kubernetes
// (dynamic-resource-allocation/structured), which judges this in test/allocator.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/dra/model.h"

namespace tranche::dra {

struct NodeView {
  std::string_view name;
  const LabelText* labels = nullptr;  // nullptr: none
};

struct Pool {
  std::string driver;
  std::string name;
  bool incomplete = false;               // slices are missing; then the lists below are empty
  std::string invalid;                   // why nothing may be allocated from it; empty: it is valid
  std::vector<const Device*> devices;    // the node can use them, in allocation order
  std::vector<const Device*> elsewhere;  // of other nodes, which take from the same counters
  std::vector<const CounterSet*> counters;  // ascending name
  // Devices of other nodes in slices that have some of this node: selectors are tried on them as
  // well, and they are of `elsewhere` too.
  struct Bystander {
    const Device* device = nullptr;
    std::size_t place = 0;  // how many of `devices` come before it
  };
  std::vector<Bystander> bystanders;

  bool usable() const { return !incomplete && invalid.empty(); }
};

// Pools with slices for the node, incomplete and invalid ones included.
std::vector<Pool> PoolsOf(std::span<const Slice* const> slices, const NodeView& node);

// Is the node one of those chosen? kNone and kPerDevice choose none.
bool Chooses(const NodeChoice& choice, const NodeView& node);
// Can the node reach what has been allocated?
bool Reaches(const Allocation& allocation, const NodeView& node);

}  // namespace tranche::dra
