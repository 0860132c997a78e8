// What NVIDIA's DRA driver publishes of a machine, and the device classes its chart installs.
//
// Cards that are cut are published by their instances alone (static MIG), as the driver does.
//
// Source: dra sections 2, 3 and 5.
//
// Plain values.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "test/sim/base/history.h"
#include "test/sim/world/fleet.h"

namespace tranche::sim {

inline constexpr const char* kDraDriver = "gpu.nvidia.com";
inline constexpr const char* kDraVersion = "resource.k8s.io/v1";

// One device of a pool, which is named as its node.
struct DraDevice {
  std::string name;  // "gpu-0"
  std::string uuid;
  int card = 0;
  int instance = -1;  // of Machine::instances; negative: the whole card
};
std::vector<DraDevice> DevicesOf(const Machine& machine);

// The pool in so many slices; devices whose names are in `away` are left out.
std::vector<Json> SlicesOf(const Machine& machine, int64_t generation, int slices,
                           const std::set<std::string>& away);

// Classes for whole GPUs and MIG instances; `serves_gpus`: nvidia.com/gpu is served by the first.
std::vector<Json> DraClasses(bool serves_gpus);

}  // namespace tranche::sim
