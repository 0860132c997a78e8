// What an eviction destroys: GPU time since the last checkpoint, and the restart.
//
// lost = charge x (min(now - lastCheckpoint, runtime, class cap) + restart overhead), times
// 2^(earlier evictions of the owner, at most 3). Relocatable work (another model has room for it)
// pays only the restart overhead. A pod without checkpoints is assumed to lose
// min(runtime, a percentile of the publishers' checkpoint ages in its class, cap); with no
// publishers in the class its runtime counts, which makes the newest the cheapest.
// quota-model section 4. Integers; GPU-milliseconds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "quota/tree/charge.h"
#include "topology/base/units.h"

namespace tranche {

struct WorkAtRisk {
  Charge charge;                      // sum over the unit's pods
  std::optional<Instant> running;     // containers started; nullopt: nothing to lose yet
  std::optional<Instant> checkpoint;  // as published
  Millis cap{0};                      // of the class
  Millis restart_overhead{0};
  int earlier_evictions = 0;  // of its owner
  bool relocatable = false;
};

// How old the publishers' checkpoints are, by class.
class CheckpointAges {
 public:
  void Add(const std::string& workload_class, Millis age);  // age >= 0
  // The nearest-rank percentile (1..100) of the class; nullopt: no publishers.
  std::optional<Millis> Percentile(const std::string& workload_class, int percentile) const;

 private:
  // Sorted when first asked.
  mutable std::map<std::string, std::pair<bool, std::vector<Millis>>> ages_;
};

// The part of the runtime that is lost, before overhead; `assumed` is the percentile for those who
// do not publish. A checkpoint that is older than the start, or newer than now, is no checkpoint or
// one made now.
Millis LostRuntime(const WorkAtRisk& work, std::optional<Millis> assumed, Instant now);

// Saturating.
int64_t LostGpuMillis(const WorkAtRisk& work, std::optional<Millis> assumed, Instant now);

}  // namespace tranche
