#include <algorithm>
#include <numeric>

#include "test/kubelet/cases/node_state.h"

namespace tranche::test {

NodeState Draw::Machine() {
  NodeState node;
  node.tells = OneIn(2) ? NodeTells::kCounts : OneIn(3) ? NodeTells::kMatrix : NodeTells::kProbe;
  NumaNodes(node);
  Gpus(node);
  return node;
}

// One to eight, as many as a kubelet takes unless it is told otherwise. Numbers have gaps on some
// machines. Those whose GPUs' memory is NUMA nodes of its own have dozens without any GPU.
void Draw::NumaNodes(NodeState& node) {
  const bool many = OneIn(25);
  const int count = many ? Between(9, 36) : Between(1, 8);
  const int step = !many && OneIn(10) ? Between(2, 8) : 1;
  for (int i = 0; i < count; ++i) node.numa_nodes.push_back(i * step);
}

void Draw::Gpus(NodeState& node) {
  const int zones = static_cast<int>(node.numa_nodes.size());
  const int with_gpus = zones > 8 ? Between(1, 4) : Between(1, zones);
  std::vector<int> order(node.numa_nodes);
  std::shuffle(order.begin(), order.end(), random_);
  order.resize(static_cast<std::size_t>(with_gpus));
  std::sort(order.begin(), order.end());
  const int each = Between(1, 8);
  const bool even = OneIn(2);
  std::vector<int> numas;
  for (const int zone : order) {
    const int here = even ? each : Between(1, each);
    numas.insert(numas.end(), static_cast<std::size_t>(here), zone);
  }
  // Virtual machines often know no NUMA node of their GPUs; that some are known is rare. Where one
  // NUMA node is all there is, a policy gives no mask, and GPUs of none are mixed in at random.
  const int unknown = Below(20);
  for (int& numa : numas) {
    if (unknown == 0 || (unknown == 1 && zones > 1 && OneIn(4))) numa = kNoNuma;
  }
  // What Tranche works out of links takes long for machines that are larger than any there is.
  const bool counts = node.tells == NodeTells::kCounts;
  const std::size_t most = node.tells == NodeTells::kMatrix ? 8 : counts && OneIn(5) ? 64 : 16;
  if (OneIn(2) || numas.size() > most) std::shuffle(numas.begin(), numas.end(), random_);
  if (numas.size() > most) numas.resize(most);
  for (std::size_t i = 0; i < numas.size(); ++i) {
    node.gpus.push_back({"GPU-" + std::to_string(i), numas[i]});
  }
}

void Draw::Occupy(NodeState& node) {
  node.running.clear();
  std::vector<int> free(node.gpus.size());
  std::iota(free.begin(), free.end(), 0);
  if (!OneIn(3)) std::shuffle(free.begin(), free.end(), random_);
  int taken = Below(static_cast<int>(free.size()) + 1);
  if (OneIn(4)) taken = 0;
  while (taken > 0) {
    const int size = std::min(taken, OneIn(2) ? 1 : Between(1, 4));
    RunningPod pod;
    pod.name = node.name + "-running-" + std::to_string(node.running.size());
    pod.gpus.assign(free.end() - size, free.end());
    free.resize(free.size() - static_cast<std::size_t>(size));
    node.running.push_back(std::move(pod));
    taken -= size;
  }
}

// Small ones are what pods ask for; large ones are where NUMA nodes are not enough.
int Draw::Size(int most) {
  if (most <= 1 || OneIn(4)) return 1;
  return OneIn(2) ? Between(1, std::min(most, 4)) : Between(1, most);
}

DrawnPod Draw::Pod(const NodeState& node) {
  using Role = DrawnContainer::Role;
  int free = static_cast<int>(node.gpus.size());
  for (const RunningPod& pod : node.running) free -= static_cast<int>(pod.gpus.size());
  // A few ask for more than is left, and are refused for that.
  const int most = OneIn(30) ? static_cast<int>(node.gpus.size()) + 1 : std::max(free, 1);
  DrawnPod pod;
  const int before = OneIn(3) ? Between(1, 3) : 0;
  const int apps = OneIn(2) ? 1 : Between(1, 4);
  int left = most;
  for (int i = 0; i < before + apps; ++i) {
    DrawnContainer container;
    if (i < before) container.role = OneIn(3) ? Role::kSidecar : Role::kInit;
    const bool asks = !OneIn(4) && left > 0;
    if (asks) container.gpus = Size(left);
    if (container.role != Role::kInit) left -= container.gpus;
    pod.push_back(container);
  }
  const bool none = std::ranges::all_of(pod, [](const auto& one) { return one.gpus == 0; });
  if (none) pod.back().gpus = Size(most);
  return pod;
}

}  // namespace tranche::test
