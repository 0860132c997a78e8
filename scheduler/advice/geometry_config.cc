#include "scheduler/advice/geometry_config.h"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "topology/base/stable_hash.h"

namespace tranche {

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
  // Nodes of equal layout share a name.
  const std::string name = fmt::format("tranche-{:016x}", StableHash(entries));
  return {name, name + ":\n" + entries};
}

}  // namespace tranche
