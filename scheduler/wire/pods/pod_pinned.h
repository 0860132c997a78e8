// What containers tie down themselves: CPUs the kubelet's static CPU manager would pin (whole ones,
// of containers of Guaranteed pods), and limits of CUDA's MPS in their environment.
// Source: gpu-topology section 6, Kubernetes' documentation of CPU management policies; NVIDIA's
// MPS documentation, appendix "Environment Variables", and ADR 0049.
#pragma once

#include <optional>

#include "scheduler/facts/pod_request.h"
#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/units.h"

namespace tranche::wire {

// Of one container. `guaranteed` turns false where its resources make the pod another class: CPU or
// memory without a limit, or requested below it. `resources` nullopt: it names none.
MilliCpu PinnedCpu(const std::optional<Object>& resources, FieldReader& reader, bool& guaranteed);

// Fills own_limits. What cannot be read is named there, and no limit.
void ReadOwnLimits(Object spec, PodRequest& request);

}  // namespace tranche::wire
