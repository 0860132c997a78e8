// The two node annotations the probe writes.
//
// Pure functions. `tranche.dev/topology` is the matrix as text. `tranche.dev/probe` is JSON,
// version 1:
// {"v":1,"at":TIME,"driver":TEXT,"gpus":[{"index","uuid","bus","numa":N|null,"memoryMiB",
// "mig":[{"profile","start","size","uuid"}]|null}],"pods":[{"namespace","name","container",
// "resource","devices":[ID]}]|null}; every list ascending; "pods" is null where the kubelet could
// not be asked, "mig" where MIG mode is off.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "scheduler/probe/node_reading.h"
#include "topology/base/units.h"

namespace tranche::probe {

inline constexpr const char* kTopologyKey = "tranche.dev/topology";
inline constexpr const char* kProbeKey = "tranche.dev/probe";

// `at`: when the node was looked at. An empty text means that the annotation is to be removed.
// Errors: ResourceExhausted when both together would not leave others of the 256 KiB that all
// annotations of an object may have.
absl::StatusOr<std::map<std::string, std::string>> RenderAnnotations(const NodeReading& reading,
                                                                     Instant at);

}  // namespace tranche::probe
