// A random node as its kubelet knows it: GPUs, their NUMA nodes, who holds them, and a pod that
// comes. The objects are what a cluster's API would show of it.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tranche::test {

inline constexpr int kNoNuma = -1;  // the device plugin names no NUMA node for the GPU

struct NodeGpu {
  std::string id;
  int numa = kNoNuma;
};

struct RunningPod {
  std::string name;
  std::vector<int> gpus;  // positions in NodeState::gpus
};

// What else the node says of itself, beside the counts of its NUMA nodes.
enum class NodeTells { kCounts, kProbe, kMatrix };

struct NodeState {
  std::string name;
  std::vector<int> numa_nodes;  // ascending numbers; not all have GPUs
  std::vector<NodeGpu> gpus;
  std::vector<RunningPod> running;
  NodeTells tells = NodeTells::kCounts;
};

struct DrawnContainer {
  enum class Role { kInit, kSidecar, kApp };
  Role role = Role::kApp;
  int gpus = 0;
};

// Init containers and sidecars in their order, then app containers; some container asks for a GPU.
using DrawnPod = std::vector<DrawnContainer>;

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  NodeState Machine();           // nobody runs there
  void Occupy(NodeState& node);  // other pods than before
  DrawnPod Pod(const NodeState& node);

 private:
  int Below(int bound) { return static_cast<int>(random_() % static_cast<uint64_t>(bound)); }
  int Between(int least, int most) { return least + Below(most - least + 1); }
  bool OneIn(int many) { return Below(many) == 0; }
  void NumaNodes(NodeState& node);
  void Gpus(NodeState& node);
  int Size(int most);

  std::mt19937_64 random_;
};

// Whether a running pod holds a GPU of no NUMA node on a node that has others. What is exported
// counts NUMA nodes alone and cannot show it.
bool HidesGpus(const NodeState& node);

std::string NodeObject(const NodeState& node);
std::string ZonesObject(const NodeState& node, const std::string& policy, const std::string& scope);
std::string RunningObject(const NodeState& node, const RunningPod& pod);
std::string PodObject(const std::string& name, const DrawnPod& pod);

}  // namespace tranche::test
