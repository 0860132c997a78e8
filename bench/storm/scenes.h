// What happens in a storm. Each scene is prepared once, then played step by step.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/storm/world.h"

namespace tranche::bench {

struct StormScene {
  std::string name;
  int size = 0;  // pods, namespaces: what the scene brings
  std::function<void(World& world)> prepare;
  // One step; false: there is no more to come.
  std::function<bool(World& world, int step)> play;
};

// In order; the first one is quiet. `scale`: of their sizes.
std::vector<StormScene> StormScenes(double scale);

}  // namespace tranche::bench
