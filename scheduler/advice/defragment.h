// Which pods, if restarted, would free the most whole GPUs or large MIG slices, and at which cost.
// Advice only: nobody is evicted for it.
//
// Pure. Each entry is one target that can be freed by itself (a GPU, a node's GPUs together, or the
// room of a large profile), the pods to restart and where each would go; entries do not overlap.
// Ranked by what is freed per GPU-second lost. Bounded search, deterministic.
//
// Entries hold one after another, move by move: each pod finds its place by the placement rules as
// they are, on a node of the GPU model it has that its selector, affinity and tolerations suit.
// Members of gangs, pods not to be evicted and pods whose devices are unknown stay.
// Cost: at 5,000 nodes of 8 GPUs with 30,000 pods 0.1 to 0.4 s.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/advice/case.h"

namespace tranche {

struct DefragMove {
  PodName pod;
  PodUid uid;
  std::string leaf;
  NodeName to;  // where it would fit afterwards
  int64_t lost_gpu_ms = 0;
};
struct DefragEntry {
  NodeName node;
  std::vector<int> gpus;  // of the node, that become idle; empty: a slice
  std::string profile;    // the largest profile that fits afterwards and not now; empty: GPUs
  int gpu = -1;           // of that profile
  std::vector<DefragMove> moves;
  // Room that was not usable as such before: idle GPUs gained, room for as many GPUs as are wanted
  // together, or the slice.
  int64_t freed_milli = 0;
  int64_t lost_gpu_ms = 0;
  int64_t waiting_served = 0;  // pods that wait now and would fit
};
struct DefragAdvice {
  int64_t whole_gpus_free = 0;       // now
  int64_t whole_gpus_possible = 0;   // after all entries
  int64_t stranded_milli = 0;        // free on partly used GPUs now
  std::vector<DefragEntry> entries;  // best first
  std::vector<std::string> notes;    // pods that hold things up and may not be moved, and why
};
struct DefragLimits {
  int most_entries = 20;
  int most_moves_per_entry = 8;
};

DefragAdvice AdviseDefragmentation(const AdviceCase& fleet, const DefragLimits& limits);

}  // namespace tranche
