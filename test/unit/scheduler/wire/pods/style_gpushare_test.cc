// gpushare's resource. Source: request-dialects section 7.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

TEST(PodGpushare, OneContainerTakesAPartOfOneCard) {
  struct Row {
    std::string spec;
    std::string_view text;
  };
  for (const Row& row : {
           Row{OneContainer(R"("aliyun.com/gpu-mem":8)"), "main: 1 share of 8 units and 0 milli"},
           Row{OneContainer(R"("aliyun.com/gpu-mem":"16276")"),
               "main: 1 share of 16276 units and 0 milli"},
           Row{Containers({R"("cpu":1)", R"("aliyun.com/gpu-mem":3)"}),
               "b: 1 share of 3 units and 0 milli"},
           Row{OneContainer(R"("aliyun.com/gpu-mem":0)"), "nothing"},
           // The agent would find no pod for either container.
           Row{Containers({R"("aliyun.com/gpu-mem":3)", R"("aliyun.com/gpu-mem":5)"}),
               "expected one container with aliyun.com/gpu-mem, found \"a\" and \"b\", in the pod: "
               "the agent is called for each container and looks for a pod whose total is what the "
               "container asks for"},
           Row{InitContainer(R"("aliyun.com/gpu-mem":3)"),
               "expected no GPUs in init containers, which the agent does not serve, found \"3\", "
               "in \"aliyun.com/gpu-mem\" of container \"i\""},
           Row{OneContainer(R"("aliyun.com/gpu-mem":"7500m")"),
               "expected whole number from 0 to 2147483648, found \"7500m\", in "
               "\"aliyun.com/gpu-mem\" of container \"main\""},
           Row{OneContainer(R"("aliyun.com/gpu-mem":-1)"),
               "expected whole number from 0 to 2147483648, found \"-1\", in "
               "\"aliyun.com/gpu-mem\" of container \"main\""},
       }) {
    EXPECT_EQ(FullText(RequestOf("", row.spec)), row.text) << row.spec;
  }
}

TEST(PodGpushare, WhatItsAgentCannotServeIsTheAgentsReason) {
  const PodRequest two =
      RequestOf("", Containers({R"("aliyun.com/gpu-mem":3)", R"("aliyun.com/gpu-mem":5)"}));
  ASSERT_TRUE(two.refusal);
  EXPECT_EQ(Describe(two.refusal->reason).code, "AgentCannotServe");
  const PodRequest init = RequestOf("", InitContainer(R"("aliyun.com/gpu-mem":3)"));
  ASSERT_TRUE(init.refusal);
  EXPECT_EQ(Describe(init.refusal->reason).code, "AgentCannotServe");
  const PodRequest bad = RequestOf("", OneContainer(R"("aliyun.com/gpu-mem":-1)"));
  ASSERT_TRUE(bad.refusal);
  EXPECT_EQ(Describe(bad.refusal->reason).code, "BadAmount");
}

TEST(PodGpushare, KubeletAsksForEveryUnit) {
  const PodRequest request = RequestOf("", OneContainer(R"("aliyun.com/gpu-mem":8)"));
  EXPECT_EQ(request.style, RequestStyle::kGpushare);
  EXPECT_EQ(request.containers.at(0).plugin_count, 8);
  EXPECT_EQ(PoolText(request), "aliyun.com/gpu-mem 8");
  EXPECT_EQ(SlotOf(AgentKind::kGpushare, request), 8);
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
