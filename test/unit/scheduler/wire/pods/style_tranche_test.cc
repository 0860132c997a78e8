// Tranche's annotations. Source: DESIGN section 9.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

constexpr std::string_view kPlain = R"("containers":[{"name":"main"},{"name":"side"}])";

TEST(PodTranche, ReadsFractionOrMemoryOfOneContainer) {
  struct Row {
    std::string_view annotations;
    std::string_view asks;
  };
  for (const Row& row : {
           Row{R"("tranche.dev/gpu-fraction":"0.5")",
               "main: 1 share of 500 milli of memory and 500 milli"},
           Row{R"("tranche.dev/gpu-fraction":"0.125")",
               "main: 1 share of 125 milli of memory and 125 milli"},
           Row{R"("tranche.dev/gpu-fraction":"0.999")",
               "main: 1 share of 999 milli of memory and 999 milli"},
           Row{R"("tranche.dev/gpu-fraction":"0.001")",
               "main: 1 share of 1 milli of memory and 1 milli"},
           Row{R"("tranche.dev/gpu-memory":"20480")", "main: 1 share of 20480 MiB and 0 milli"},
           Row{R"("tranche.dev/gpu-memory":"1","tranche.dev/gpu-count":"4")",
               "main: 4 share of 1 MiB and 0 milli"},
           Row{R"("tranche.dev/gpu-fraction":"0.5","tranche.dev/container":"side")",
               "side: 1 share of 500 milli of memory and 500 milli"},
       }) {
    const PodRequest request = RequestOf(row.annotations, kPlain);
    EXPECT_EQ(RequestText(request), row.asks) << row.annotations;
    EXPECT_EQ(request.style, RequestStyle::kTranche);
    EXPECT_EQ(PoolText(request), "");
  }
}

TEST(PodTranche, RefusesBadAmountsAndQuotesThem) {
  struct Row {
    std::string_view annotations;
    std::string_view quoted;
  };
  for (const Row& row : {
           Row{R"("tranche.dev/gpu-fraction":"0")", "\"0\""},
           Row{R"("tranche.dev/gpu-fraction":"0.0")", "\"0.0\""},
           Row{R"("tranche.dev/gpu-fraction":"0.000")", "\"0.000\""},
           Row{R"("tranche.dev/gpu-fraction":"1")", "\"1\""},
           Row{R"("tranche.dev/gpu-fraction":"1.0")", "\"1.0\""},
           Row{R"("tranche.dev/gpu-fraction":"0.1234")", "\"0.1234\""},
           Row{R"("tranche.dev/gpu-fraction":"0.")", "\"0.\""},
           Row{R"("tranche.dev/gpu-fraction":".5")", "\".5\""},
           Row{R"("tranche.dev/gpu-fraction":"5e-1")", "\"5e-1\""},
           Row{R"("tranche.dev/gpu-fraction":"500m")", "\"500m\""},
           Row{R"("tranche.dev/gpu-fraction":"+0.5")", "\"+0.5\""},
           Row{R"("tranche.dev/gpu-fraction":"-0.5")", "\"-0.5\""},
           Row{R"("tranche.dev/gpu-fraction":"0.5 ")", "\"0.5 \""},
           Row{R"("tranche.dev/gpu-fraction":"0,5")", "\"0,5\""},
           Row{R"("tranche.dev/gpu-fraction":"")", "\"\""},
           Row{R"("tranche.dev/gpu-memory":"0")", "\"0\""},
           Row{R"("tranche.dev/gpu-memory":"-1")", "\"-1\""},
           Row{R"("tranche.dev/gpu-memory":"20Gi")", "\"20Gi\""},
           Row{R"("tranche.dev/gpu-memory":"1.5")", "\"1.5\""},
           Row{R"("tranche.dev/gpu-memory":"99999999999999999999")", "\"99999999999999999999\""},
           Row{R"("tranche.dev/gpu-memory":"1","tranche.dev/gpu-count":"0")", "\"0\""},
           Row{R"("tranche.dev/gpu-memory":"1","tranche.dev/gpu-count":"two")", "\"two\""},
           Row{R"("tranche.dev/gpu-count":"2")", "\"2\""},
           Row{R"("tranche.dev/gpu-memory":"7","tranche.dev/gpu-fraction":"0.5")",
               "\"7 beside 0.5\""},
           Row{R"("tranche.dev/gpu-memory":"1","tranche.dev/container":"nobody")", "\"nobody\""},
       }) {
    const PodRequest request = RequestOf(row.annotations, kPlain);
    ASSERT_EQ(RequestText(request), "refused BadAmount") << row.annotations;
    EXPECT_NE(request.refusal->detail.find(row.quoted), std::string::npos)
        << request.refusal->detail;
    EXPECT_EQ(request.style, RequestStyle::kTranche);
    EXPECT_TRUE(request.asks.empty());
  }
}

TEST(PodTranche, ADevicePluginLimitBesideItMustEqualTheCount) {
  struct Row {
    int count;
    int limit;
    std::string_view asks;
  };
  for (const Row& row : {
           Row{1, 0, "main: 1 share of 9 MiB and 0 milli"},
           Row{1, 1, "main: 1 share of 9 MiB and 0 milli"},
           Row{2, 2, "main: 2 share of 9 MiB and 0 milli"},
           Row{1, 2, "refused BadAmount"},
           Row{2, 1, "refused BadAmount"},
       }) {
    const PodRequest request = RequestOf(
        fmt::format(R"("tranche.dev/gpu-memory":"9","tranche.dev/gpu-count":"{}")", row.count),
        OneContainer(fmt::format(R"("nvidia.com/gpu":{})", row.limit)));
    EXPECT_EQ(RequestText(request), row.asks) << row.count << " " << row.limit;
    EXPECT_EQ(PoolText(request), row.limit == 0 ? "" : fmt::format("nvidia.com/gpu {}", row.limit));
    EXPECT_EQ(request.containers.at(0).plugin_count, row.limit);
  }
  const PodRequest differing =
      RequestOf(R"("tranche.dev/gpu-memory":"9")", OneContainer(R"("nvidia.com/gpu":3)"));
  EXPECT_EQ(differing.refusal->detail,
            "expected nvidia.com/gpu equal to tranche.dev/gpu-count, found \"3\" and \"1\", in "
            "container \"main\"");
}

TEST(PodTranche, ALimitOfAnotherContainerMixesStyles) {
  const PodRequest request = RequestOf(
      R"("tranche.dev/gpu-fraction":"0.5")",
      R"("containers":[{"name":"a"},{"name":"b","resources":{"limits":{"nvidia.com/gpu":1}}}])");
  EXPECT_EQ(RequestText(request), "refused MixedDialects");
}

TEST(PodTranche, TheDefaultContainerIsTheFirstAppContainer) {
  const PodRequest request =
      RequestOf(R"("tranche.dev/gpu-fraction":"0.5")",
                R"("initContainers":[{"name":"i"},{"name":"s","restartPolicy":"Always"}],)"
                R"("containers":[{"name":"a"},{"name":"b"}])");
  ASSERT_EQ(request.asks.size(), 1u);
  EXPECT_EQ(request.asks[0].container, 2);
}

TEST(PodTranche, APodWithoutContainersIsRefusedNotServed) {
  EXPECT_EQ(RequestText(RequestOf(R"("tranche.dev/gpu-fraction":"0.5")", "")), "refused BadAmount");
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
