// The ways to place a MIG request that the benchmark compares.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/mig/fleet.h"
#include "bench/mig/workload.h"

namespace tranche::bench {

class MigPolicy {
 public:
  virtual ~MigPolicy() = default;
  // A request arrives; kind is its position in the mix. nullopt: it fits nowhere. The fleet gives
  // what is chosen the next number.
  virtual std::optional<MigRoom> Choose(const MigFleet& fleet, std::size_t kind, double time) = 0;
  virtual void Left(MigFleet::Id, double /*time*/) {}
};

// Policies by name; a factory makes one for each seed, since some learn. What can be computed once
// for a mix (tables) is computed when the factory is made.
using MigPolicyFactory = std::function<std::unique_ptr<MigPolicy>(uint64_t seed)>;

// "random", "first-fit", "round-robin", "best-fit", "worst-fit", "blocked", "fgd-mig",
// "fgd-mig-repack", "tranche" (the engine), "tranche+<moves per 100 accepts>" (the functions it is
// made of). `known`: these are told the mix instead of learning it. nullopt: no such policy.
std::optional<MigPolicyFactory> MakeMigPolicy(const std::string& name, const MigMix& mix,
                                              bool known);
std::string MigPolicyNames();

}  // namespace tranche::bench
