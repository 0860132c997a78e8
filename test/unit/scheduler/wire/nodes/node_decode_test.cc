// Node objects. Source: node-inventory sections 1, 2 and 6.
#include "scheduler/wire/nodes/node_decode.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iterator>

#include "scheduler/wire/json/json.h"

namespace tranche::wire {
namespace THIS_FILE {

absl::StatusOr<NodeFacts> TryNode(std::string_view json) {
  Parser parser;
  const absl::StatusOr<Element> document = parser.Parse(json);
  if (!document.ok()) return document.status();
  return DecodeNode(*document);
}

// A node of these labels, annotations and allocatable amounts (equal to its capacity).
NodeFacts NodeOf(std::string_view labels, std::string_view allocatable,
                 std::string_view annotations = "") {
  return TryNode(
             fmt::format(
                 R"({{"metadata":{{"name":"n1","uid":"u1","labels":{{{}}},"annotations":{{{}}}}},)"
                 R"("status":{{"allocatable":{{{}}},"capacity":{{{}}}}}}})",
                 labels, annotations, allocatable, allocatable))
      .value();
}

TEST(NodeDecode, ReadsAWholeGpuNode) {
  const NodeFacts node =
      NodeOf(R"("nvidia.com/gpu.product":"NVIDIA-A100-SXM4-40GB","nvidia.com/gpu.memory":"40960",)"
             R"("nvidia.com/gpu.count":"8","nvidia.com/gpu.replicas":"1",)"
             R"("nvidia.com/gpu.sharing-strategy":"none","nvidia.com/mig.strategy":"none")",
             R"("cpu":"96","memory":"1Ti","nvidia.com/gpu":"8")");
  EXPECT_EQ(node.name, NodeName("n1"));
  EXPECT_EQ(node.uid, NodeUid("u1"));
  EXPECT_EQ(node.product, "NVIDIA-A100-SXM4-40GB");
  EXPECT_EQ(node.memory, Mebibytes::Of(40960));
  EXPECT_EQ(node.count, 8);
  EXPECT_EQ(node.replicas, 1);
  ASSERT_TRUE(node.gpu.has_value());
  EXPECT_EQ(node.gpu->allocatable, 8);
  EXPECT_EQ(node.cpu, MilliCpu::Of(96'000));
  EXPECT_EQ(node.gpu->capacity, 8);
  EXPECT_FALSE(node.gpu_shared.has_value());
  EXPECT_TRUE(node.mig.empty());
  EXPECT_TRUE(node.ready);
  EXPECT_TRUE(node.problems.empty());
}

TEST(NodeDecode, ANodeThatSaysNothingHasNothing) {
  const absl::StatusOr<NodeFacts> node = TryNode(R"({"metadata":{"name":"n1"}})");
  ASSERT_TRUE(node.ok());
  EXPECT_TRUE(node->ready);
  EXPECT_FALSE(node->cordoned);
  EXPECT_FALSE(node->gpu || node->memory || node->count || node->replicas || node->agent);
  EXPECT_EQ(node->operator_busy, "");
}

TEST(NodeDecode, KeepsUnhealthyDevicesInTheCapacity) {
  const NodeFacts node = TryNode(R"({"metadata":{"name":"n1"},"status":{
      "allocatable":{"nvidia.com/gpu":"7"},
      "capacity":{"nvidia.com/gpu":8,"nvidia.com/mig-1g.5gb":"2"}}})")
                             .value();
  EXPECT_EQ(node.gpu->allocatable, 7);
  EXPECT_EQ(node.gpu->capacity, 8);
  ASSERT_EQ(node.mig.size(), 1u);
  EXPECT_EQ(node.mig[0].count.allocatable, 0);
  EXPECT_EQ(node.mig[0].count.capacity, 2);
}

TEST(NodeDecode, ReadsTheMixedMigNodeOfTheFacts) {
  const NodeFacts node =
      NodeOf(R"("nvidia.com/gpu.count":"1","nvidia.com/gpu.replicas":"0",)"
             R"("nvidia.com/mig.strategy":"mixed",)"
             R"("nvidia.com/mig-1g.10gb.memory":"9728","nvidia.com/mig-1g.10gb.slices.gi":"1",)"
             R"("nvidia.com/mig-1g.10gb.replicas":"4","nvidia.com/mig-1g.10gb.me.memory":"9856")",
             R"("nvidia.com/mig-3g.40gb":"1","nvidia.com/mig-1g.10gb":"2",)"
             R"("nvidia.com/mig-1g.10gb.me":"1",)"
             R"("nvidia.com/mig-1g.10gb.shared":"8")");
  EXPECT_EQ(node.mig_strategy, MigStrategy::kMixed);
  EXPECT_EQ(node.replicas, 0);
  std::string text;
  for (const MigResourceFacts& mig : node.mig) {
    text += fmt::format("{}{} x{} replicas {} memory {} slices {}\n", mig.name.profile,
                        mig.name.shared ? " shared" : "", mig.count.allocatable, mig.replicas,
                        mig.memory ? mig.memory->count() : -1, mig.gi_slices.value_or(-1));
  }
  EXPECT_EQ(text,
            "1g.10gb x2 replicas 4 memory 9728 slices 1\n"
            "1g.10gb+me x1 replicas 1 memory 9856 slices -1\n"
            "1g.10gb shared x8 replicas 4 memory 9728 slices 1\n"
            "3g.40gb x1 replicas 1 memory -1 slices -1\n");
  EXPECT_TRUE(node.problems.empty());
}

TEST(NodeDecode, ReadsSharingInBothNamings) {
  const NodeFacts same =
      NodeOf(R"("nvidia.com/gpu.product":"Tesla-T4-SHARED","nvidia.com/gpu.count":"2",)"
             R"("nvidia.com/gpu.replicas":"4","nvidia.com/gpu.sharing-strategy":"time-slicing")",
             R"("nvidia.com/gpu":"8")");
  EXPECT_EQ(same.sharing, SharingMethod::kTimeSlicing);
  EXPECT_EQ(same.gpu->allocatable, 8);
  EXPECT_EQ(same.count, 2);
  EXPECT_EQ(same.replicas, 4);
  const NodeFacts renamed =
      NodeOf(R"("nvidia.com/gpu.sharing-strategy":"mps")", R"("nvidia.com/gpu.shared":"8")");
  EXPECT_EQ(renamed.sharing, SharingMethod::kMps);
  EXPECT_EQ(renamed.gpu_shared->allocatable, 8);
  EXPECT_FALSE(renamed.gpu.has_value());
}

TEST(NodeDecode, AnInvalidSingleMigNodeHasNoMemorySize) {
  const NodeFacts node = NodeOf(
      R"("nvidia.com/gpu.product":"NVIDIA-A100-SXM4-40GB-MIG-INVALID","nvidia.com/gpu.count":"0",)"
      R"("nvidia.com/gpu.replicas":"0","nvidia.com/gpu.memory":"0",)"
      R"("nvidia.com/mig.strategy":"single",)"
      R"("nvidia.com/gpu.sharing-strategy":"")",
      "");
  EXPECT_FALSE(node.memory.has_value());
  EXPECT_EQ(node.count, 0);
  EXPECT_EQ(node.mig_strategy, MigStrategy::kSingle);
  EXPECT_TRUE(node.problems.empty());
}

TEST(NodeDecode, ReadsReadinessAndCordon) {
  struct Row {
    std::string_view conditions;
    bool ready;
  };
  for (const Row& row : {
           Row{"[]", true},
           Row{"null", true},
           Row{R"([{"type":"Ready","status":"True"}])", true},
           Row{R"([{"type":"Ready","status":"False"}])", false},
           Row{R"([{"type":"Ready","status":"Unknown"}])", false},
           Row{R"([{"type":"MemoryPressure","status":"False"}])", true},
       }) {
    const NodeFacts node =
        TryNode(fmt::format(R"({{"metadata":{{"name":"n"}},"spec":{{"unschedulable":true}},)"
                            R"("status":{{"conditions":{}}}}})",
                            row.conditions))
            .value();
    EXPECT_EQ(node.ready, row.ready) << row.conditions;
    EXPECT_TRUE(node.cordoned);
  }
}

TEST(NodeDecode, KnowsSinceWhenTheKubeletIsSilent) {
  struct Row {
    std::string_view condition;
    std::string_view expected;  // "" for nullopt
  };
  for (const Row& row : {
           Row{R"("status":"Unknown","lastHeartbeatTime":"2026-03-01T08:00:00Z",)"
               R"("lastTransitionTime":"2026-03-01T08:00:40Z")",
               "2026-03-01T08:00:00Z"},
           Row{R"("status":"Unknown","lastHeartbeatTime":null,)"
               R"("lastTransitionTime":"2026-03-01T08:00:40Z")",
               "2026-03-01T08:00:40Z"},
           Row{R"("status":"Unknown","lastHeartbeatTime":"soon")", ""},
           Row{R"("status":"False","lastHeartbeatTime":"2026-03-01T08:00:00Z")", ""},
           Row{R"("status":"True","lastHeartbeatTime":"2026-03-01T08:00:00Z")", ""},
       }) {
    const NodeFacts node = TryNode(fmt::format(R"({{"metadata":{{"name":"n"}},"status":)"
                                               R"({{"conditions":[{{"type":"Ready",{}}}]}}}})",
                                               row.condition))
                               .value();
    EXPECT_EQ(node.lost_since ? FormatTime(*node.lost_since) : "", row.expected) << row.condition;
  }
}

TEST(NodeDecode, OperatorStatesKeepPodsAway) {
  struct Row {
    std::string_view label;
    std::string_view value;
    bool busy;
  };
  for (const Row& row : {
           Row{"nvidia.com/gpu-driver-upgrade-state", "upgrade-done", false},
           Row{"nvidia.com/gpu-driver-upgrade-state", "", false},
           Row{"nvidia.com/gpu-driver-upgrade-state", "cordon-required", true},
           Row{"nvidia.com/gpu-driver-upgrade-state", "upgrade-failed", true},
           Row{"nvidia.com/gpu.deploy.device-plugin", "true", false},
           Row{"nvidia.com/gpu.deploy.device-plugin", "paused-for-mig-change", true},
           Row{"nvidia.com/gpu.workload.config", "container", false},
           Row{"nvidia.com/gpu.workload.config", "vm-passthrough", true},
           Row{"nvidia.com/gpu.workload.config", "vm-vgpu", true},
           Row{"nvidia.com/mig.config.state", "success", false},
           Row{"nvidia.com/mig.config.state", "pending", true},
           Row{"nvidia.com/mig.config.state", "rebooting", true},
           Row{"nvidia.com/mig.config.state", "failed", false},
       }) {
    const NodeFacts node = NodeOf(fmt::format(R"("{}":"{}")", row.label, row.value), "");
    EXPECT_EQ(node.operator_busy, row.busy ? fmt::format("{}={}", row.label, row.value) : "");
  }
  constexpr std::string_view kFailed = R"("nvidia.com/mig.config.state":"failed")";
  EXPECT_TRUE(NodeOf(kFailed, "").problems.empty());
  EXPECT_TRUE(NodeOf(kFailed, R"("nvidia.com/gpu":"0")").problems.empty());
  EXPECT_EQ(NodeOf(kFailed, R"("nvidia.com/gpu":"1")").problems,
            (std::vector<std::string>{
                "expected success, found \"failed\", in label nvidia.com/mig.config.state"}));
}

TEST(NodeDecode, ReadsHamisRegisterAndCordonedDevices) {
  const NodeFacts node =
      NodeOf("", R"("nvidia.com/gpu":"10")",
             R"("hami.io/node-nvidia-register":"GPU-a,10,32768,100,NVIDIA-V100,0,true:",)"
             R"("hami.io/device-cordon":"GPU-a, GPU-b,")");
  ASSERT_TRUE(node.agent.has_value());
  EXPECT_EQ(node.agent->devices.at(0).uuid, GpuUuid("GPU-a"));
  EXPECT_EQ(node.cordoned_devices, (std::vector<GpuUuid>{GpuUuid("GPU-a"), GpuUuid("GPU-b")}));
  EXPECT_EQ(node.operator_busy, "");
}

TEST(NodeDecode, AnUnreadableRegisterKeepsPodsAway) {
  const NodeFacts node =
      NodeOf("", R"("nvidia.com/gpu":"10")", R"("hami.io/node-nvidia-register":"[{}]")");
  EXPECT_FALSE(node.agent.has_value());
  EXPECT_EQ(node.operator_busy, "") << "nobody is changing it";
  EXPECT_EQ(node.agent_unreadable,
            "hami.io/node-nvidia-register: expected a uuid, found none, in device 0.id, in "
            "annotation hami.io/node-nvidia-register");
  EXPECT_EQ(node.problems,
            (std::vector<std::string>{"expected a uuid, found none, in device 0.id, in annotation "
                                      "hami.io/node-nvidia-register"}));
}

// tranche-node is there by the node's label; its register alone may be a left-over.
TEST(NodeDecode, ANodeThatChoosesTrancheNodeIsClosedUntilItHasRegistered) {
  constexpr const char* kLabel = R"("tranche.dev/agent":"true")";
  constexpr const char* kRegister =
      R"("tranche.dev/agent-register":"{\"v\":1,\"devices\":[{\"uuid\":\"GPU-a\",)"
      R"(\"index\":0,\"mib\":81559,\"healthy\":true}]}")";
  constexpr const char* kAmounts = R"("nvidia.com/gpu":"1")";
  const NodeFacts registered = NodeOf(kLabel, kAmounts, kRegister);
  ASSERT_TRUE(registered.agent.has_value());
  EXPECT_EQ(registered.agent->kind, AgentKind::kTranche);
  EXPECT_EQ(registered.agent_unreadable, "");
  EXPECT_EQ(NodeOf(kLabel, kAmounts).agent_unreadable, "tranche.dev/agent=unregistered");
  EXPECT_NE(NodeOf(kLabel, kAmounts, R"("tranche.dev/agent-register":"{}")").agent_unreadable, "");
  EXPECT_FALSE(NodeOf("", kAmounts, kRegister).agent.has_value());
  EXPECT_FALSE(NodeOf(R"("tranche.dev/agent":"false")", kAmounts, kRegister).agent.has_value());
}

// Every sign an agent leaves on a node, in the order in which they count.
struct Sign {
  AgentKind agent;
  std::string annotations;
  std::string amounts;
};
const Sign kSigns[] = {
    {AgentKind::kHami, R"("hami.io/node-nvidia-register":"GPU-h,10,15109,100,NVIDIA-T4,0,true:")",
     R"("nvidia.com/gpu":"10")"},
    {AgentKind::kFourPd, R"("4pd.io/node-nvidia-register":"GPU-4,10,15109,100,NVIDIA-T4,0,true:")",
     R"("nvidia.com/gpu":"10")"},
    {AgentKind::kVolcano,
     R"("volcano.sh/node-vgpu-register":"GPU-v,10,15109,NVIDIA-T4,true,hami-core:")",
     R"("volcano.sh/vgpu-number":"10")"},
    {AgentKind::kVgpuManager,
     R"("nvidia.com/node-device-register":"[{\"id\":0,\"uuid\":\"GPU-m\",\"healthy\":true}]",)"
     R"("nvidia.com/node-config-info":"{\"memoryFactor\":1}")",
     R"("nvidia.com/vgpu-number":"10")"},
    {AgentKind::kGpushare, "", R"("aliyun.com/gpu-count":"1","aliyun.com/gpu-mem":"14")"},
    {AgentKind::kVolcanoOld, "", R"("volcano.sh/gpu-memory":"15109","volcano.sh/gpu-number":"1")"},
    {AgentKind::kTkestack, "", R"("tencent.com/vcuda-core":"100","tencent.com/vcuda-memory":"59")"},
    {AgentKind::kElastic, "",
     R"("elasticgpu.io/gpu-core":"100","elasticgpu.io/gpu-memory":"15109")"},
};

std::string Joined(const std::string& left, const std::string& right) {
  return left.empty() || right.empty() ? left + right : left + "," + right;
}

TEST(NodeDecode, KnowsTheNodesAgentByItsSigns) {
  for (const Sign& sign : kSigns) {
    const NodeFacts node = NodeOf("", sign.amounts, sign.annotations);
    ASSERT_TRUE(node.agent.has_value()) << AgentName(sign.agent);
    EXPECT_EQ(node.agent->kind, sign.agent);
    EXPECT_EQ(node.agent->devices.size(), 1u) << AgentName(sign.agent);
    EXPECT_TRUE(node.problems.empty()) << AgentName(sign.agent) << " " << node.problems[0];
    EXPECT_EQ(node.agent_unreadable, "") << AgentName(sign.agent);
  }
  EXPECT_FALSE(NodeOf("", R"("nvidia.com/gpu":"8")").agent.has_value());
}

// Agents come and go, and their annotations stay. The first counts, and the others are named.
TEST(NodeDecode, OfTheSignsOfTwoAgentsTheFirstCounts) {
  for (std::size_t i = 0; i < std::size(kSigns); ++i) {
    for (std::size_t j = i + 1; j < std::size(kSigns); ++j) {
      const Sign& first = kSigns[i];
      const Sign& second = kSigns[j];
      if (first.amounts == second.amounts) continue;  // HAMi and its ancestor, below
      const NodeFacts node = NodeOf("", Joined(first.amounts, second.amounts),
                                    Joined(second.annotations, first.annotations));
      ASSERT_TRUE(node.agent.has_value());
      EXPECT_EQ(node.agent->kind, first.agent) << AgentName(second.agent);
      // Of several that only advertise amounts one is looked for.
      if (first.annotations.empty()) continue;
      ASSERT_EQ(node.problems.size(), 1u) << AgentName(first.agent);
      EXPECT_EQ(
          node.problems[0],
          fmt::format("expected one node agent, found signs of {} and {}; {} counts",
                      AgentName(first.agent), AgentName(second.agent), AgentName(first.agent)));
    }
  }
  const NodeFacts node =
      NodeOf("", R"("nvidia.com/gpu":"10")", Joined(kSigns[1].annotations, kSigns[0].annotations));
  EXPECT_EQ(node.agent->kind, AgentKind::kHami);
  EXPECT_EQ(node.agent->devices[0].uuid, GpuUuid("GPU-h"));
}

TEST(NodeDecode, AnAgentThatCannotBeReadKeepsPodsAway) {
  struct Row {
    std::string annotations;
    std::string amounts;
    const char* busy;
  };
  const Row rows[] = {
      {R"("4pd.io/node-nvidia-register":"GPU-4,10:")", "", "4pd.io/node-nvidia-register: expected"},
      {R"("volcano.sh/node-vgpu-register":"GPU-v")", "", "volcano.sh/node-vgpu-register: expected"},
      {R"("nvidia.com/node-device-register":"[]")", "",
       "nvidia.com/node-device-register: expected"},
      {"", R"("aliyun.com/gpu-mem":"14")", "gpushare: expected"},
      {"", R"("tencent.com/vcuda-core":"150")", "tkestack: expected"},
      {R"("volcano.sh/gpu-unhealthy-ids":"one")",
       R"("volcano.sh/gpu-memory":"15109","volcano.sh/gpu-number":"1")",
       "volcano-gpushare: expected"},
      // An agent further down the list does not step in.
      {R"("hami.io/node-nvidia-register":"[{}]")",
       R"("aliyun.com/gpu-count":"1","aliyun.com/gpu-mem":"14")",
       "hami.io/node-nvidia-register: expected"},
  };
  for (const Row& row : rows) {
    const NodeFacts node = NodeOf("", row.amounts, row.annotations);
    EXPECT_FALSE(node.agent.has_value()) << row.busy;
    EXPECT_TRUE(node.agent_unreadable.starts_with(row.busy)) << node.agent_unreadable;
    EXPECT_FALSE(node.problems.empty()) << row.busy;
  }
}

TEST(NodeDecode, CountsWhatAgentsAdvertise) {
  const absl::StatusOr<NodeFacts> node =
      TryNode(R"({"metadata":{"name":"n1"},"status":{)"
              R"("allocatable":{"aliyun.com/gpu-count":"2","aliyun.com/gpu-mem":"22"},)"
              R"("capacity":{"aliyun.com/gpu-count":"2","aliyun.com/gpu-mem":"44",)"
              R"("aliyun.com/other":"1"}}})");
  ASSERT_TRUE(node.ok());
  const std::vector<AgentAmount> expected = {{"aliyun.com/gpu-count", {2, 2}},
                                             {"aliyun.com/gpu-mem", {22, 44}}};
  EXPECT_EQ(node->agent_amounts, expected);
  EXPECT_EQ(node->agent->devices[0].memory, Mebibytes::Of(22528)) << "the size of the card stays";
}

TEST(NodeDecode, KnowsWhoseExecutorMakesTheInstancesWeName) {
  EXPECT_TRUE(NodeOf(R"("tranche.dev/mig-layout":"planned")", "").mig_planned);
  EXPECT_FALSE(NodeOf(R"("tranche.dev/mig-layout":"")", "").mig_planned);
  EXPECT_FALSE(NodeOf("", "").mig_planned);
}

TEST(NodeDecode, AGuestOfAKnownTypeIsNoProblem) {
  const auto problems = [](std::string_view present, std::string_view product) {
    return NodeOf(fmt::format(R"("nvidia.com/vgpu.present":"{}","nvidia.com/gpu.product":"{}")",
                              present, product),
                  "")
        .problems;
  };
  EXPECT_TRUE(problems("true", "GRID-A100-10C").empty());
  EXPECT_TRUE(problems("false", "NVIDIA-A100-SXM4-40GB").empty());
  EXPECT_EQ(problems("true", "NVIDIA-A100-SXM4-40GB").size(), 1U);
}

TEST(NodeDecode, WhatCannotBeReadIsUnsetAndAProblem) {
  struct Row {
    std::string_view labels;
    std::string_view allocatable;
    std::string_view problem;
  };
  for (const Row& row : {
           Row{R"("nvidia.com/gpu.memory":"40Gi")", "",
               "expected whole number from 0 to 2147483648, found \"40Gi\", in label "
               "nvidia.com/gpu.memory"},
           Row{R"("nvidia.com/gpu.count":"-1")", "",
               "expected whole number from 0 to 2147483648, found \"-1\", in label "
               "nvidia.com/gpu.count"},
           Row{R"("nvidia.com/gpu.replicas":"many")", "",
               "expected whole number from 0 to 2147483648, found \"many\", in label "
               "nvidia.com/gpu.replicas"},
           Row{R"("nvidia.com/gpu.sharing-strategy":"magic")", "",
               "expected none, time-slicing or mps, found \"magic\", in label "
               "nvidia.com/gpu.sharing-strategy"},
           Row{R"("nvidia.com/mig.strategy":"both")", "",
               "expected none, single or mixed, found \"both\", in label nvidia.com/mig.strategy"},
           Row{R"("nvidia.com/vgpu.present":"true","nvidia.com/gpu.product":"GRID-Z9-10C")", "",
               "expected a known vGPU type, or its GPUs are charged as whole ones, found "
               "\"GRID-Z9-10C\", in label nvidia.com/gpu.product beside nvidia.com/vgpu.present"},
           Row{R"("tranche.dev/mig-layout":"Planned")", "",
               "expected planned, found \"Planned\", in label tranche.dev/mig-layout"},
       }) {
    const NodeFacts node = NodeOf(row.labels, row.allocatable);
    EXPECT_EQ(node.problems, std::vector<std::string>{std::string(row.problem)});
    EXPECT_FALSE(node.memory || node.count || node.replicas || node.mig_planned);
  }
  const NodeFacts amounts = NodeOf("", R"("nvidia.com/gpu":"1.5","nvidia.com/mig-banana":"1")");
  EXPECT_EQ(amounts.gpu->allocatable, 0);
  EXPECT_TRUE(amounts.mig.empty());
  EXPECT_EQ(amounts.problems.size(), 3u);  // capacity and allocatable of gpu, and the profile
}

TEST(NodeDecode, RefusesFieldsOfAnotherJsonType) {
  struct Row {
    std::string_view node;
    std::string_view message;
  };
  for (const Row& row : {
           Row{"7", "expected object, found number 7, in node"},
           Row{"{}", "expected object, found nothing, in node.metadata"},
           Row{R"({"metadata":{}})", "expected a name, found none, in metadata.name"},
           Row{R"({"metadata":{"name":"n","labels":[]}})",
               "expected object, found array, in metadata.labels"},
           Row{R"({"metadata":{"name":"n","labels":{"a":true}}})",
               "expected text, found true, in metadata.labels"},
           Row{R"({"metadata":{"name":"n"},"spec":{"unschedulable":"yes"}})",
               "expected true or false, found text \"yes\", in spec.unschedulable"},
           Row{R"({"metadata":{"name":"n"},"status":{"conditions":{}}})",
               "expected array, found object, in status.conditions"},
           Row{R"({"metadata":{"name":"n"},"status":{"allocatable":{"cpu":[]}}})",
               "expected quantity, found array, in status.allocatable \"cpu\""},
       }) {
    const absl::StatusOr<NodeFacts> node = TryNode(row.node);
    ASSERT_FALSE(node.ok()) << row.node;
    EXPECT_EQ(std::string(node.status().message()), row.message);
  }
}

TEST(NodeDecode, KeepsEveryLabelAndTheTaintsThatBind) {
  const NodeFacts node =
      TryNode(R"({"metadata":{"name":"n1","labels":{"zone":"a","empty":"","gone":null,)"
              R"("nvidia.com/gpu.product":"L4"}},"spec":{"taints":[)"
              R"({"key":"gpu","value":"l4","effect":"NoSchedule"},)"
              R"({"key":"wish","effect":"PreferNoSchedule"},)"
              R"({"key":"down","effect":"NoExecute","timeAdded":"2026-01-02T03:04:05Z"}]}})")
          .value();
  EXPECT_EQ(node.labels,
            LabelText(Labels{{"zone", "a"}, {"empty", ""}, {"nvidia.com/gpu.product", "L4"}}));
  EXPECT_EQ(node.taints,
            (std::vector<Taint>{{"gpu", "l4", "NoSchedule"}, {"down", "", "NoExecute"}}));
  const NodeFacts bare = TryNode(R"({"metadata":{"name":"n1"},"spec":{"taints":null}})").value();
  EXPECT_EQ(bare.labels, LabelText());
  EXPECT_TRUE(bare.taints.empty());
  EXPECT_FALSE(TryNode(R"({"metadata":{"name":"n1"},"spec":{"taints":{}}})").ok());
  EXPECT_FALSE(TryNode(R"({"metadata":{"name":"n1"},"spec":{"taints":[{"key":1,)"
                       R"("effect":"NoSchedule"}]}})")
                   .ok());
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
