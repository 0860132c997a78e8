// The search behind MachineTable: sets of GPUs that obey rules, best first.
//
// Up to kMostTabledGpus GPUs every set is looked at. Beyond that sets are grown greedily from every
// GPU and the best is improved by exchanging one GPU at a time: bounded, not exact. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "topology/machine/gpu_set.h"
#include "topology/machine/machine.h"
#include "topology/machine/machine_table.h"
#include "topology/machine/set_values.h"

namespace tranche {

// What rules admit: GPUs by themselves, and which two may be together.
struct Admitted {
  GpuSet gpus;
  std::vector<GpuSet> mates;  // by GPU; symmetric, without itself
};
Admitted AdmittedBy(const Machine& machine, const SetRules& rules);
// The first two GPUs of the set that may not be together; the same one twice: it is not admitted by
// itself. nullopt: all is well.
std::optional<MissingLink> FirstBreach(const Machine& machine, const Admitted& admitted,
                                       GpuSet set);

struct SetQuestion {
  const Machine& machine;
  const SetValues& values;
  GpuSet free;
  int count = 0;  // at least 1
  SetGoal goal = SetGoal::kConnected;
};

// At most `most` admitted sets, best first, equal ones by their lowest GPUs; beyond kMostTabledGpus
// GPUs at most one.
std::vector<GpuSet> BestSets(const SetQuestion& question, const Admitted& admitted,
                             std::size_t most);
// The set with fewest breaches, among those the best. Requires: enough are free.
GpuSet ClosestSet(const SetQuestion& question, const Admitted& admitted);

}  // namespace tranche
