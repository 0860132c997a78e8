// How much the GPUs of running pods do, as somebody who measures them told.
//
// Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topology/base/ids.h"
#include "topology/base/units.h"

namespace tranche {

// Of a pod that holds devices: what was measured of all of them, and of those of its gang.
struct MeasuredPod {
  PodUid uid;
  std::optional<int> permille;  // the busiest, 0..1000; nullopt: not known of all of them
  bool idle = false;            // that counts as doing nothing
  friend bool operator==(const MeasuredPod&, const MeasuredPod&) = default;
};

// The last of such measurements.
struct GpuUse {
  int permille = 0;
  Instant measured;
  std::optional<Instant> idle_since;  // no measurement since found work, and none is missing
  friend bool operator==(const GpuUse&, const GpuUse&) = default;
};

// What one device of a pod did, over all hours that counted.
struct DeviceHistory {
  std::string device;                    // its UUID, and "/" and the instance of one of MIG
  int busiest_hour = 0;                  // permille of the time
  std::optional<Mebibytes> most_memory;  // nullopt: never told
  friend bool operator==(const DeviceHistory&, const DeviceHistory&) = default;
};
struct WorkHistory {
  int64_t hours = 0;                   // that counted
  std::vector<DeviceHistory> devices;  // ascending device
  friend bool operator==(const WorkHistory&, const WorkHistory&) = default;
};
struct PodWork {
  PodUid uid;
  WorkHistory work;
  friend bool operator==(const PodWork&, const PodWork&) = default;
};

// A pod held its devices so long and did nothing with them.
struct IdleSpan {
  PodUid uid;
  Instant since;
  Instant until;
  friend bool operator==(const IdleSpan&, const IdleSpan&) = default;
};

// What was measured is good for so long; who tells nothing any more tells nothing of idleness.
inline constexpr Millis kUseGoodFor{300'000};

}  // namespace tranche
