// Results of open-gpu-share and HiveD, which no agent reads. Source: request-dialects section 13.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/agents/agent_cases.h"

namespace tranche::wire {
namespace THIS_FILE {

PodRequest WithoutPlugin(RequestStyle style, const std::vector<int64_t>& counts) {
  std::vector<ContainerInfo> containers;
  for (std::size_t i = 0; i < counts.size(); ++i) containers.push_back(App(fmt::format("c{}", i)));
  PodRequest request = Asking(style, containers, counts);
  for (ContainerInfo& container : request.containers) container.plugin_count = 0;
  return request;
}

TEST(OpenGpuShare, WritesIndexAndTimeOnWhateverNode) {
  const PodRequest request = WithoutPlugin(RequestStyle::kOpenGpuShare, {3});
  for (const AgentKind agent : {AgentKind::kNone, AgentKind::kHami}) {
    const Texts texts = AgentAnnotations(
        CallOf(agent, 10), request,
        Exact({{"c0", {Share(2, "", 500, 1), Share(3, "", 500, 1), Share(4, "", 500, 1)}}}));
    EXPECT_EQ(texts, (Texts{{"alibabacloud.com/gpu-index", "2-3-4"},
                            {"alibabacloud.com/assume-time", "1767323045000000007"}}));
    EXPECT_EQ(Read(texts, request), "c0: 2 - 0m 0Mi, 3 - 0m 0Mi, 4 - 0m 0Mi");
    EXPECT_EQ(TextOf(texts).Progress(request), AgentProgress::kUnknown);
  }
}

TEST(OpenGpuShare, MayNameACardForEachUnitItGives) {
  const PodRequest request = WithoutPlugin(RequestStyle::kOpenGpuShare, {2, 1});
  const Texts texts = AgentAnnotations(
      CallOf(AgentKind::kNone), request,
      Exact({{"c0", {Share(1, "", 500, 1), Share(0, "", 500, 1)}}, {"c1", {Share(1, "", 9, 1)}}}));
  EXPECT_EQ(texts.at("alibabacloud.com/gpu-index"), "1-0-1");
  EXPECT_EQ(Read(texts, request), "c0: 1 - 0m 0Mi, 0 - 0m 0Mi; c1: 1 - 0m 0Mi");
  EXPECT_EQ(Read({{"alibabacloud.com/gpu-index", "2-"}}, request),
            "expected a card from 0 to 63, found \"\", in alibabacloud.com/gpu-index");
  EXPECT_EQ(Read({{"alibabacloud.com/gpu-index", "2-3"}}, request),
            "expected 3 devices as asked for, found 2, in alibabacloud.com/gpu-index");
}

// A node agent that is told of every pod gets its own keys beside those of the style.
TEST(OpenGpuShare, StandsBesideKoordletsList) {
  const PodRequest request = WithoutPlugin(RequestStyle::kOpenGpuShare, {1});
  const Texts texts = AgentAnnotations(CallOf(AgentKind::kKoordinator), request,
                                       Exact({{"c0", {Share(2, "GPU-c", 500, 8192)}}}));
  EXPECT_EQ(texts.size(), 3U);
  EXPECT_EQ(Read(texts, request), "c0: 2 GPU-c 500m 8192Mi");
}

TEST(Hived, WritesTheIsolationAndWhatRestoresThePod) {
  const PodRequest request = WithoutPlugin(RequestStyle::kHived, {2});
  const Texts texts =
      AgentAnnotations(CallOf(AgentKind::kNone), request,
                       Exact({{"c0", {Share(1, "", 1000, 1), Share(0, "", 1000, 1)}}}));
  EXPECT_EQ(texts, (Texts{{"hivedscheduler.microsoft.com/pod-leaf-cell-isolation", "0,1"},
                          {"hivedscheduler.microsoft.com/pod-gpu-isolation", "0,1"},
                          {"hivedscheduler.microsoft.com/pod-bind-info",
                           "node: \"n1\"\n"
                           "leafCellIsolation: [0, 1]\n"
                           "affinityGroupBindInfo:\n"
                           "- podPlacements:\n"
                           "  - physicalNode: \"n1\"\n"
                           "    physicalLeafCellIndices: [0, 1]\n"}}));
  EXPECT_EQ(Read(texts, request), "c0: 0 - 0m 0Mi, 1 - 0m 0Mi");
}

TEST(Hived, ReadsTheKeyOfItsFirstVersionsToo) {
  const PodRequest request = WithoutPlugin(RequestStyle::kHived, {1});
  EXPECT_EQ(Read({{"hivedscheduler.microsoft.com/pod-gpu-isolation", "5"}}, request),
            "c0: 5 - 0m 0Mi");
  EXPECT_EQ(Read({{"hivedscheduler.microsoft.com/pod-gpu-isolation", "5,x"}}, request),
            "expected a card from 0 to 63, found \"x\", in "
            "hivedscheduler.microsoft.com/pod-gpu-isolation");
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
