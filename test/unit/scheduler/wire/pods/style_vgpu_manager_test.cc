// vgpu-manager's resources and annotations. Source: request-dialects section 10.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

constexpr std::string_view kOne = R"("nvidia.com/vgpu-number":1)";

TEST(PodVgpuManager, TurnsAmountsIntoSharesAsItsWebhookWould) {
  struct Row {
    std::string_view limits;
    std::string_view text;
    int64_t plugin_count;
  };
  for (const Row& row : {
           Row{R"("nvidia.com/vgpu-number":2,"nvidia.com/vgpu-cores":20,
                  "nvidia.com/vgpu-memory":2048)",
               "main: 2 share of 2048 units and 200 milli", 2},
           Row{R"("nvidia.com/vgpu-memory":2048)", "main: 1 share of 2048 units and 0 milli", 0},
           Row{R"("nvidia.com/vgpu-cores":50)", "main: 1 share of whole card and 500 milli", 0},
           Row{kOne, "main: 1 share of whole card and 1000 milli, alone", 1},
           Row{R"("nvidia.com/vgpu-number":1,"nvidia.com/vgpu-cores":100)",
               "main: 1 share of whole card and 1000 milli, alone", 1},
           Row{R"("nvidia.com/vgpu-number":1,"nvidia.com/vgpu-cores":100,
                  "nvidia.com/vgpu-memory":7)",
               "main: 1 share of 7 units and 1000 milli", 1},
           Row{R"("nvidia.com/vgpu-number":0,"nvidia.com/vgpu-cores":10)", "nothing", 0},
           Row{R"("nvidia.com/vgpu-number":1,"nvidia.com/vgpu-cores":101)",
               "expected percentage from 0 to 100, found \"101\", in \"nvidia.com/vgpu-cores\" of "
               "container \"main\"",
               1},
           Row{R"("nvidia.com/vgpu-number":"some")",
               "expected whole number from 0 to 2147483648, found \"some\", in "
               "\"nvidia.com/vgpu-number\" of container \"main\"",
               0},
       }) {
    const PodRequest request = RequestOf("", OneContainer(row.limits));
    EXPECT_EQ(FullText(request), row.text) << row.limits;
    EXPECT_EQ(request.containers.at(0).plugin_count, row.plugin_count) << row.limits;
  }
}

TEST(PodVgpuManager, ServesSeveralAndInitContainers) {
  const PodRequest request = RequestOf(
      "",
      R"("initContainers":[{"name":"i","resources":{"limits":{"nvidia.com/vgpu-number":3}}}],)" +
          Containers({kOne, R"("nvidia.com/vgpu-number":1,"nvidia.com/vgpu-memory":9)"}));
  EXPECT_EQ(FullText(request),
            "i: 3 share of whole card and 1000 milli, alone; a: 1 share of whole card and 1000 "
            "milli, alone; b: 1 share of 9 units and 0 milli");
  EXPECT_EQ(PoolText(request), "nvidia.com/vgpu-number 3");
}

TEST(PodVgpuManager, ItsAnnotationsChooseNodesAndCards) {
  const PodRequest request = RequestOf(
      R"("nvidia.com/include-gpu-type":"A100, H100","nvidia.com/exclude-gpu-type":"PCIe",)"
      R"("nvidia.com/include-gpu-uuid":"GPU-a","nvidia.com/exclude-gpu-uuid":"GPU-b,GPU-c",)"
      R"("nvidia.com/node-scheduler-policy":"spread",)"
      R"("nvidia.com/device-scheduler-policy":"binpack")",
      OneContainer(kOne));
  EXPECT_EQ(request.models_any, (std::vector<std::string>{"a100", "h100"}));
  EXPECT_EQ(request.models_none, (std::vector<std::string>{"pcie"}));
  EXPECT_EQ(request.uuids_any, (std::vector<std::string>{"GPU-a"}));
  EXPECT_EQ(request.uuids_none, (std::vector<std::string>{"GPU-b", "GPU-c"}));
  EXPECT_EQ(request.strategy, Strategy::kSpread);
  EXPECT_EQ(request.card_choice, CardChoice::kTightest);
}

TEST(PodVgpuManager, TopologyModesAreWishesUnlessStrict) {
  struct Row {
    std::string_view mode;
    bool one_numa_node;
    std::optional<TopologyWish> topology;
  };
  for (const Row& row : {
           Row{"", false, std::nullopt},
           Row{"none", false, std::nullopt},
           Row{"numa", false, TopologyWish::kPreferred},
           Row{"numa-strict", true, std::nullopt},
           Row{"link", false, TopologyWish::kPreferred},
           Row{"link-strict", false, TopologyWish::kRequired},
       }) {
    const PodRequest request = RequestOf(
        fmt::format(R"("nvidia.com/device-topology-mode":"{}")", row.mode), OneContainer(kOne));
    EXPECT_FALSE(request.refusal.has_value()) << row.mode;
    EXPECT_EQ(request.one_numa_node, row.one_numa_node) << row.mode;
    EXPECT_EQ(request.topology, row.topology) << row.mode;
  }
}

TEST(PodVgpuManager, RefusesWordsItDoesNotKnowAndListsThatContradict) {
  struct Row {
    std::string_view annotations;
    std::string_view detail;
  };
  for (const Row& row : {
           Row{R"("nvidia.com/device-topology-mode":"ring")",
               "expected numa, numa-strict, link, link-strict or none, found \"ring\", in "
               "annotation nvidia.com/device-topology-mode"},
           Row{R"("nvidia.com/device-scheduler-policy":"best")",
               "expected binpack or spread, found \"best\", in annotation "
               "nvidia.com/device-scheduler-policy"},
           Row{R"("nvidia.com/node-scheduler-policy":"best")",
               "expected binpack or spread, found \"best\", in annotation "
               "nvidia.com/node-scheduler-policy"},
           Row{R"("nvidia.com/node-scheduler-policy":"spread",
                  "hami.io/node-scheduler-policy":"binpack")",
               "expected keys of one request style, found \"hami.io/node-scheduler-policy\" and "
               "\"nvidia.com/node-scheduler-policy\", in the pod"},
           Row{R"("nvidia.com/include-gpu-uuid":"GPU-a","nvidia.com/use-gpuuuid":"GPU-b")",
               "expected keys of one request style, found \"nvidia.com/use-gpuuuid\" and "
               "\"nvidia.com/include-gpu-uuid\", in the pod"},
           Row{R"("nvidia.com/include-gpu-type":"A100","tranche.dev/model":"h100")",
               "expected keys of one request style, found \"tranche.dev/model\" and "
               "\"nvidia.com/include-gpu-type\", in the pod"},
       }) {
    EXPECT_EQ(FullText(RequestOf(row.annotations, OneContainer(kOne))), row.detail)
        << row.annotations;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
