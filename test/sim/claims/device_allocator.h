// kube-scheduler's allocator of devices within one node: the first that fit, in the order of slices
// and devices, with backtracking where devices have to agree.
//
// It reads the expressions that users of the simulation write and no others: equalities of the
// driver and of text attributes, joined by &&. A missing attribute is an error there, and ends the
// attempt, as it does in the allocator.
//
// Source: dra sections 2 to 4. Not modelled: counters, shares of a device, taints,
// distinctAttribute.
//
// Pure. Cost: devices of the node for each device asked for; more where constraints fail.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "test/sim/base/history.h"

namespace tranche::sim {

// By name.
using DraObjects = std::map<std::string, const Json*>;

struct AllocatorView {
  std::vector<const Json*> slices;  // of the node, by name
  const DraObjects* classes = nullptr;
  const std::set<std::string>* taken = nullptr;  // "pool/device"
};

// An allocation for each claim's spec, in order; nullopt: the node has not what they ask for.
std::optional<std::vector<Json>> AllocateOn(const std::string& node,
                                            const std::vector<const Json*>& specs,
                                            const AllocatorView& view);

}  // namespace tranche::sim
