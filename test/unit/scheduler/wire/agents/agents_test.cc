// Which of the agents' keys count for a pod, and which no user may set. Source: request-dialects
// sections 15, 16; hazard 57.
#include "scheduler/wire/agents/agents.h"

#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/agents/agent_cases.h"

namespace tranche::wire {
namespace THIS_FILE {

const Allocation kHalfCard = Exact({{"main", {Share(1, "GPU-b", 500, 8192)}}});

PodRequest OneAppIn(RequestStyle style) { return Asking(style, {App("main")}, {1}); }

struct AgentStyle {
  AgentKind agent;
  RequestStyle style;
  std::string_view read;  // what every amount of the grammar tells of the half card
};
constexpr AgentStyle kStyles[] = {
    {AgentKind::kHami, RequestStyle::kHami, "main: 0 GPU-b 500m 8192Mi"},
    {AgentKind::kHami, RequestStyle::kNative, "main: 0 GPU-b 500m 8192Mi"},
    {AgentKind::kFourPd, RequestStyle::kHami, "main: 0 GPU-b 500m 8192Mi"},
    {AgentKind::kVolcano, RequestStyle::kVolcano, "main: 0 GPU-b 500m 8192Mi"},
    {AgentKind::kVolcanoOld, RequestStyle::kVolcanoOld, "main: 1 - 0m 0Mi"},
    {AgentKind::kGpushare, RequestStyle::kGpushare, "main: 1 - 0m 0Mi"},
    {AgentKind::kTkestack, RequestStyle::kTkestack, "main: 1 - 0m 0Mi"},
    {AgentKind::kElastic, RequestStyle::kElastic, "main: 1 - 0m 0Mi"},
    {AgentKind::kVgpuManager, RequestStyle::kVgpuManager, "main: 1 GPU-b 500m 8192Mi"},
    {AgentKind::kKoordinator, RequestStyle::kKoordinator, "main: 1 GPU-b 500m 8192Mi"},
    {AgentKind::kKoordinator, RequestStyle::kKai, "main: 1 GPU-b 500m 8192Mi"},
    {AgentKind::kNone, RequestStyle::kOpenGpuShare, "main: 1 - 0m 0Mi"},
    {AgentKind::kNone, RequestStyle::kHived, "main: 1 - 0m 0Mi"},
};

TEST(Agents, EveryAgentsKeysAreReadBack) {
  for (const AgentStyle& style : kStyles) {
    const Texts texts = AgentAnnotations(CallOf(style.agent, 10), OneAppIn(style.style), kHalfCard);
    EXPECT_EQ(Read(texts, OneAppIn(style.style)), style.read)
        << AgentName(style.agent) << " " << StyleName(style.style);
    for (const auto& [key, value] : texts) {
      EXPECT_TRUE(IsResultKey(key)) << key;
      EXPECT_EQ(TextOf({{key, value}}).first_key(), key);
    }
  }
}

// A second set of keys, copied from a pod of another style, changes nothing.
TEST(Agents, KeysOfOtherStylesSayNothing) {
  for (const AgentStyle& style : kStyles) {
    for (const AgentStyle& other : kStyles) {
      if (Serves(other.agent, style.style)) continue;
      Texts texts = AgentAnnotations(CallOf(other.agent, 10), OneAppIn(other.style), kHalfCard);
      EXPECT_EQ(Read(texts, OneAppIn(style.style)), "nothing")
          << AgentName(other.agent) << " for " << StyleName(style.style);
      EXPECT_EQ(TextOf(texts).Progress(OneAppIn(style.style)), AgentProgress::kUnknown);
      texts.merge(AgentAnnotations(CallOf(style.agent, 10), OneAppIn(style.style), kHalfCard));
      EXPECT_EQ(Read(texts, OneAppIn(style.style)), style.read)
          << AgentName(other.agent) << " beside " << AgentName(style.agent);
    }
  }
}

TEST(Agents, AgentsThatAreNotCalledGetNothing) {
  EXPECT_TRUE(AgentAnnotations(CallOf(AgentKind::kNone), OneAppIn(RequestStyle::kNative), kHalfCard)
                  .empty());
  PodRequest without_plugin = OneAppIn(RequestStyle::kTranche);
  without_plugin.containers[0].plugin_count = 0;
  EXPECT_TRUE(AgentAnnotations(CallOf(AgentKind::kHami, 10), without_plugin, kHalfCard).empty());
  EXPECT_FALSE(
      AgentAnnotations(CallOf(AgentKind::kKoordinator), without_plugin, kHalfCard).empty());
  EXPECT_TRUE(
      AgentAnnotations(CallOf(AgentKind::kHami, 10), OneAppIn(RequestStyle::kHami), Exact({}))
          .empty());
}

// Keys copied with a pod's template name the node of the pod they come from.
TEST(Agents, KeysWrittenForAnotherNodeAreACopy) {
  struct Row {
    AgentKind agent;
    RequestStyle style;
    std::string_view key;
  };
  for (const Row& row : {
           Row{AgentKind::kHami, RequestStyle::kHami, "hami.io/vgpu-node"},
           Row{AgentKind::kFourPd, RequestStyle::kHami, "4pd.io/vgpu-node"},
           Row{AgentKind::kVolcano, RequestStyle::kVolcano, "volcano.sh/vgpu-node"},
           Row{AgentKind::kTkestack, RequestStyle::kTkestack, "tencent.com/predicate-node"},
           Row{AgentKind::kVgpuManager, RequestStyle::kVgpuManager, "nvidia.com/predicate-node"},
       }) {
    Texts texts = AgentAnnotations(CallOf(row.agent, 10), OneAppIn(row.style), kHalfCard);
    texts.at(std::string(row.key)) = "n2";
    EXPECT_EQ(Read(texts, OneAppIn(row.style)),
              fmt::format("expected the pod's node n1, found \"n2\", in {}", row.key));
  }
}

TEST(Agents, APodWithoutNodeHoldsNothing) {
  const Texts texts =
      AgentAnnotations(CallOf(AgentKind::kHami, 10), OneAppIn(RequestStyle::kHami), kHalfCard);
  const auto read = TextOf(texts).Devices(OneAppIn(RequestStyle::kHami), NodeName());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, std::nullopt);
  EXPECT_EQ(Read(texts, OneAppIn(RequestStyle::kNone)), "nothing");
}

TEST(Agents, TwoAgentsMayNotBothNameDevices) {
  Texts texts =
      AgentAnnotations(CallOf(AgentKind::kHami, 10), OneAppIn(RequestStyle::kNative), kHalfCard);
  texts.merge(AgentAnnotations(CallOf(AgentKind::kKoordinator), OneAppIn(RequestStyle::kNative),
                               kHalfCard));
  EXPECT_EQ(Read(texts, OneAppIn(RequestStyle::kNative)),
            "expected the devices of one agent, found those of hami and koordinator");
}

// A mark of success from elsewhere must not end the wait for the agent that is on its way.
TEST(Agents, ProgressIsThatOfTheOneFurthestBehind) {
  const auto progress = [](std::string_view hami, std::string_view four_pd) {
    return TextOf({{"hami.io/bind-phase", std::string(hami)},
                   {"4pd.io/bind-phase", std::string(four_pd)}})
        .Progress(OneAppIn(RequestStyle::kHami));
  };
  EXPECT_EQ(progress("success", "allocating"), AgentProgress::kWaiting);
  EXPECT_EQ(progress("allocating", "success"), AgentProgress::kWaiting);
  EXPECT_EQ(progress("failed", "success"), AgentProgress::kFailed);
  EXPECT_EQ(progress("success", "?"), AgentProgress::kServed);
}

TEST(Agents, APodThatEndedUnservedCanBeMarkedAsServed) {
  for (int kind = 0; kind < kAgentKinds; ++kind) {
    const auto agent = static_cast<AgentKind>(kind);
    EXPECT_EQ(!ServedAnnotations(agent).empty(), OutlivesItsPod(agent)) << AgentName(agent);
  }
  PodRequest request;
  request.style = RequestStyle::kVolcano;
  AgentText text;
  text.Set("volcano.sh/vgpu-time", "1700000000");
  EXPECT_EQ(text.Progress(request), AgentProgress::kWaiting);
  const auto served = ServedAnnotations(AgentKind::kVolcano);
  for (const auto& [key, value] : served) text.Set(key, value);
  EXPECT_EQ(text.Progress(request), AgentProgress::kServed);
}

TEST(Agents, LimitsKeysAndTexts) {
  AgentText many;
  std::vector<std::string> keys;
  for (int i = 0; i < 257; ++i) keys.push_back(fmt::format("elasticgpu.io/container-{}", i));
  for (const std::string& key : keys) many.Set(key, "0");
  EXPECT_EQ(many.Devices(OneAppIn(RequestStyle::kElastic), NodeName("n1")).status().message(),
            "expected at most 256 keys of node agents, found more");
  const std::string longest(64 * 1024, ';');
  const std::string problem =
      Read({{"hami.io/vgpu-devices-to-allocate", longest + ";"}}, OneAppIn(RequestStyle::kHami));
  EXPECT_TRUE(problem.starts_with("expected at most 65536 bytes, found \";;;")) << problem;
  EXPECT_EQ(Read({{"hami.io/vgpu-devices-to-allocate", longest}}, OneAppIn(RequestStyle::kHami)),
            "nothing");
}

TEST(Agents, KeepsItsOwnKeysOnlyAndTheLastOfEqualOnes) {
  AgentText text;
  text.Set("hami.io/gpu-scheduler-policy", "binpack");
  text.Set("tranche.dev/allocation", "{}");
  EXPECT_TRUE(text.empty());
  EXPECT_EQ(text.first_key(), "");
  text.Set("volcano.sh/vgpu-node", "n1");
  text.Set("hami.io/bind-phase", "allocating");
  text.Set("hami.io/bind-phase", "success");
  EXPECT_EQ(text.first_key(), "hami.io/bind-phase");
  EXPECT_EQ(text.Progress(OneAppIn(RequestStyle::kHami)), AgentProgress::kServed);
  text.Set("hami.io/bind-phase", std::nullopt);
  EXPECT_EQ(text.first_key(), "volcano.sh/vgpu-node");
}

TEST(Agents, KnowsTheKeysNoUserMaySet) {
  for (const std::string_view key : {
           "tranche.dev/allocation",
           "hami.io/vgpu-node",
           "hami.io/vgpu-devices-allocated",
           "hami.io/vgpu-mig-allocations",
           "hami.io/dcu-devices-to-allocate",
           "hami.io/Ascend910A-devices-allocated",
           "hami.sh/vgpu-devices-allocated",
           "4pd.io/devices-to-allocate",
           "volcano.sh/vgpu-ids-new",
           "volcano.sh/gpu-index",
           "volcano.sh/gpu-assigned",
           "ALIYUN_COM_GPU_MEM_IDX",
           "ALIYUN_COM_GPU_MEM_CONTAINER",
           "scheduler.framework.gpushare.allocation",
           "tencent.com/predicate-gpu-idx-0",
           "tencent.com/gpu-assigned",
           "elasticgpu.io/container-main",
           "nvidia.com/pre-allocated",
           "nvidia.com/assigned-phase",
           "scheduling.koordinator.sh/device-allocated",
           "alibabacloud.com/gpu-index",
           "hivedscheduler.microsoft.com/pod-bind-info",
           "gas-container-cards",
           "run.ai/reserve_for_gpu_index",
       }) {
    EXPECT_TRUE(IsResultKey(key)) << key;
  }
  for (const std::string_view key : {
           "tranche.dev/gpu-fraction",
           "hami.io/gpu-scheduler-policy",
           "hami.io/node-scheduler-policy",
           "hami.io/device-scoring-weights",
           "nvidia.com/use-gputype",
           "nvidia.com/vgpu-mode",
           "nvidia.com/device-scheduler-policy",
           "volcano.sh/vgpu-use-gpuuuid",
           "tencent.com/vcuda-core-limit",
           "scheduling.koordinator.sh/device-allocate-hint",
           "alibabacloud.com/gpu-milli",
           "hivedscheduler.microsoft.com/pod-scheduling-spec",
           "gpu-fraction",
           "gas-allow",
           "",
       }) {
    EXPECT_FALSE(IsResultKey(key)) << key;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
