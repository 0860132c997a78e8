// What the kernel says of PCI devices: the files under /sys/bus/pci/devices.
//
// Thread rule: any thread.
#pragma once

#include <optional>
#include <string>

namespace tranche::probe {

class PciTree {
 public:
  explicit PciTree(std::string root = "/sys/bus/pci/devices") : root_(std::move(root)) {}

  // nullopt where the kernel knows none: no such device, or a machine without NUMA.
  std::optional<int> NumaNode(const std::string& bus) const;
  // "0-55,112-167"; empty where unknown.
  std::string CpuList(const std::string& bus) const;

 private:
  std::string FirstWord(const std::string& bus, const char* file) const;

  std::string root_;
};

}  // namespace tranche::probe
