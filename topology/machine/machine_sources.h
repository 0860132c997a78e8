// What different publishers tell about one node's GPUs, and the one machine made of it.
//
// Ranked: a matrix (annotation, probe) over HAMi's scores over ResourceSlice attributes over zone
// counts over the catalogue. A better source decides links; what it does not tell (NUMA, NICs) is
// filled in from the next. Sources that contradict each other make problems, the better one counts.
// What nobody tells stays unknown. Source: gpu-topology section 5, dra facts, request-dialects 4.2.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topology/base/ids.h"
#include "topology/base/units.h"
#include "topology/machine/machine.h"

namespace tranche {

// HAMi's node annotation: points of one pair of GPUs (10 SYS .. 60 board, 100 per NVLink).
struct PairScore {
  GpuUuid left;
  GpuUuid right;
  int points = 0;
  friend bool operator==(const PairScore&, const PairScore&) = default;
};

// A GPU (or NIC) of a ResourceSlice.
struct SliceDevice {
  GpuUuid uuid;      // empty for NICs
  std::string name;  // of the device
  bool is_nic = false;
  std::string pcie_root;  // "pci0000:44"; empty: not told
  std::string pci_bus;    // "0000:45:00.0"
  std::optional<int> numa;
  friend bool operator==(const SliceDevice&, const SliceDevice&) = default;
};

// One NUMA node of a NodeResourceTopology object.
struct ZoneCounts {
  int zone = 0;               // the number in its name, "node-1"
  int64_t gpus_capacity = 0;  // of the key nvidia.com/gpu
  int64_t gpus_available = 0;
  MilliCpu cpus_capacity;
  MilliCpu cpus_available;
  friend bool operator==(const ZoneCounts&, const ZoneCounts&) = default;
};

enum class MachineSource : uint8_t { kNone, kCatalogue, kZones, kSlices, kScores, kMatrix };
std::string_view MachineSourceName(MachineSource source);

// A GPU of the node as its inventory has it, in the order of its positions.
struct NodeGpu {
  int index = 0;
  GpuUuid uuid;             // empty: unknown
  std::optional<int> numa;  // as its agent says
};

struct MachineSources {
  std::vector<NodeGpu> gpus;
  std::string_view product;  // base product label (BaseProduct)
  std::string_view machine;  // label nvidia.com/gpu.machine
  const Machine* matrix = nullptr;
  const std::vector<PairScore>* scores = nullptr;
  const std::vector<SliceDevice>* slices = nullptr;
  const std::vector<ZoneCounts>* zones = nullptr;
};

struct ResolvedMachine {
  // Position i is sources.gpus[i]. Null: nothing is known about how the GPUs are connected.
  std::shared_ptr<const Machine> machine;
  // The source of the NVLinks. Where no source tells them (kSlices, kZones, kNone) the machine has
  // none, and with kNone it has only the agent's NUMA nodes.
  MachineSource links = MachineSource::kNone;
  // The links come from the node itself, or from the catalogue and something of the node confirms
  // them. Pods that require NVLink take only such machines.
  bool verified = false;
  std::vector<std::string> problems;
};

// More than kMaxMachineGpus GPUs: a problem and no machine. Cost: some microseconds for 8 GPUs,
// more with many NICs; meant for when a node's facts change.
ResolvedMachine ResolveMachine(const MachineSources& sources);

}  // namespace tranche
