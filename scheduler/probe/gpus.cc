#include "scheduler/probe/gpus.h"

#include <fmt/format.h>

#include <algorithm>

#include "topology/base/status.h"

namespace tranche::probe {
namespace {

absl::Status OfGpu(int index, const absl::Status& status) {
  const char* const hint =
      absl::IsPermissionDenied(status)
          ? "; a GPU in MIG mode shows its instances only to those who may monitor them"
          : "";
  return absl::Status(status.code(),
                      fmt::format("GPU {}: {}{}", index, std::string(status.message()), hint));
}

absl::StatusOr<Gpu> ReadGpu(Nvml& nvml, const PciTree& pci, int index) {
  TRANCHE_ASSIGN_OR_RETURN(Nvml::Device device, nvml.DeviceAt(index));
  TRANCHE_ASSIGN_OR_RETURN(std::string uuid, nvml.Uuid(device));
  TRANCHE_ASSIGN_OR_RETURN(std::string bus, nvml.PciBus(device));
  TRANCHE_ASSIGN_OR_RETURN(int64_t memory, nvml.MemoryMib(device));
  TRANCHE_ASSIGN_OR_RETURN(bool mig, nvml.MigIsOn(device));
  Gpu gpu;
  gpu.index = index;
  gpu.uuid = std::move(uuid);
  gpu.bus = std::move(bus);
  gpu.numa = pci.NumaNode(gpu.bus);
  gpu.memory_mib = memory;
  if (mig) {
    TRANCHE_ASSIGN_OR_RETURN(gpu.mig, nvml.MigInstances(device));
  }
  return gpu;
}

const char* Code(Ancestor ancestor) {
  switch (ancestor) {
    case Ancestor::kBoard:
    case Ancestor::kSwitch:
      return "PIX";
    case Ancestor::kSwitches:
      return "PXB";
    case Ancestor::kHostBridge:
      return "PHB";
    case Ancestor::kNumaNode:
      return "NODE";
    case Ancestor::kSystem:
      break;
  }
  return "SYS";
}

// One row and column of the matrix.
struct Entry {
  Nvml::Device device;
  std::string bus;
  NvLinks links;
};

absl::StatusOr<std::string> Cell(Nvml& nvml, const Entry& row, const Entry& column) {
  if (&row == &column) return " X ";
  const auto direct = std::count(row.links.to_gpus.begin(), row.links.to_gpus.end(), column.bus);
  const auto switched = std::min(row.links.to_switches, column.links.to_switches);
  if (direct > 0) return fmt::format("NV{}", direct);
  if (switched > 0) return fmt::format("NV{}", switched);
  TRANCHE_ASSIGN_OR_RETURN(const Ancestor ancestor, nvml.CommonAncestor(row.device, column.device));
  return Code(ancestor);
}

std::string OrUnknown(const std::string& text) { return text.empty() ? "N/A" : text; }

}  // namespace

absl::StatusOr<std::vector<Gpu>> ReadGpus(Nvml& nvml, const PciTree& pci) {
  TRANCHE_ASSIGN_OR_RETURN(const int count, nvml.DeviceCount());
  std::vector<Gpu> gpus;
  for (int index = 0; index < count; ++index) {
    absl::StatusOr<Gpu> gpu = ReadGpu(nvml, pci, index);
    if (!gpu.ok()) return OfGpu(index, gpu.status());
    gpus.push_back(std::move(*gpu));
  }
  return gpus;
}

absl::StatusOr<std::string> DrawMatrix(Nvml& nvml, const PciTree& pci,
                                       const std::vector<Gpu>& gpus) {
  std::vector<Entry> entries;
  std::string text;
  for (const Gpu& gpu : gpus) {
    const absl::StatusOr<Nvml::Device> device = nvml.DeviceAt(gpu.index);
    if (!device.ok()) return OfGpu(gpu.index, device.status());
    absl::StatusOr<NvLinks> links = nvml.ActiveLinks(*device);
    if (!links.ok()) return OfGpu(gpu.index, links.status());
    entries.push_back({*device, gpu.bus, std::move(*links)});
    text += fmt::format("\tGPU{}", gpu.index);
  }
  text += "\tCPU Affinity\tNUMA Affinity\n";
  for (std::size_t row = 0; row < entries.size(); ++row) {
    const Gpu& gpu = gpus[row];
    text += fmt::format("GPU{}", gpu.index);
    for (const Entry& column : entries) {
      const absl::StatusOr<std::string> cell = Cell(nvml, entries[row], column);
      if (!cell.ok()) return OfGpu(gpu.index, cell.status());
      text += "\t" + *cell;
    }
    const std::string numa = gpu.numa ? fmt::format("{}", *gpu.numa) : "";
    text += fmt::format("\t{}\t{}\n", OrUnknown(pci.CpuList(gpu.bus)), OrUnknown(numa));
  }
  return text;
}

}  // namespace tranche::probe
