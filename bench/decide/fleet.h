// A made fleet for the decision benchmark: stock nodes of equal make, pods bound on them up to a
// fill, written as ordinary Kubernetes objects that `tranche serve --objects` loads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/profile/profile.h"

namespace tranche::bench {

std::string NodeNameOf(int index);  // "gpu-node-00042"
std::string TeamName(int index);    // its namespace too: "team-7"

struct FleetFiles {
  std::vector<std::string> paths;  // to be loaded in this order
  int64_t pods = 0;
};

// Lists of nodes and, behind them, of bound pods, in as many files as keep each small: a server
// needs memory of several times a file to read it. Errors: what the file system says.
absl::StatusOr<FleetFiles> WriteFleet(const Profile& profile, uint64_t seed,
                                      const std::string& folder);

// A pending pod as kube-scheduler sends it, without the candidates: what it asks is drawn by `draw`
// from the pods that wait; classes and runtimes go by index.
std::string PendingPod(const Profile& profile, int index, uint64_t draw);

}  // namespace tranche::bench
