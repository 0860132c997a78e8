#include "scheduler/advice/geometry_config.h"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

namespace tranche {
namespace {

// FNV-1a, 64 bits: nodes of equal layout share a name, on every machine.
uint64_t HashOf(const std::string& text) {
  uint64_t hash = 14695981039346656037u;
  for (const char byte : text) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  }
  return hash;
}

}  // namespace

NodeConfig MigPartedConfig(std::span<const Geometry> gpus) {
  std::string entries;
  std::vector<bool> told(gpus.size(), false);
  for (std::size_t first = 0; first < gpus.size(); ++first) {
    if (told[first]) continue;
    std::vector<std::size_t> alike;
    for (std::size_t gpu = first; gpu < gpus.size(); ++gpu) {
      if (gpus[gpu] != gpus[first]) continue;
      told[gpu] = true;
      alike.push_back(gpu);
    }
    entries += fmt::format("- devices: [{}]\n", fmt::join(alike, ", "));
    if (gpus[first].profiles.empty()) {
      entries += "  mig-enabled: false\n";
      continue;
    }
    entries += "  mig-enabled: true\n  mig-devices:\n";
    for (const auto& [profile, count] : gpus[first].profiles) {
      entries += fmt::format("    \"{}\": {}\n", profile, count);
    }
  }
  const std::string name = fmt::format("tranche-{:016x}", HashOf(entries));
  return {name, name + ":\n" + entries};
}

}  // namespace tranche
