// Which faults a seed draws, and how often they come: some seeds have nearly none, some have few of
// them often, few have all (swarm testing).
//
// Plain values. Rates are parts in 10,000.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/sim/base/draws.h"
#include "test/sim/base/loop.h"

namespace tranche::sim {

// Kinds that --faults names.
enum class Fault : uint8_t {
  kCrash,      // a replica of Tranche ends at any step
  kPause,      // a replica stands still, perhaps for longer than a lease
  kClock,      // the wall clock of one process jumps or drifts
  kDisk,       // the ledger's disk loses, tears, flips, fills or hangs
  kNetwork,    // requests and answers are lost, late, or cut one way
  kApiServer,  // 409, 410, 429, 5xx; watches that lag, repeat, go back to an older server
  kScheduler,  // kube-scheduler restarts
  kAgent,      // kubelets and device agents slow, dead, replaced, wrong about their own node
  kUsers,      // annotations, labels, quotas, budgets and classes edited at bad moments
  kNodes,      // nodes come, go and change
  kStrangers,  // other schedulers place pods on the same nodes
  kCount
};
const char* NameOf(Fault fault);  // "crash", ...

struct FaultPlan {
  int rates[static_cast<int>(Fault::kCount)] = {};  // 0: never
  int rate(Fault fault) const { return rates[static_cast<int>(fault)]; }
  bool has(Fault fault) const { return rate(fault) > 0; }
  // Worlds and looks that few seeds have been through yet are there too.
  bool trial = true;
};
// Of all faults, none, or those of a list ("crash,disk"); what is not named never comes. "trial"
// besides: FaultPlan::trial, else not. Errors: the unknown name, in `problem`.
FaultPlan DrawFaults(Draws& draws, const std::string& names, std::string& problem);

}  // namespace tranche::sim
