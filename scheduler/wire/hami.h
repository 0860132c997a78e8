// HAMi's annotation grammars. Source: request-dialects section 4 (Project-HAMi/HAMi).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/facts/allocation.h"
#include "scheduler/facts/node_facts.h"
#include "scheduler/facts/pod_request.h"
#include "topology/base/units.h"

namespace tranche::wire {

// Reads hami.io/node-nvidia-register in either wire form: text (<= 2.7.1; 7 or 9 fields a device)
// or JSON (>= 2.8, with migProfiles from 2.10; zero values omitted).
// Errors: InvalidArgument naming the device, the field and the value found.
absl::StatusOr<HamiRegister> ParseHamiRegister(std::string_view text);

// The keys HAMi's agent of that minor version reads, for the Binding. Init containers have slots
// in the list from 2.9 on; before, what they hold cannot be said. The cores of a device are
// milli / 10, at least 1 of a share that has any, whole cards 100.
// Requires: every device has a UUID; MIG devices from minor 10 on only.
std::map<std::string, std::string> HamiBindingAnnotations(const PodRequest& request,
                                                          const Allocation& allocation,
                                                          std::string_view node, int hami_minor,
                                                          Instant now);

// Reads hami.io/vgpu-devices-allocated back into devices by container (epoch 0, exact; Device::card
// is 0 and must be resolved by UUID). The list's length tells whether init containers have slots.
// Errors: InvalidArgument naming container, device and value found.
absl::StatusOr<Allocation> ParseHamiDevices(std::string_view text,
                                            const std::vector<ContainerInfo>& containers);

}  // namespace tranche::wire
