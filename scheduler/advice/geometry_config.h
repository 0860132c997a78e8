// A node's layout as mig-parted reads it. Pure.
#pragma once

#include <span>
#include <string>

#include "scheduler/advice/repartition.h"

namespace tranche {

struct NodeConfig {
  std::string name;  // "tranche-" and a hash of what follows
  // One member of mig-configs: the name, and an entry for each group of GPUs cut alike.
  std::string yaml;
};

// `gpus[i]`: how GPU i of the node is to be cut. Source: mig-geometry section 7.
NodeConfig MigPartedConfig(std::span<const Geometry> gpus);

}  // namespace tranche
