// How the containers of one claim share its GPUs: what NVIDIA's driver reads in an opaque
// configuration (GpuConfig, MigDeviceConfig and VfioDeviceConfig of resource.nvidia.com).
//
// Only pods and containers that refer to one claim share: claims never share a device by this.
// Plain value; any thread. Source: dra facts section 5.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "topology/base/units.h"

namespace tranche::dra {

struct Sharing {
  enum class Target : uint8_t { kGpu, kMig, kVfio };
  enum class Strategy : uint8_t { kNone, kTimeSlicing, kMps };
  Target target = Target::kGpu;
  Strategy strategy = Strategy::kNone;

  std::string interval;  // kTimeSlicing: "Default", "Short", "Medium", "Long"; empty: not said

  // kMps: limits of each process.
  std::optional<int> thread_percent;
  std::optional<Mebibytes> pinned_memory;
  std::map<std::string, Mebibytes> pinned_memory_of;  // by UUID or index of the device
  bool multi_user = false;

  friend bool operator==(const Sharing&, const Sharing&) = default;
};

// One sentence for explain, without a full stop: "MPS: each process gets at most 50% of the threads
// and 10240 MiB of a GPU".
std::string Describe(const Sharing& sharing);

}  // namespace tranche::dra
