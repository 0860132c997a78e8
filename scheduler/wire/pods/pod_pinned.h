// CPUs the kubelet's static CPU manager would pin: whole ones, of containers of Guaranteed pods.
// Source: gpu-topology section 6, Kubernetes' documentation of CPU management policies.
#pragma once

#include <optional>

#include "scheduler/wire/json/field_reader.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/units.h"

namespace tranche::wire {

// Of one container. `guaranteed` turns false where its resources make the pod another class: CPU or
// memory without a limit, or requested below it. `resources` nullopt: it names none.
MilliCpu PinnedCpu(const std::optional<Object>& resources, FieldReader& reader, bool& guaranteed);

}  // namespace tranche::wire
