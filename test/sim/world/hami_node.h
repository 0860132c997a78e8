// HAMi's agent on one node of the simulation: the fake of test/fakes/agents asked about the cluster
// as the store has it, and what it would write.
//
// Source: request-dialects section 4.4.
//
// Pure functions of the store.
#pragma once

#include <map>
#include <string>

#include "test/sim/cluster/store.h"
#include "test/sim/world/fleet.h"
#include "test/sim/world/pod_view.h"

namespace tranche::sim {

struct HamiGrant {
  std::string problem;  // not empty: the kubelet refuses the pod
  Json devices = Json::array();
  std::map<std::string, Json> pods;  // key -> annotations to merge
  Json node = nullptr;               // annotations to merge
};

// The kubelet calls once for each container of `pod` that asks for GPUs; the agent finds out by
// itself which pod it is called for, and may be wrong.
HamiGrant AskHamiAgent(const Store& store, const Machine& machine, int minor, const PodView& pod);

}  // namespace tranche::sim
