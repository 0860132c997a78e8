// How much the GPUs of running pods do, as somebody who measures them told.
//
// Plain values; any thread.
#pragma once

#include <optional>

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

// What was measured is good for so long; who tells nothing any more tells nothing of idleness.
inline constexpr Millis kUseGoodFor{300'000};

}  // namespace tranche
