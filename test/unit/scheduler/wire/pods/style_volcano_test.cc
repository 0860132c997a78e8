// Volcano's resources. Source: request-dialects section 6.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

TEST(PodVolcano, ReadsVgpusAsVolcanoDoes) {
  struct Row {
    std::string_view limits;
    std::string_view asks;
    int64_t plugin_count;
    std::string_view pools;
  };
  for (const Row& row : {
           Row{R"("volcano.sh/vgpu-number":1,"volcano.sh/vgpu-memory":3000)",
               "main: 1 share of 3000 units and 0 milli", 1, "volcano.sh/vgpu-number 1"},
           Row{R"("volcano.sh/vgpu-number":2,"volcano.sh/vgpu-memory":"3k",
                  "volcano.sh/vgpu-cores":30)",
               "main: 2 share of 3000 units and 300 milli", 2, "volcano.sh/vgpu-number 2"},
           // Memory alone means one vGPU, though kubelet calls nobody for it.
           Row{R"("volcano.sh/vgpu-memory":3000)", "main: 1 share of 3000 units and 0 milli", 0,
               ""},
           // Percentages win over memory.
           Row{R"("volcano.sh/vgpu-number":1,"volcano.sh/vgpu-memory":3000,
                  "volcano.sh/vgpu-memory-percentage":25)",
               "main: 1 share of 25 % of memory and 0 milli", 1, "volcano.sh/vgpu-number 1"},
           Row{R"("volcano.sh/vgpu-number":1,"volcano.sh/vgpu-memory":3000,
                  "volcano.sh/vgpu-memory-percentage":0)",
               "main: 1 share of 3000 units and 0 milli", 1, "volcano.sh/vgpu-number 1"},
           Row{R"("volcano.sh/vgpu-number":1)", "main: 1 share of whole card and 0 milli", 1,
               "volcano.sh/vgpu-number 1"},
           Row{R"("volcano.sh/vgpu-number":1,"volcano.sh/vgpu-memory-percentage":100)",
               "main: 1 share of whole card and 0 milli", 1, "volcano.sh/vgpu-number 1"},
           Row{R"("volcano.sh/vgpu-number":1,"volcano.sh/vgpu-cores":100)",
               "main: 1 share of whole card and 1000 milli, alone", 1, "volcano.sh/vgpu-number 1"},
           Row{R"("volcano.sh/vgpu-number":0,"volcano.sh/vgpu-memory":5)", "nothing", 0, ""},
       }) {
    const PodRequest request = RequestOf("", OneContainer(row.limits));
    EXPECT_EQ(FullText(request), row.asks) << row.limits;
    EXPECT_EQ(request.containers.at(0).plugin_count, row.plugin_count) << row.limits;
    EXPECT_EQ(PoolText(request), row.pools) << row.limits;
    if (request.asks_gpu()) {
      EXPECT_EQ(request.style, RequestStyle::kVolcano);
    }
  }
}

TEST(PodVolcano, RefusesWhatItsAgentCannotServe) {
  struct Row {
    std::string spec;
    std::string_view detail;
    std::string_view reason = "refused BadAmount";
  };
  constexpr std::string_view kOneGpu = R"("volcano.sh/vgpu-number":1)";
  for (const Row& row : {
           Row{Containers({kOneGpu, kOneGpu}),
               "expected one container with volcano.sh/vgpu-number, found \"a\" and \"b\", in the "
               "pod: the agent is called for each container and finds the pod by its total",
               "refused AgentCannotServe"},
           Row{InitContainer(kOneGpu),
               "expected no GPUs in init containers, which the agent does not serve, found \"1\", "
               "in \"volcano.sh/vgpu-number\" of container \"i\"",
               "refused AgentCannotServe"},
           Row{OneContainer(R"("volcano.sh/vgpu-cores":30)"),
               "expected volcano.sh/vgpu-number or vgpu-memory beside it, found \"30\", in "
               "\"volcano.sh/vgpu-cores\" of container \"main\""},
           Row{OneContainer(R"("volcano.sh/vgpu-number":1,"volcano.sh/vgpu-cores":101)"),
               "expected percentage from 0 to 100, found \"101\", in \"volcano.sh/vgpu-cores\" of "
               "container \"main\""},
           Row{OneContainer(
                   R"("volcano.sh/vgpu-number":1,"volcano.sh/vgpu-memory-percentage":101)"),
               "expected percentage from 1 to 100, found \"101\", in "
               "\"volcano.sh/vgpu-memory-percentage\" of container \"main\""},
           Row{OneContainer(R"("volcano.sh/vgpu-number":1,"volcano.sh/vgpu-memory-percentage":0)"),
               "expected percentage from 1 to 100, found \"0\", in "
               "\"volcano.sh/vgpu-memory-percentage\" of container \"main\""},
           Row{OneContainer(R"("volcano.sh/vgpu-number":1,"volcano.sh/vgpu-memory":"1.5")"),
               "expected whole number from 0 to 2147483648, found \"1.5\", in "
               "\"volcano.sh/vgpu-memory\" of container \"main\""},
       }) {
    const PodRequest request = RequestOf("", row.spec);
    EXPECT_EQ(FullText(request), row.detail) << row.spec;
    EXPECT_EQ(RequestText(request), row.reason) << row.spec;
  }
}

TEST(PodVolcano, AContainerWithoutVgpusBesideOneIsFine) {
  EXPECT_EQ(FullText(RequestOf("", Containers({R"("cpu":1)", R"("volcano.sh/vgpu-number":1)",
                                               R"("volcano.sh/vgpu-number":0)"}))),
            "b: 1 share of whole card and 0 milli");
}

TEST(PodVolcano, ReadsTheOlderResources) {
  struct Row {
    std::string spec;
    std::string_view text;
    std::string_view pools;
  };
  for (const Row& row : {
           Row{OneContainer(R"("volcano.sh/gpu-memory":4096)"),
               "main: 1 share of 4096 units and 0 milli", "volcano.sh/gpu-memory 4096"},
           Row{OneContainer(R"("volcano.sh/gpu-number":2)"), "main: 2 gpu",
               "volcano.sh/gpu-number 2"},
           Row{OneContainer(R"("volcano.sh/gpu-number":2,"volcano.sh/gpu-memory":1)"),
               "expected only one of gpu-memory and gpu-number, found \"2\", in "
               "\"volcano.sh/gpu-number\" of container \"main\"",
               "volcano.sh/gpu-memory 1; volcano.sh/gpu-number 2"},
           Row{Containers({R"("volcano.sh/gpu-memory":1)", R"("volcano.sh/gpu-memory":2)"}),
               "expected one container with volcano.sh/gpu-memory, found \"a\" and \"b\", in the "
               "pod: the agent is called for each container and finds the pod by its total",
               "volcano.sh/gpu-memory 3"},
       }) {
    const PodRequest request = RequestOf("", row.spec);
    EXPECT_EQ(FullText(request), row.text) << row.spec;
    EXPECT_EQ(PoolText(request), row.pools) << row.spec;
    EXPECT_EQ(request.style, RequestStyle::kVolcanoOld) << row.spec;
  }
}

TEST(PodVolcano, ItsAnnotationsChooseCards) {
  constexpr std::string_view kVgpu = R"("volcano.sh/vgpu-number":1)";
  const PodRequest request =
      RequestOf(R"("volcano.sh/vgpu-use-gpuuuid":"GPU-a,GPU-b","volcano.sh/vgpu-mode":"mps",)"
                R"("volcano.sh/vgpu-nouse-gpuuuid":"GPU-c","nvidia.com/use-gputype":"A100")",
                OneContainer(kVgpu));
  EXPECT_EQ(request.uuids_any, (std::vector<std::string>{"GPU-a", "GPU-b"}));
  EXPECT_EQ(request.uuids_none, (std::vector<std::string>{"GPU-c"}));
  EXPECT_EQ(request.models_any, (std::vector<std::string>{"*a100*"}));
  EXPECT_EQ(request.vgpu_mode, "mps");
  EXPECT_EQ(FullText(RequestOf(R"("volcano.sh/vgpu-mode":"fast")", OneContainer(kVgpu))),
            "expected hami-core, mig or mps, found \"fast\", in annotation volcano.sh/vgpu-mode");
  EXPECT_EQ(FullText(RequestOf(R"("volcano.sh/vgpu-mode":"mps","nvidia.com/vgpu-mode":"mig")",
                               OneContainer(kVgpu))),
            "expected keys of one request style, found \"nvidia.com/vgpu-mode\" and "
            "\"volcano.sh/vgpu-mode\", in the pod");
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
