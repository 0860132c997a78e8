// What the kubelet's ids mean: a whole GPU by its UUID; a place on one for a MIG instance,
// "GPU-1f3c.../1g.10gb@6+1" being the profile, its first memory unit and how many; or a slot on one
// that several containers share, "GPU-1f3c.../slot-3". Slots are all alike: how much of the GPU
// whoever has one may use is for the record to say, which names no slot.
//
// Pure values; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "scheduler/facts/allocation.h"
#include "topology/base/ids.h"

namespace tranche::agent {

struct DeviceId {
  GpuUuid gpu;
  std::optional<MigDevice> place;
  std::optional<int> slot = {};

  std::string str() const;
  friend bool operator==(const DeviceId&, const DeviceId&) = default;
};

// A text that names a GPU, and neither place nor slot, stands for all of it.
DeviceId ParseDeviceId(std::string_view text);
DeviceId IdOf(const Device& device);

// Have the two anything in common? A GPU and each place on it have; two slots are the same or not.
bool Overlap(const DeviceId& one, const DeviceId& other);

}  // namespace tranche::agent
