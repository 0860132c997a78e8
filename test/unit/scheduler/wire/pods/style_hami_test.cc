// HAMi's resources. Source: request-dialects sections 4.1 and 16.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

TEST(PodHami, TurnsAmountsIntoSharesAsTheWebhookWould) {
  struct Row {
    std::string_view limits;
    std::string_view asks;
  };
  for (const Row& row : {
           Row{R"("nvidia.com/gpu":1,"nvidia.com/gpumem":3000)",
               "main: 1 share of 3000 MiB and 0 milli"},
           Row{R"("nvidia.com/gpu":2,"nvidia.com/gpumem":"20k","nvidia.com/gpucores":30)",
               "main: 2 share of 20000 MiB and 300 milli"},
           Row{R"("nvidia.com/gpumem":3000)", "main: 1 share of 3000 MiB and 0 milli"},
           Row{R"("nvidia.com/gpucores":50)", "main: 1 share of whole card and 500 milli"},
           Row{R"("nvidia.com/gpu":1,"nvidia.com/gpucores":100)",
               "main: 1 share of whole card and 1000 milli, alone"},
           Row{R"("nvidia.com/gpu":1,"nvidia.com/gpucores":250)",
               "main: 1 share of whole card and 1000 milli, alone"},
           Row{R"("nvidia.com/gpumem":3000,"nvidia.com/gpucores":100)",
               "main: 1 share of 3000 MiB and 1000 milli, alone"},
           Row{R"("nvidia.com/gpu":1,"nvidia.com/gpumem-percentage":50)",
               "main: 1 share of 50 % of memory and 0 milli"},
           Row{R"("nvidia.com/gpu":1,"nvidia.com/gpumem-percentage":100)",
               "main: 1 share of whole card and 1000 milli, alone"},
           Row{R"("nvidia.com/gpu":1,"nvidia.com/gpumem-percentage":101)",
               "main: 1 share of whole card and 1000 milli, alone"},
           Row{R"("nvidia.com/gpumem-percentage":100,"nvidia.com/gpucores":20)",
               "main: 1 share of whole card and 200 milli"},
           Row{R"("nvidia.com/gpumem":3000,"nvidia.com/gpumem-percentage":50)",
               "main: 1 share of 3000 MiB and 0 milli"},
           Row{R"("nvidia.com/gpumem":0,"nvidia.com/gpumem-percentage":50)",
               "main: 1 share of 50 % of memory and 0 milli"},
           Row{R"("nvidia.com/gpu":1,"nvidia.com/gpumem":1,"nvidia.com/priority":"0")",
               "main: 1 share of 1 MiB and 0 milli"},
           Row{R"("nvidia.com/gpumem":2147483647)", "main: 1 share of 2147483647 MiB and 0 milli"},
       }) {
    const PodRequest request = RequestOf("", OneContainer(row.limits));
    EXPECT_EQ(RequestText(request), row.asks) << row.limits;
    EXPECT_EQ(request.style, RequestStyle::kHami) << row.limits;
  }
}

TEST(PodHami, ZeroAmountsDoNotMakeAHamiPod) {
  const PodRequest whole = RequestOf(
      "", OneContainer(R"("nvidia.com/gpu":1,"nvidia.com/gpumem":0,"nvidia.com/gpucores":0)"));
  EXPECT_EQ(RequestText(whole), "main: 1 gpu");
  EXPECT_EQ(whole.style, RequestStyle::kNative);
  EXPECT_EQ(RequestText(RequestOf("", OneContainer(R"("nvidia.com/gpumem":0)"))), "nothing");
  EXPECT_EQ(RequestText(RequestOf("", OneContainer(R"("nvidia.com/priority":1)"))), "nothing");
}

TEST(PodHami, ACountOfZeroAsksForNothing) {
  const PodRequest request =
      RequestOf("", OneContainer(R"("nvidia.com/gpu":0,"nvidia.com/gpumem":3000)"));
  EXPECT_EQ(RequestText(request), "nothing");
}

TEST(PodHami, APlainContainerBesideASharedOneTakesAWholeCard) {
  const PodRequest request = RequestOf(
      "", R"("initContainers":[{"name":"i","resources":{"limits":{"nvidia.com/gpumem":500}}}],)"
          R"("containers":[{"name":"a","resources":{"limits":{"nvidia.com/gpu":2}}},)"
          R"({"name":"b","resources":{"limits":{"nvidia.com/gpu":1,"nvidia.com/gpumem":100}}},)"
          R"({"name":"c"}])");
  EXPECT_EQ(RequestText(request),
            "i: 1 share of 500 MiB and 0 milli; a: 2 share of whole card and 1000 milli, alone; "
            "b: 1 share of 100 MiB and 0 milli");
  EXPECT_EQ(request.containers[0].plugin_count, 0);
  EXPECT_EQ(request.containers[1].plugin_count, 2);
  EXPECT_EQ(PoolText(request), "nvidia.com/gpu 3");
}

TEST(PodHami, RefusesWhatHamiWouldDropSilently) {
  for (const std::string_view limits : {
           R"("nvidia.com/gpu":1,"nvidia.com/gpumem":"1.5")",
           R"("nvidia.com/gpu":1,"nvidia.com/gpumem":"-1")",
           R"("nvidia.com/gpu":1,"nvidia.com/gpumem":"2147483648")",
           R"("nvidia.com/gpu":1,"nvidia.com/gpumem":"4294967297")",
           R"("nvidia.com/gpu":1,"nvidia.com/gpumem":"lots")",
           R"("nvidia.com/gpu":1,"nvidia.com/gpumem-percentage":"-5")",
           R"("nvidia.com/gpu":1,"nvidia.com/gpumem-percentage":"33.3")",
           R"("nvidia.com/gpu":1,"nvidia.com/gpucores":"-1")",
           R"("nvidia.com/gpu":1,"nvidia.com/gpucores":"500m")",
           R"("nvidia.com/gpu":"x","nvidia.com/gpumem":1)",
       }) {
    const PodRequest request = RequestOf("", OneContainer(limits));
    EXPECT_EQ(RequestText(request), "refused BadAmount") << limits;
    EXPECT_NE(request.refusal->detail.find("\"main\""), std::string::npos);
  }
  EXPECT_NE(RequestOf("", OneContainer(R"("nvidia.com/gpumem":"2147483648")"))
                .refusal->detail.find("\"2147483648\""),
            std::string::npos);
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
