// What a request takes of each capacity of a device, rounded as the device's policy says.
//
// Source: kubernetes/api resource/v1 (CapacityRequestPolicy) and the allocator's rounding: below
// the range its minimum, else up to the next step; up to the next valid value; unasked the default,
// without one everything. Pure; any thread; cost: capacities times requests of a few each.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "scheduler/dra/model.h"

namespace tranche::dra {

// Parallel to Device::capacities. nullopt: the device does not have a capacity that is asked for,
// under the name that its slice writes (with its domain or without), or its policy does not allow
// the amount. Whether so much is left is the caller's to compare.
std::optional<std::vector<Quantity>> ConsumedOf(const Device& device, std::string_view driver,
                                                std::span<const CapacityAmount> asked);

// Does the policy of some capacity count in fractions? Releases differ in how these are rounded
// (gate DRAFractionalCapacityRange).
bool HasFractionalRange(const Device& device);

}  // namespace tranche::dra
