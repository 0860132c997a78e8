// Which pods of several containers a kubelet with a Topology Manager would refuse.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "scheduler/index/node_state.h"
#include "scheduler/index/placement.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using test::WholePod;

// NUMA nodes as GPUs in all and free, of which one must hold all that is aligned.
NodeZones Zones(const std::vector<std::pair<int, int>>& capacity_available, NumaScope scope) {
  NodeZones zones;
  zones.policy = NumaPolicy::kSingleNode;
  zones.scope = scope;
  for (const auto& [capacity, available] : capacity_available) {
    ZoneCounts zone;
    zone.zone = static_cast<int>(zones.zones.size());
    zone.gpus_capacity = capacity;
    zone.gpus_available = available;
    zone.cpus_capacity = zone.cpus_available = MilliCpu::Of(32'000);
    zones.zones.push_back(zone);
  }
  return zones;
}

Reason Try(const NodeFacts& facts, const PodRequest& pod) {
  NodeState state;
  state.SetFacts(facts, 0);
  state.SetUnshown(0);
  const GpuPolicy policy;
  const PlaceRules rules{&policy};
  Picks picks;
  return Placer().Place(state.inventory(), state.hard(), pod, rules, picks);
}

PodRequest InTurn(const std::vector<std::pair<ContainerRole, int>>& containers, int all) {
  PodRequest pod = WholePod("p", 1);
  const Ask ask = pod.asks[0];
  pod.containers.clear();
  pod.asks.clear();
  for (const auto& [role, gpus] : containers) {
    pod.containers.push_back({fmt::format("c{}", pod.containers.size()), role, gpus});
    pod.asks.push_back(ask);
    pod.asks.back().container = static_cast<int>(pod.containers.size()) - 1;
    pod.asks.back().count = gpus;
  }
  pod.pool_needs[0].count = all;
  return pod;
}

// Found by the kubelet's own code (test/kubelet).
TEST(NumaTurns, TheKubeletAlignsContainersInTurnAndInitContainersAlone) {
  using Role = ContainerRole;
  struct Row {
    const char* what;
    NumaScope scope;
    std::vector<std::pair<int, int>> zones;
    std::vector<std::pair<ContainerRole, int>> containers;
    int all;
    bool fits;
  };
  for (const Row& row : std::vector<Row>{
           {"two pairs of three and one",
            NumaScope::kContainer,
            {{3, 3}, {1, 1}},
            {{Role::kApp, 2}, {Role::kApp, 2}},
            4,
            false},
           {"an init container alone",
            NumaScope::kContainer,
            {{2, 2}, {2, 2}},
            {{Role::kInit, 3}},
            3,
            false},
           {"an init container alone that fits",
            NumaScope::kContainer,
            {{2, 2}, {2, 2}},
            {{Role::kInit, 2}},
            2,
            true},
           {"an init container beside a sidecar",
            NumaScope::kPod,
            {{4, 4}, {4, 4}},
            {{Role::kSidecar, 2}, {Role::kInit, 3}},
            5,
            false},
           {"an init container before a sidecar",
            NumaScope::kPod,
            {{4, 4}, {4, 4}},
            {{Role::kInit, 3}, {Role::kSidecar, 2}},
            3,
            true},
           {"GPUs of no NUMA node",
            NumaScope::kContainer,
            {{0, 0}, {0, 0}},
            {{Role::kApp, 4}},
            4,
            true},
           {"some of no NUMA node",
            NumaScope::kContainer,
            {{2, 2}, {1, 1}},
            {{Role::kApp, 2}},
            2,
            true},
           {"more than the known ones",
            NumaScope::kContainer,
            {{2, 2}, {1, 1}},
            {{Role::kApp, 3}},
            3,
            false},
       }) {
    NodeFacts facts = test::StockNode("n", 8, "NVIDIA-A40", 46068);
    facts.zones = Zones(row.zones, row.scope);
    const PodRequest pod = InTurn(row.containers, row.all);
    EXPECT_EQ(Try(facts, pod), row.fits ? Reason::kNone : Reason::kNumaMismatch) << row.what;
  }
}

// Its plugin names no NUMA node, whatever its register tells of them.
TEST(NumaTurns, TheKubeletAlignsNoGpusOfOurOwnAgent) {
  NodeFacts facts = test::HamiNode("n", 8);
  facts.zones = Zones({{0, 0}, {0, 0}}, NumaScope::kContainer);
  EXPECT_EQ(Try(facts, WholePod("p", 5)), Reason::kNumaMismatch) << "another agent's may tell";
  facts.agent->kind = AgentKind::kTranche;
  EXPECT_EQ(Try(facts, WholePod("p", 5)), Reason::kNone);
}

}  // namespace THIS_FILE
}  // namespace tranche
