// Which devices the kubelet gave to which container: its podresources API, v1.
//
// Thread rule: any thread. Source: k8s.io/kubelet pkg/apis/podresources/v1.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/probe/node_reading.h"

namespace tranche::probe {

// The NVIDIA devices in a ListPodResourcesResponse; everything else in it is passed over. Devices
// of one container and resource are one entry, however the kubelet splits them by NUMA node.
// Errors: InvalidArgument for bytes that are no such message, or names that no API object can have.
absl::StatusOr<std::vector<ContainerDevices>> DecodePodResources(std::string_view message);

// Asks the kubelet at its socket. Errors: NotFound when there is no socket; those of CallUnary.
absl::StatusOr<std::vector<ContainerDevices>> ListPodResources(const std::string& socket,
                                                               std::chrono::milliseconds timeout);

}  // namespace tranche::probe
