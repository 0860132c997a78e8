// Cutting a failing run down to what it needs: actions are left out while the same checker still
// finds something (delta debugging, "ddmin", Zeller and Hildebrandt 2002).
//
// Deterministic: the same run is cut down to the same actions. Cost: a run for each try; n actions
// of which k are needed take about k log n to k squared tries.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "test/sim/tool/run.h"

namespace tranche::sim {

using Runner = std::function<Outcome(const RunOptions&)>;

struct Shrunk {
  RunOptions options;  // with all that is left out
  Outcome outcome;     // of the last run that failed
  int tries = 0;
  bool finished = false;  // no single action more can be left out
};
// `failed`: what `options` led to; it has findings. At most `most_tries` runs. `progress` hears
// how many actions are left, and may be empty.
Shrunk Shrink(const RunOptions& options, const Outcome& failed, const Runner& run, int most_tries,
              const std::function<void(std::size_t left, int tries)>& progress);

}  // namespace tranche::sim
