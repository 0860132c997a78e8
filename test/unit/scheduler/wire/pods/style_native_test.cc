// Native resources. Source: request-dialects section 14, node-inventory section 1.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

TEST(PodNative, ReadsWholeSharedAndMig) {
  struct Row {
    std::string_view limits;
    std::string_view asks;
    std::string_view pools;
  };
  for (const Row& row : {
           Row{R"("cpu":"1")", "nothing", ""},
           Row{R"("nvidia.com/gpu":"2")", "main: 2 gpu", "nvidia.com/gpu 2"},
           Row{R"("nvidia.com/gpu":2)", "main: 2 gpu", "nvidia.com/gpu 2"},
           Row{R"("nvidia.com/gpu":2e0)", "main: 2 gpu", "nvidia.com/gpu 2"},
           Row{R"("nvidia.com/gpu":"4000m")", "main: 4 gpu", "nvidia.com/gpu 4"},
           Row{R"("nvidia.com/gpu":"1k")", "main: 1000 gpu", "nvidia.com/gpu 1000"},
           Row{R"("nvidia.com/gpu":"0")", "nothing", ""},
           Row{R"("nvidia.com/gpu":null)", "nothing", ""},
           Row{R"("nvidia.com/gpu":"8","nvidia.com/gpu":"1")", "main: 1 gpu", "nvidia.com/gpu 1"},
           Row{R"("nvidia.com/gpu":"8","nvidia.com/gpu":null)", "nothing", ""},
           Row{R"("nvidia.com/gpu.shared":"1")", "main: 1 gpu.shared", "nvidia.com/gpu.shared 1"},
           Row{R"("nvidia.com/mig-1g.5gb":"3")", "main: 3 1g.5gb", "nvidia.com/mig-1g.5gb 3"},
           Row{R"("nvidia.com/mig-1g.5gb.shared":"3")", "main: 3 1g.5gb shared",
               "nvidia.com/mig-1g.5gb.shared 3"},
           Row{R"("nvidia.com/mig-1g.10gb.me":"1")", "main: 1 1g.10gb+me",
               "nvidia.com/mig-1g.10gb.me 1"},
           Row{R"("nvidia.com/mig-3g.20gb":"1","nvidia.com/mig-1g.5gb":"2")",
               "main: 2 1g.5gb; main: 1 3g.20gb",
               "nvidia.com/mig-1g.5gb 2; nvidia.com/mig-3g.20gb 1"},
           Row{R"("nvidia.com/mig-1g.5gb":"2","nvidia.com/gpu":"1")", "main: 1 gpu; main: 2 1g.5gb",
               "nvidia.com/gpu 1; nvidia.com/mig-1g.5gb 2"},
           Row{R"("nvidia.com/mig-2g.77gb":"1")", "main: 1 2g.77gb", "nvidia.com/mig-2g.77gb 1"},
           Row{R"("nvidia.com/gpu":"2147483648")", "main: 2147483648 gpu",
               "nvidia.com/gpu 2147483648"},
       }) {
    const PodRequest request = RequestOf("", OneContainer(row.limits));
    EXPECT_EQ(RequestText(request), row.asks) << row.limits;
    EXPECT_EQ(PoolText(request), row.pools) << row.limits;
  }
}

TEST(PodNative, RefusesAmountsThatAreNoneAndQuotesThem) {
  struct Row {
    std::string_view amount;
    std::string_view quoted;
  };
  for (const Row& row : {
           Row{R"("-1")", "\"-1\""},
           Row{"-1", "\"-1\""},
           Row{R"("1.5")", "\"1.5\""},
           Row{"1.5", "\"1.5\""},
           Row{R"("500m")", "\"500m\""},
           Row{R"("1K")", "\"1K\""},
           Row{R"("")", "\"\""},
           Row{R"("one")", "\"one\""},
           Row{R"(" 1")", "\" 1\""},
           Row{R"("2147483649")", "\"2147483649\""},
           Row{R"("9223372036854775808")", "\"9223372036854775808\""},
           Row{"9223372036854775808", "\"9223372036854775808\""},
           Row{"1e300", "\"1e+300\""},
       }) {
    const PodRequest request =
        RequestOf("", OneContainer(fmt::format(R"("nvidia.com/gpu":{})", row.amount)));
    ASSERT_EQ(RequestText(request), "refused BadAmount") << row.amount;
    EXPECT_NE(request.refusal->detail.find(row.quoted), std::string::npos)
        << request.refusal->detail;
    EXPECT_NE(request.refusal->detail.find("nvidia.com/gpu"), std::string::npos);
    EXPECT_NE(request.refusal->detail.find("\"main\""), std::string::npos);
    EXPECT_TRUE(request.asks.empty());
    EXPECT_EQ(request.style, RequestStyle::kNative);
  }
}

TEST(PodNative, LimitsWinAndRequestsFillInAndBothMustAgree) {
  struct Row {
    std::string_view resources;
    std::string_view asks;
  };
  for (const Row& row : {
           Row{R"("limits":{"nvidia.com/gpu":"2"})", "main: 2 gpu"},
           Row{R"("requests":{"nvidia.com/gpu":"2"})", "main: 2 gpu"},
           Row{R"("limits":{"cpu":"1"},"requests":{"nvidia.com/gpu":"2"})", "main: 2 gpu"},
           Row{R"("limits":{"nvidia.com/gpu":"4"},"requests":{"nvidia.com/gpu":"4000m"})",
               "main: 4 gpu"},
           Row{R"("limits":{"nvidia.com/gpu":"2"},"requests":{"nvidia.com/gpu":"1"})",
               "refused BadAmount"},
           Row{R"("limits":{"nvidia.com/gpu":"0"},"requests":{"nvidia.com/gpu":"1"})",
               "refused BadAmount"},
           Row{R"("limits":{"nvidia.com/gpu":"1"},"requests":{"nvidia.com/gpu":"x"})",
               "refused BadAmount"},
           Row{R"("limits":{"nvidia.com/gpu":"1"},"requests":{"nvidia.com/mig-1g.5gb":"1"})",
               "main: 1 gpu; main: 1 1g.5gb"},
           Row{R"("limits":null,"requests":null)", "nothing"},
       }) {
    const PodRequest request = RequestOf(
        "", fmt::format(R"("containers":[{{"name":"main","resources":{{{}}}}}])", row.resources));
    EXPECT_EQ(RequestText(request), row.asks) << row.resources;
  }
  const PodRequest differing =
      RequestOf("", R"("containers":[{"name":"main","resources":)"
                    R"({"limits":{"nvidia.com/gpu":"2"},"requests":{"nvidia.com/gpu":"1"}}}])");
  EXPECT_EQ(differing.refusal->detail,
            "expected requests equal to limits, found requests \"1\" and limits \"2\", in "
            "\"nvidia.com/gpu\" of container \"main\"");
}

TEST(PodNative, RefusesProfilesNoBoardCanHave) {
  for (const std::string_view tail : {"banana", "9g.5gb", "0g.5gb", "1g.gb", "", "1g.5gb."}) {
    const PodRequest request =
        RequestOf("", OneContainer(fmt::format(R"("nvidia.com/mig-{}":"1")", tail)));
    ASSERT_EQ(RequestText(request), "refused UnknownProfile") << tail;
    EXPECT_NE(request.refusal->detail.find("\"nvidia.com/mig-" + std::string(tail) + "\""),
              std::string::npos);
  }
  EXPECT_EQ(RequestText(RequestOf("", OneContainer(R"("nvidia.com/mig-banana":"0")"))), "nothing");
}

TEST(PodNative, KeepsEveryContainersAskApart) {
  const PodRequest request = RequestOf(
      "", R"("initContainers":[{"name":"warm","resources":{"limits":{"nvidia.com/gpu":1}}},)"
          R"({"name":"log","restartPolicy":"Always"}],)"
          R"("containers":[{"name":"a"},{"name":"b","resources":{"limits":{"nvidia.com/gpu":4}}}],)"
          R"("ephemeralContainers":[{"name":"e","resources":{"limits":{"nvidia.com/gpu":9}}}])");
  EXPECT_EQ(RequestText(request), "warm: 1 gpu; b: 4 gpu");
  ASSERT_EQ(request.containers.size(), 4u);
  EXPECT_EQ(request.containers[0].role, ContainerRole::kInit);
  EXPECT_EQ(request.containers[0].plugin_count, 1);
  EXPECT_EQ(request.containers[1].role, ContainerRole::kSidecar);
  EXPECT_EQ(request.containers[2].plugin_count, 0);
  EXPECT_EQ(request.containers[3].role, ContainerRole::kApp);
  EXPECT_EQ(request.containers[3].plugin_count, 4);
  EXPECT_EQ(PoolText(request), "nvidia.com/gpu 4");
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
