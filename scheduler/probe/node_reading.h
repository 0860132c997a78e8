// What the probe found on its node. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tranche::probe {

// One MIG device and where its GPU instance lies, in memory slices.
struct MigInstance {
  int start = 0;
  int size = 0;
  std::string profile;  // "1g.10gb", "1g.10gb+me"
  std::string uuid;
  friend auto operator<=>(const MigInstance&, const MigInstance&) = default;
};

struct Gpu {
  int index = 0;  // the driver's
  std::string uuid;
  std::string bus;          // "0000:07:00.0"
  std::optional<int> numa;  // nullopt: the kernel names none
  int64_t memory_mib = 0;
  std::optional<std::vector<MigInstance>> mig;  // ascending; nullopt: MIG mode is off
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

// Devices of one NVIDIA resource that the kubelet gave to one container.
struct ContainerDevices {
  std::string ns;
  std::string pod;
  std::string container;
  std::string resource;              // "nvidia.com/gpu"
  std::vector<std::string> devices;  // ids as the device plugin names them; ascending
  friend auto operator<=>(const ContainerDevices&, const ContainerDevices&) = default;
};

struct NodeReading {
  std::string driver;
  std::vector<Gpu> gpus;                              // ascending index
  std::optional<std::vector<ContainerDevices>> pods;  // ascending; nullopt: could not be asked
  std::string topology;                               // text of nvidia-smi topo -m; empty: no GPUs
  friend bool operator==(const NodeReading&, const NodeReading&) = default;
};

}  // namespace tranche::probe
