// The GPUs of this node, and the matrix of how they are connected, as NVML and the kernel tell.
//
// Thread rule: one thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/probe/node_reading.h"
#include "scheduler/probe/nvml.h"
#include "scheduler/probe/pci_tree.h"

namespace tranche::probe {

// Errors: those of Nvml, with the GPU's index in front. One GPU that cannot be read fails all: half
// a list would look like a node that lost the other half.
absl::StatusOr<std::vector<Gpu>> ReadGpus(Nvml& nvml, const PciTree& pci);

// The matrix as nvidia-smi topo -m prints it, without NICs, which NVML does not know. NV# counts
// the active links between two GPUs; GPUs behind NVLink switches have the lesser number of links
// that either has to the switches. Cost: O(n^2) calls for n GPUs.
absl::StatusOr<std::string> DrawMatrix(Nvml& nvml, const PciTree& pci,
                                       const std::vector<Gpu>& gpus);

}  // namespace tranche::probe
