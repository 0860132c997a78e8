// tkestack's resources. Source: request-dialects section 8.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

TEST(PodTkestack, PartsNeedMemoryAndWholeCardsBringTheirs) {
  struct Row {
    std::string spec;
    std::string_view text;
  };
  for (const Row& row : {
           Row{OneContainer(R"("tencent.com/vcuda-core":50,"tencent.com/vcuda-memory":30)"),
               "main: 1 share of 30 units and 500 milli"},
           Row{OneContainer(R"("tencent.com/vcuda-core":1,"tencent.com/vcuda-memory":1)"),
               "main: 1 share of 1 units and 10 milli"},
           Row{OneContainer(R"("tencent.com/vcuda-core":100)"), "main: 1 gpu"},
           Row{OneContainer(R"("tencent.com/vcuda-core":300,"tencent.com/vcuda-memory":30)"),
               "main: 3 gpu"},
           Row{Containers({R"("tencent.com/vcuda-core":100)",
                           R"("tencent.com/vcuda-core":20,"tencent.com/vcuda-memory":4)"}),
               "a: 1 gpu; b: 1 share of 4 units and 200 milli"},
           Row{OneContainer(R"("tencent.com/vcuda-core":50)"),
               "expected tencent.com/vcuda-memory beside a vcuda-core below 100, or whole GPUs, "
               "found \"50\", in \"tencent.com/vcuda-core\" of container \"main\""},
           Row{OneContainer(R"("tencent.com/vcuda-memory":8)"),
               "expected tencent.com/vcuda-core beside it, found \"8\", in "
               "\"tencent.com/vcuda-memory\" of container \"main\""},
           Row{OneContainer(R"("tencent.com/vcuda-core":150,"tencent.com/vcuda-memory":30)"),
               "expected part of a GPU below 100, or a multiple of 100, found \"150\", in "
               "\"tencent.com/vcuda-core\" of container \"main\""},
           Row{InitContainer(R"("tencent.com/vcuda-core":100)"),
               "expected no GPUs in init containers, which the agent does not serve, found "
               "\"100\", in \"tencent.com/vcuda-core\" of container \"i\""},
       }) {
    EXPECT_EQ(FullText(RequestOf("", row.spec)), row.text) << row.spec;
  }
}

TEST(PodTkestack, KubeletAsksForCoresOnly) {
  const PodRequest request =
      RequestOf("", OneContainer(R"("tencent.com/vcuda-core":50,"tencent.com/vcuda-memory":30)"));
  EXPECT_EQ(request.style, RequestStyle::kTkestack);
  EXPECT_EQ(request.containers.at(0).plugin_count, 50);
  EXPECT_EQ(PoolText(request), "tencent.com/vcuda-core 50");
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
