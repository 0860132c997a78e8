// Which idle GPUs to give which MIG geometry, for what waits and what is expected.
//
// With mig-manager the GPU is the unit of change and the node is briefly unobservable, so a plan
// touches only GPUs nobody uses, keeps the layout of every other GPU of the node as it is, and is
// made only where the gain is worth the disturbance (mig-geometry section 7, guards 1-6).
// Pure. Cost: O(idle GPUs x geometries x waiting kinds), bounded by `most_moves`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/advice/case.h"
#include "topology/base/ids.h"

namespace tranche {

struct RepartitionLimits {
  int most_moves = 4;  // GPUs changed by one plan
  int most_nodes = 1;  // nodes disturbed at a time
  // Waiting this long before anything is changed for a pod; the demand must outlast the change.
  Millis patience{60'000};
};

// How one GPU is to be cut: profile name -> count; empty: whole, MIG disabled.
struct Geometry {
  std::vector<std::pair<std::string, int>> profiles;  // ascending name
  friend bool operator==(const Geometry&, const Geometry&) = default;
};
std::string GeometryText(const Geometry& geometry);  // "3g.40gb + 2x 1g.10gb", "whole"

struct RepartitionStep {
  NodeName node;
  int gpu = 0;  // index on the node
  Geometry from;
  Geometry to;
};

// All steps of one node as its executor takes them.
struct NodeRepartition {
  NodeName node;
  std::string config_name;  // for label nvidia.com/mig.config; equal contents have equal names
  // One member of mig-parted's mig-configs, YAML without indentation, first line "<config_name>:".
  // Every GPU of the node is in it, the unchanged as they are.
  std::string config_yaml;
  std::vector<RepartitionStep> steps;
  std::vector<std::string> guards;  // why it may not be carried out now; empty: it may
};

struct RepartitionPlan {
  std::vector<NodeRepartition> nodes;  // ascending name
  int64_t waiting_served = 0;          // pods that wait and would fit after it
  int64_t expected_milli = 0;          // of the expected demand, what it would serve besides
  std::vector<std::string> notes;      // for people: what was weighed, what stands in the way
};

RepartitionPlan PlanRepartition(const AdviceCase& fleet, const RepartitionLimits& limits);

}  // namespace tranche
