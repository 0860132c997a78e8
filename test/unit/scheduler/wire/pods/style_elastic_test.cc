// elastic-gpu's resources. Source: request-dialects section 9.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

TEST(PodElastic, CoresOrMemoryOfEachContainer) {
  struct Row {
    std::string spec;
    std::string_view text;
    std::string_view pools;
  };
  for (const Row& row : {
           Row{OneContainer(R"("elasticgpu.io/gpu-core":50)"),
               "main: 1 share of no memory and 500 milli", "elasticgpu.io/gpu-core 50"},
           Row{OneContainer(R"("elasticgpu.io/gpu-memory":4096)"),
               "main: 1 share of 4096 MiB and 0 milli", "elasticgpu.io/gpu-memory 4096"},
           Row{OneContainer(R"("elasticgpu.io/gpu-core":100)"), "main: 1 gpu",
               "elasticgpu.io/gpu-core 100"},
           Row{OneContainer(R"("elasticgpu.io/gpu-core":250)"), "main: 2 gpu",
               "elasticgpu.io/gpu-core 250"},
           Row{OneContainer(R"("elasticgpu.io/gpu-core":0,"elasticgpu.io/gpu-memory":8)"),
               "main: 1 share of 8 MiB and 0 milli", "elasticgpu.io/gpu-memory 8"},
           Row{Containers({R"("elasticgpu.io/gpu-core":20)", R"("elasticgpu.io/gpu-memory":8)"}),
               "a: 1 share of no memory and 200 milli; b: 1 share of 8 MiB and 0 milli",
               "elasticgpu.io/gpu-core 20; elasticgpu.io/gpu-memory 8"},
           Row{OneContainer(R"("elasticgpu.io/gpu-core":20,"elasticgpu.io/gpu-memory":8)"),
               "expected only one of gpu-core and gpu-memory, since the agent honours only one, "
               "found \"8\", in \"elasticgpu.io/gpu-memory\" of container \"main\"",
               "elasticgpu.io/gpu-core 20; elasticgpu.io/gpu-memory 8"},
       }) {
    const PodRequest request = RequestOf("", row.spec);
    EXPECT_EQ(FullText(request), row.text) << row.spec;
    EXPECT_EQ(PoolText(request), row.pools) << row.spec;
    EXPECT_EQ(request.style, RequestStyle::kElastic) << row.spec;
    EXPECT_GT(request.containers.at(0).plugin_count, 0) << row.spec;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
