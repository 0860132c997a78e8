// The examples of scheduler/docs/request-styles.md: the same half GPU in every style.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "policy/decode.h"
#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

// The card of the examples, as the agents count it in the units of the examples.
constexpr int64_t kCardMib = 81'920;

struct Example {
  RequestStyle style;
  std::string_view annotations;
  std::string_view limits;
  int64_t unit_mib = 1;  // of MemoryNeed::Kind::kAgentUnits
  // What it comes to; zero: the style has no word for it.
  int64_t milli = 500;
  int64_t mib = kCardMib / 2;
};

constexpr std::array kExamples = {
    Example{RequestStyle::kTranche, R"("tranche.dev/gpu-fraction":"0.5")", ""},
    Example{RequestStyle::kTranche, R"("tranche.dev/gpu-memory":"40960")", "", 1, 0},
    Example{RequestStyle::kHami, "",
            R"("nvidia.com/gpu":1,"nvidia.com/gpumem":40960,"nvidia.com/gpucores":50)"},
    Example{RequestStyle::kHami, "",
            R"("nvidia.com/gpu":1,"nvidia.com/gpumem-percentage":50,"nvidia.com/gpucores":50)"},
    Example{RequestStyle::kVolcano, "",
            R"("volcano.sh/vgpu-number":1,"volcano.sh/vgpu-memory":40960,
               "volcano.sh/vgpu-cores":50)"},
    Example{RequestStyle::kVolcano, "",
            R"("volcano.sh/vgpu-number":1,"volcano.sh/vgpu-memory-percentage":50,
               "volcano.sh/vgpu-cores":50)"},
    Example{RequestStyle::kVolcanoOld, "", R"("volcano.sh/gpu-memory":40960)", 1, 0},
    Example{RequestStyle::kGpushare, "", R"("aliyun.com/gpu-mem":40)", 1024, 0},
    Example{RequestStyle::kTkestack, "",
            R"("tencent.com/vcuda-core":50,"tencent.com/vcuda-memory":160)", 256},
    Example{RequestStyle::kElastic, "", R"("elasticgpu.io/gpu-core":50)", 1, 500, 0},
    Example{RequestStyle::kElastic, "", R"("elasticgpu.io/gpu-memory":40960)", 1, 0},
    Example{RequestStyle::kVgpuManager, "",
            R"("nvidia.com/vgpu-number":1,"nvidia.com/vgpu-cores":50,
               "nvidia.com/vgpu-memory":40960)"},
    Example{RequestStyle::kKai, R"("gpu-fraction":"0.5")", ""},
    Example{RequestStyle::kKai, R"("gpu-memory":"40960")", "", 1, 0},
    Example{RequestStyle::kKoordinator, "", R"("koordinator.sh/gpu":50)"},
    Example{RequestStyle::kKoordinator, "",
            R"("koordinator.sh/gpu-core":50,"koordinator.sh/gpu-memory":"40Gi")"},
    Example{RequestStyle::kOpenGpuShare, R"("alibabacloud.com/gpu-milli":"500")", ""},
};

int64_t MibOf(const MemoryNeed& memory, int64_t unit_mib) {
  switch (memory.kind) {
    case MemoryNeed::Kind::kNone:
      return 0;
    case MemoryNeed::Kind::kWholeCard:
      return kCardMib;
    case MemoryNeed::Kind::kMib:
      return memory.value;
    case MemoryNeed::Kind::kMilliOfCard:
      return kCardMib * memory.value / 1000;
    case MemoryNeed::Kind::kPercentOfCard:
      return kCardMib * memory.value / 100;
    case MemoryNeed::Kind::kAgentUnits:
      return memory.value * unit_mib;
  }
  return -1;
}

TEST(RequestStyles, HalfAGpuIsTheSameInEveryStyle) {
  for (const Example& example : kExamples) {
    const std::string where =
        fmt::format("{} {}{}", StyleName(example.style), example.annotations, example.limits);
    const PodRequest request = RequestOf(example.annotations, OneContainer(example.limits));
    EXPECT_FALSE(request.refusal.has_value()) << where << FullText(request);
    EXPECT_EQ(request.style, example.style) << where;
    ASSERT_EQ(request.asks.size(), 1u) << where;
    const Ask& ask = request.asks[0];
    EXPECT_EQ(ask.resource, Resource::kShare) << where;
    EXPECT_EQ(ask.count, 1) << where;
    EXPECT_EQ(ask.compute.count(), example.milli) << where;
    EXPECT_EQ(MibOf(ask.memory, example.unit_mib), example.mib) << where;
    EXPECT_FALSE(ask.exclusive) << where;
  }
}

// Styles without fractions: devices that stand for a half, or nothing less than a GPU.
TEST(RequestStyles, OthersNameDevices) {
  EXPECT_EQ(FullText(RequestOf("", OneContainer(R"("nvidia.com/gpu.shared":1)"))),
            "main: 1 gpu.shared");
  EXPECT_EQ(FullText(RequestOf("", OneContainer(R"("nvidia.com/mig-3g.40gb":1)"))),
            "main: 1 3g.40gb");
  EXPECT_EQ(FullText(RequestOf(
                R"("hivedscheduler.microsoft.com/pod-scheduling-spec":"leafCellNumber: 1")",
                OneContainer(R"("hivedscheduler.microsoft.com/pod-scheduling-enable":1)"))),
            "main: 1 gpu");
}

TEST(RequestStyles, EveryStyleHasAnExampleAndAName) {
  std::set<RequestStyle> shown = {RequestStyle::kNone, RequestStyle::kNative, RequestStyle::kHived};
  for (const Example& example : kExamples) shown.insert(example.style);
  EXPECT_EQ(shown.size(), static_cast<std::size_t>(kRequestStyles));
}

// A policy may name every style, by the name the engine compares.
TEST(RequestStyles, PoliciesNameThemAll) {
  std::string names;
  std::vector<std::string> expected;
  for (int i = 1; i < kRequestStyles; ++i) {
    expected.emplace_back(StyleName(static_cast<RequestStyle>(i)));
    names += fmt::format("{}\"{}\"", i == 1 ? "" : ",", expected.back());
  }
  const auto policy = DecodeGpuPolicy(
      fmt::format(R"({{"metadata":{{"name":"default"}},"spec":{{"dialects":[{}]}}}})", names),
      GpuPolicy{});
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ(policy->dialects, expected);
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
