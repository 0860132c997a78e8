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

// Two containers, and what the webhook moved out of them; the annotation is the inside of a JSON
// text.
PodRequest MovedRequest(std::string_view moved, std::string_view first = R"("nvidia.com/gpu":1)",
                        std::string_view second = R"("cpu":1)") {
  return RequestOf(fmt::format(R"("tranche.dev/hami-limits":"{}")", moved),
                   fmt::format(R"("containers":[{{"name":"main","resources":{{"limits":{{{}}}}}}},)"
                               R"({{"name":"second","resources":{{"limits":{{{}}}}}}}])",
                               first, second));
}

TEST(PodHami, AmountsInTheAnnotationAreThoseOfTheContainer) {
  struct Row {
    std::string_view moved, first, second, asks;
  };
  constexpr std::string_view kOne = R"("nvidia.com/gpu":1)";
  constexpr std::string_view kNone = R"("cpu":1)";
  const Row rows[] = {
      {R"({\"main\":{\"nvidia.com/gpumem\":\"3000\"}})", kOne, kNone,
       "main: 1 share of 3000 MiB and 0 milli"},
      {R"({\"main\":{\"nvidia.com/gpumem\":\"20k\",\"nvidia.com/gpucores\":\"30\"}})",
       R"("nvidia.com/gpu":2)", kNone, "main: 2 share of 20000 MiB and 300 milli"},
      {R"({\"main\":{\"nvidia.com/gpumem-percentage\":50}})", kOne, kNone,
       "main: 1 share of 50 % of memory and 0 milli"},
      {R"({\"second\":{\"nvidia.com/gpumem\":\"100\"}})", kOne, kOne,
       "main: 1 share of whole card and 1000 milli, alone; second: 1 share of 100 MiB and 0 milli"},
      {R"({\"main\":{\"nvidia.com/gpumem\":\"3000\"}})",
       R"("nvidia.com/gpu":1,"nvidia.com/gpucores":30)", kNone,
       "main: 1 share of 3000 MiB and 300 milli"},
      {R"({})", kOne, kNone, "main: 1 gpu"},
      {R"({\"main\":{\"nvidia.com/gpumem\":\"0\"}})", kOne, kNone, "main: 1 gpu"},
  };
  for (const Row& row : rows) {
    const PodRequest request = MovedRequest(row.moved, row.first, row.second);
    EXPECT_EQ(RequestText(request), row.asks) << row.moved;
    EXPECT_EQ(PoolText(request).substr(0, 14), "nvidia.com/gpu") << row.moved;
  }
}

TEST(PodHami, AnAnnotationOfAmountsThatCannotBeReadIsRefused) {
  struct Row {
    std::string_view moved, says;
  };
  const Row rows[] = {
      {"main", "expected an object of containers and their amounts, found \"main\""},
      {R"([])", "expected an object of containers and their amounts, found \"[]\""},
      {R"({\"other\":{}})", "expected names of the pod's containers, found \"other\""},
      {R"({\"main\":3})", "expected an object of amounts, found number 3 for container \"main\""},
      {R"({\"main\":{\"nvidia.com/gpu\":\"1\"}})",
       "expected keys of HAMi, found \"nvidia.com/gpu\""},
      {R"({\"main\":{\"nvidia.com/gpumem\":null}})",
       "expected a quantity, found null of nvidia.com/gpumem"},
      {R"({\"main\":{\"nvidia.com/gpumem\":\"1.5\"}})",
       "expected whole number from 0 to 2147483648, found \"1.5\", in \"nvidia.com/gpumem\" of "
       "container \"main\""},
      {R"({\"second\":{\"nvidia.com/gpumem\":\"10\"}})",
       "expected amounts that the container's resources leave out, found \"nvidia.com/gpumem\""},
  };
  for (const Row& row : rows) {
    const PodRequest request =
        MovedRequest(row.moved, R"("nvidia.com/gpu":1)", R"("nvidia.com/gpumem":5)");
    ASSERT_TRUE(request.refusal) << row.moved;
    EXPECT_EQ(request.refusal->reason, Reason::kBadAmount) << row.moved;
    EXPECT_EQ(request.refusal->detail.substr(0, row.says.size()), row.says);
  }
}

// Some thousand containers and as many names in the annotation are no product.
TEST(PodHami, AnAnnotationMayBeLarge) {
  constexpr int kMany = 5'000;
  std::string containers, moved;
  for (int i = 0; i < kMany; ++i) {
    containers +=
        fmt::format(R"({}{{"name":"c{}","resources":{{"limits":{{"nvidia.com/gpu":1}}}}}})",
                    i == 0 ? "" : ",", i);
    moved += fmt::format(R"({}\"c{}\":{{\"nvidia.com/gpumem\":\"10\"}})", i == 0 ? "" : ",", i);
  }
  const PodRequest request = RequestOf(fmt::format(R"("tranche.dev/hami-limits":"{{{}}}")", moved),
                                       fmt::format(R"("containers":[{}])", containers));
  EXPECT_FALSE(request.refusal);
  EXPECT_EQ(request.asks.size(), static_cast<std::size_t>(kMany));
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
