// Which agents serve which request styles, and how many pods may be on their way to one at a time.
// Source: request-dialects sections 2, 4.4, 15.
#include "scheduler/facts/agent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace tranche {
namespace THIS_FILE {

struct Share {
  int64_t cards = 1;
  MemoryNeed memory;
  int64_t milli = 0;
};

// A pod with one container "main" that its agent's plugin is called for.
PodRequest Asking(Share share) {
  PodRequest request;
  ContainerInfo container;
  container.name = "main";
  container.plugin_count = 1;
  request.containers = {container};
  Ask ask;
  ask.resource = Resource::kShare;
  ask.count = share.cards;
  ask.memory = share.memory;
  ask.compute = MilliGpu::Of(share.milli);
  request.asks = {ask};
  return request;
}

MemoryNeed Units(int64_t value) { return {MemoryNeed::Kind::kAgentUnits, value}; }

PodRequest WithoutPlugin(PodRequest request) {
  for (ContainerInfo& container : request.containers) container.plugin_count = 0;
  return request;
}

std::string StylesOf(AgentKind agent) {
  std::string styles;
  for (int style = 0; style < kRequestStyles; ++style) {
    if (!Serves(agent, static_cast<RequestStyle>(style))) continue;
    if (!styles.empty()) styles += ' ';
    styles += StyleName(static_cast<RequestStyle>(style));
  }
  return styles;
}

TEST(Agent, ServesTheStylesItWasMadeFor) {
  struct Row {
    AgentKind agent;
    std::string_view styles;
  };
  for (const Row& row : {
           Row{AgentKind::kNone, "native tranche kai open-gpu-share hived"},
           Row{AgentKind::kHami, "native tranche hami kai open-gpu-share hived"},
           Row{AgentKind::kFourPd, "native tranche hami kai open-gpu-share hived"},
           Row{AgentKind::kVolcano, "volcano"},
           Row{AgentKind::kVolcanoOld, "volcano-gpushare"},
           Row{AgentKind::kGpushare, "gpushare"},
           Row{AgentKind::kTkestack, "tkestack"},
           Row{AgentKind::kElastic, "elastic-gpu"},
           Row{AgentKind::kVgpuManager, "vgpu-manager"},
           Row{AgentKind::kKoordinator, "native tranche kai koordinator open-gpu-share hived"},
           Row{AgentKind::kTranche, "native tranche kai open-gpu-share hived"},
       }) {
    EXPECT_EQ(StylesOf(row.agent), row.styles) << AgentName(row.agent);
  }
}

TEST(Agent, EveryStyleHasSomewhereToRunAndPodsWithoutGpusAreNoAgentsMatter) {
  for (int style = 1; style < kRequestStyles; ++style) {
    bool served = false;
    for (int agent = 0; agent < kAgentKinds; ++agent) {
      served |= Serves(static_cast<AgentKind>(agent), static_cast<RequestStyle>(style));
    }
    EXPECT_TRUE(served) << StyleName(static_cast<RequestStyle>(style));
  }
  for (int agent = 0; agent < kAgentKinds; ++agent) {
    EXPECT_FALSE(Serves(static_cast<AgentKind>(agent), RequestStyle::kNone));
  }
}

TEST(Agent, IsCalledForContainersThatAskItsPluginAndKoordletForEveryPod) {
  const PodRequest plugin = Asking({});
  const PodRequest none = WithoutPlugin(plugin);
  for (int kind = 0; kind < kAgentKinds; ++kind) {
    const auto agent = static_cast<AgentKind>(kind);
    EXPECT_EQ(CallsAgent(agent, plugin), agent != AgentKind::kNone) << AgentName(agent);
    EXPECT_EQ(CallsAgent(agent, none), agent == AgentKind::kKoordinator) << AgentName(agent);
  }
  PodRequest init_only = none;
  init_only.containers.push_back({"warm", ContainerRole::kInit, 1, {}});
  EXPECT_TRUE(CallsAgent(AgentKind::kHami, init_only));
}

TEST(Agent, TakesOnePodAtATimeOfThoseItCannotTellApart) {
  struct Row {
    AgentKind agent;
    Share share;
    std::optional<int64_t> slot;
  };
  for (const Row& row : {
           // Whatever it asks: the agent takes any pod that is on its way.
           Row{AgentKind::kHami, {1, {MemoryNeed::Kind::kMib, 3000}, 300}, 0},
           Row{AgentKind::kHami, {2, {MemoryNeed::Kind::kWholeCard, 0}, 1000}, 0},
           Row{AgentKind::kFourPd, {4, {}, 0}, 0},
           Row{AgentKind::kVgpuManager, {2, Units(20), 500}, 0},
           // By the cores of a container, whatever the pod asks in all.
           Row{AgentKind::kTkestack, {1, Units(16), 300}, 0},
           Row{AgentKind::kTkestack, {2, {}, 1000}, 0},
           // By the number of devices.
           Row{AgentKind::kVolcano, {1, Units(4000), 300}, 1},
           Row{AgentKind::kVolcano, {1, Units(8000), 0}, 1},
           Row{AgentKind::kVolcano, {3, Units(4000), 300}, 3},
           // By the amount of memory.
           Row{AgentKind::kGpushare, {1, Units(8), 0}, 8},
           Row{AgentKind::kGpushare, {1, Units(2000), 0}, 2000},
           Row{AgentKind::kVolcanoOld, {1, Units(1024), 0}, 1024},
           // They know the pod, or nobody is called.
           Row{AgentKind::kElastic, {1, {}, 500}, std::nullopt},
           Row{AgentKind::kKoordinator, {1, {}, 500}, std::nullopt},
           Row{AgentKind::kTranche, {1, {}, 1000}, std::nullopt},
           Row{AgentKind::kNone, {1, {}, 500}, std::nullopt},
       }) {
    const PodRequest request = Asking(row.share);
    EXPECT_EQ(SlotOf(row.agent, request), row.slot) << AgentName(row.agent);
    EXPECT_EQ(SlotOf(row.agent, WithoutPlugin(request)), std::nullopt) << AgentName(row.agent);
  }
}

TEST(Agent, HamiGoesByALockOnTheNodeFromMinorNineOn) {
  for (const int minor : {4, 7, 8}) EXPECT_FALSE(NeedsNodeLock(AgentKind::kHami, minor)) << minor;
  for (const int minor : {9, 10, 11}) EXPECT_TRUE(NeedsNodeLock(AgentKind::kHami, minor)) << minor;
  for (int kind = 0; kind < kAgentKinds; ++kind) {
    const auto agent = static_cast<AgentKind>(kind);
    EXPECT_EQ(NeedsNodeLock(agent, 10), agent == AgentKind::kHami) << AgentName(agent);
  }
}

// Volcano's plugin lists the pods of the whole cluster and does not look at their phase.
TEST(Agent, OnlyVolcanosServesPodsThatHaveEnded) {
  for (int kind = 0; kind < kAgentKinds; ++kind) {
    const auto agent = static_cast<AgentKind>(kind);
    EXPECT_EQ(OutlivesItsPod(agent), agent == AgentKind::kVolcano) << AgentName(agent);
  }
}

TEST(Agent, HasANameOfItsOwn) {
  std::set<std::string_view> agents;
  for (int kind = 0; kind < kAgentKinds; ++kind) {
    agents.insert(AgentName(static_cast<AgentKind>(kind)));
  }
  EXPECT_EQ(agents.size(), static_cast<std::size_t>(kAgentKinds));
  std::set<std::string_view> styles;
  for (int style = 0; style < kRequestStyles; ++style) {
    styles.insert(StyleName(static_cast<RequestStyle>(style)));
  }
  EXPECT_EQ(styles.size(), static_cast<std::size_t>(kRequestStyles));
  for (const std::string_view name : {"hami", "4pd", "volcano", "gpushare", "koordinator"}) {
    EXPECT_TRUE(agents.contains(name)) << name;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
