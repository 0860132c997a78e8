// What is to be known of a node to price its GPUs, and which price is in force at a moment.
//
// Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy_set.h"
#include "policy/selector.h"
#include "policy/spec.h"
#include "topology/base/units.h"

namespace tranche {

// What prices ask of a node.
struct NodeTraits {
  std::string pool;  // empty: in none
  std::optional<CapacityType> capacity;
  std::string instance_type;  // empty: the node does not say
  friend bool operator==(const NodeTraits&, const NodeTraits&) = default;
};

// Of a node with these labels: its pool, the pool's capacity type, else the one the labels of its
// cloud or provisioner say. Cost: that of PolicySet::PoolOf.
NodeTraits TraitsOf(const PolicySet& set, const FindLabel& label);
// Of one that is in that pool; nullptr: in none. Cost: a few look-ups of labels.
NodeTraits TraitsOf(const GpuPool* pool, const FindLabel& label);

// The capacity type by the labels of Karpenter, EKS, GKE and AKS; nullopt: none of them is there
// or has a value that is known.
std::optional<CapacityType> CapacityOfLabels(const FindLabel& label);

struct PriceAt {
  const GpuPrice* price = nullptr;  // nullptr: nobody says what it costs
  // Up to here the answer stays the same; Instant::max(): for ever. Always after the moment asked.
  Instant until;
  int64_t micros() const { return price == nullptr ? 0 : price->micros_per_gpu_hour; }
};

// The price of a GPU of `model` (lower case) on such a node at that moment: of all prices whose
// given fields match, one that names the pool before one that does not, then the instance type,
// the capacity, the model, hours, and last the first by name. `prices` in ascending name, each a
// price in force. Cost: prices x their hours.
PriceAt PriceOf(const std::vector<GpuPrice>& prices, const NodeTraits& node, std::string_view model,
                Instant at);

// The price's spec as JSON text that DecodeGpuPrice takes, the same for equal values. At most
// 4 KiB.
std::string PriceSpecText(const GpuPrice& price);

// 2490000 -> "2.49", as few decimals as it takes. `micros` >= 0.
std::string FormatMicros(int64_t micros);

}  // namespace tranche
