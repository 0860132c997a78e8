// The pod as a whole: state, mixed request styles, wrong JSON types, hostile input.
#include "scheduler/wire/pods/pod_decode.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "scheduler/wire/pods/request_styles.h"
#include "test/unit/scheduler/wire/pods/request_text.h"

namespace tranche::wire {
namespace THIS_FILE {

TEST(PodDecode, ReadsWhoAndWhereAPodIs) {
  const absl::StatusOr<PodFacts> pod = TryPod(R"({
    "apiVersion":"v1","kind":"Pod",
    "metadata":{"name":"train-0","namespace":"team-a","uid":"8d7f",
      "creationTimestamp":"2026-01-02T03:04:05Z",
      "labels":{"app":"x"},"ownerReferences":[{"kind":"Job"}],
      "managedFields":[{"manager":"kubectl"}]},
    "spec":{"nodeName":"n1","priorityClassName":"training","schedulerName":"volcano","containers":[
      {"name":"main","image":"i","resources":{"limits":
        {"cpu":"4","memory":"8Gi","nvidia.com/gpu":"1"}}}]},
    "status":{"phase":"Running","nominatedNodeName":"n2"}})");
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->request.uid, PodUid("8d7f"));
  EXPECT_EQ(pod->request.name.str(), "team-a/train-0");
  EXPECT_EQ(pod->request.priority_class, "training");
  EXPECT_EQ(pod->request.scheduler, "volcano");
  EXPECT_EQ(pod->node, NodeName("n1"));
  EXPECT_EQ(pod->nominated, NodeName("n2"));
  EXPECT_EQ(pod->phase, PodPhase::kRunning);
  EXPECT_EQ(FormatTime(pod->created.value()), "2026-01-02T03:04:05Z");
  EXPECT_FALSE(pod->terminating);
  EXPECT_FALSE(pod->gated);
  EXPECT_TRUE(pod->holds_devices());
}

TEST(PodDecode, TheDefaultSchedulerHasNoName) {
  for (const char* spec :
       {R"({"schedulerName":"default-scheduler"})", R"({"schedulerName":""})", "{}"}) {
    const absl::StatusOr<PodFacts> pod =
        TryPod(std::string(R"({"metadata":{"name":"p"},"spec":)") + spec + "}");
    ASSERT_TRUE(pod.ok()) << pod.status();
    EXPECT_EQ(pod->request.scheduler, "") << spec;
  }
}

TEST(PodDecode, ABarePodIsPendingInTheDefaultNamespace) {
  const absl::StatusOr<PodFacts> pod = TryPod(R"({"metadata":{"name":"p"},"spec":null})");
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->request.name.str(), "default/p");
  EXPECT_TRUE(pod->request.uid.empty());
  EXPECT_EQ(pod->phase, PodPhase::kPending);
  EXPECT_FALSE(pod->created.has_value());
  EXPECT_FALSE(pod->holds_devices());
  EXPECT_FALSE(pod->request.asks_gpu());
}

// Kubernetes' effective request (kube-client-protocol section 18), of pods without GPUs too.
TEST(PodDecode, AddsUpTheCpuAPodRequests) {
  struct Row {
    std::string_view spec;
    int64_t milli;
  };
  for (const Row& row : {
           Row{R"("containers":[{"name":"a"}])", 0},
           Row{R"("containers":[{"name":"a","resources":{"requests":{"cpu":"500m"}}},
                               {"name":"b","resources":{"requests":{"cpu":2}}}])",
               2500},
           Row{R"("containers":[{"name":"a","resources":{"limits":{"cpu":"1.5"}}}])", 1500},
           Row{R"("containers":[{"name":"a","resources":{"limits":{"cpu":"4"},
                                                         "requests":{"cpu":"1"}}}])",
               1000},
           // An init container runs before the others, beside the sidecars started so far.
           Row{R"("initContainers":[
                   {"name":"s","restartPolicy":"Always","resources":{"requests":{"cpu":"1"}}},
                   {"name":"i","resources":{"requests":{"cpu":"7"}}}],
                  "containers":[{"name":"a","resources":{"requests":{"cpu":"2"}}}])",
               8000},
           Row{R"("overhead":{"cpu":"250m"},
                  "containers":[{"name":"a","resources":{"requests":{"cpu":"2"}}}])",
               2250},
           // What the pod as a whole says stands above what its containers say.
           Row{R"("resources":{"requests":{"cpu":"3"}},
                  "containers":[{"name":"a","resources":{"requests":{"cpu":"2"}}}])",
               3000},
           // CPU is kube-scheduler's to judge: nonsense counts as nothing.
           Row{R"("containers":[{"name":"a","resources":{"requests":{"cpu":"-3"}}}])", 0},
           Row{R"("containers":[{"name":"a","resources":{"requests":{"cpu":"much"}}}])", 0},
       }) {
    const absl::StatusOr<PodFacts> pod =
        TryPod(fmt::format(R"({{"metadata":{{"name":"p"}},"spec":{{{}}}}})", row.spec));
    ASSERT_TRUE(pod.ok()) << pod.status();
    EXPECT_EQ(pod->request.cpu.count(), row.milli) << row.spec;
  }
}

TEST(PodDecode, ReadsPhasesGatesAndRefusals) {
  struct Row {
    std::string_view phase;
    std::string_view reason;
    PodPhase expected;
    bool refused;
  };
  for (const Row& row : {
           Row{"", "", PodPhase::kPending, false},
           Row{"Pending", "", PodPhase::kPending, false},
           Row{"Running", "OutOfcpu", PodPhase::kRunning, false},
           Row{"Succeeded", "", PodPhase::kSucceeded, false},
           Row{"Failed", "Evicted", PodPhase::kFailed, false},
           Row{"Failed", "OutOfnvidia.com/gpu", PodPhase::kFailed, true},
           Row{"Failed", "UnexpectedAdmissionError", PodPhase::kFailed, true},
           Row{"Unknown", "", PodPhase::kUnknown, false},
           Row{"Paused", "", PodPhase::kUnknown, false},
       }) {
    const absl::StatusOr<PodFacts> pod = TryPod(
        fmt::format(R"({{"metadata":{{"name":"p"}},"status":{{"phase":"{}","reason":"{}"}}}})",
                    row.phase, row.reason));
    ASSERT_TRUE(pod.ok());
    EXPECT_EQ(pod->phase, row.expected) << row.phase;
    EXPECT_EQ(pod->refused_by_kubelet, row.refused) << row.phase << " " << row.reason;
  }
  const auto gated = [](std::string_view gates) {
    return TryPod(fmt::format(
                      R"({{"metadata":{{"name":"p","deletionTimestamp":"2026-01-02T03:04:05Z"}},)"
                      R"("spec":{{"schedulingGates":{}}}}})",
                      gates))
        .value();
  };
  EXPECT_TRUE(gated(R"([{"name":"quota"}])").gated);
  EXPECT_FALSE(gated("[]").gated);
  EXPECT_FALSE(gated("null").gated);
  EXPECT_TRUE(gated("[]").terminating);
}

TEST(PodDecode, RefusesPodsThatMixRequestStyles) {
  struct Row {
    std::string_view annotations;
    std::string_view limits;
    std::string_view one;
    std::string_view other;
  };
  constexpr std::string_view kFraction = R"("tranche.dev/gpu-fraction":"0.5")";
  for (const Row& row : {
           Row{kFraction, R"("nvidia.com/gpumem":1)", "tranche.dev/gpu-fraction",
               "nvidia.com/gpumem"},
           Row{kFraction, R"("nvidia.com/mig-1g.5gb":1)", "tranche.dev/gpu-fraction",
               "nvidia.com/mig-1g.5gb"},
           Row{kFraction, R"("nvidia.com/gpu.shared":1)", "tranche.dev/gpu-fraction",
               "nvidia.com/gpu.shared"},
           Row{"", R"("nvidia.com/gpucores":10,"nvidia.com/mig-1g.5gb":1)", "nvidia.com/gpucores",
               "nvidia.com/mig-1g.5gb"},
           Row{"", R"("nvidia.com/gpumem":10,"nvidia.com/gpu.shared":1)", "nvidia.com/gpumem",
               "nvidia.com/gpu.shared"},
           Row{"", R"("nvidia.com/gpu":1,"amd.com/gpu":1)", "nvidia.com/gpu", "amd.com/gpu"},
           Row{"", R"("nvidia.com/gpu":1,"gpu.intel.com/i915":1)", "nvidia.com/gpu",
               "gpu.intel.com/i915"},
           Row{"", R"("nvidia.com/mig-1g.5gb":1,"amd.com/gpu":1)", "nvidia.com/mig-1g.5gb",
               "amd.com/gpu"},
           Row{"", R"("nvidia.com/gpumem":1,"volcano.sh/vgpu-memory":1)", "nvidia.com/gpumem",
               "volcano.sh/vgpu-memory"},
           Row{kFraction, R"("aliyun.com/gpu-mem":1)", "tranche.dev/gpu-fraction",
               "aliyun.com/gpu-mem"},
           Row{"", R"("nvidia.com/gpu":1,"tencent.com/vcuda-core":10)", "nvidia.com/gpu",
               "tencent.com/vcuda-core"},
           Row{"", R"("nvidia.com/gpu":1,"elasticgpu.io/gpu-core":10)", "nvidia.com/gpu",
               "elasticgpu.io/gpu-core"},
           Row{"", R"("nvidia.com/gpu":1,"nvidia.com/vgpu-number":1)", "nvidia.com/gpu",
               "nvidia.com/vgpu-number"},
           Row{"", R"("nvidia.com/mig-1g.5gb":1,"koordinator.sh/gpu-memory":"8Gi")",
               "nvidia.com/mig-1g.5gb", "koordinator.sh/gpu-memory"},
           Row{"", R"("koordinator.sh/gpu":50,"volcano.sh/vgpu-number":1)",
               "volcano.sh/vgpu-number", "koordinator.sh/gpu"},
           Row{"", R"("volcano.sh/gpu-memory":1,"volcano.sh/vgpu-number":1)",
               "volcano.sh/vgpu-number", "volcano.sh/gpu-memory"},
           Row{"", R"("nvidia.com/vgpu-memory":1,"nvidia.com/gpumem":1)", "nvidia.com/gpumem",
               "nvidia.com/vgpu-memory"},
           Row{R"("gpu-memory":"100","alibabacloud.com/gpu-milli":"5")", "", "gpu-memory",
               "alibabacloud.com/gpu-milli"},
           Row{R"("hivedscheduler.microsoft.com/pod-scheduling-spec":"")",
               R"("aliyun.com/gpu-mem":1)", "aliyun.com/gpu-mem",
               "hivedscheduler.microsoft.com/pod-scheduling-spec"},
           Row{"", R"("aliyun.com/gpu-mem":1,"aliyun.com/gpu-core.percentage":10)",
               "aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage"},
           Row{"", R"("volcano.sh/vgpu-number":1,"volcano.sh/vgpu-speed":1)",
               "volcano.sh/vgpu-number", "volcano.sh/vgpu-speed"},
           Row{"", R"("nvidia.com/gpu":1,"koordinator.sh/gpu":100,"aliyun.com/gpu-mem":1)",
               "nvidia.com/gpu", "aliyun.com/gpu-mem"},
           Row{R"("gpu-fraction":"0.5")", R"("nvidia.com/gpu":1)", "nvidia.com/gpu",
               "gpu-fraction"},
           Row{R"("gpu-memory":"100","tranche.dev/gpu-fraction":"0.5")", "",
               "tranche.dev/gpu-fraction", "gpu-memory"},
           Row{R"("alibabacloud.com/gpu-milli":"500")", R"("nvidia.com/gpu":1)", "nvidia.com/gpu",
               "alibabacloud.com/gpu-milli"},
           Row{"", R"("nvidia.com/gpu":"x","amd.com/gpu":"y")", "nvidia.com/gpu", "amd.com/gpu"},
       }) {
    const PodRequest request = RequestOf(row.annotations, OneContainer(row.limits));
    ASSERT_EQ(RequestText(request), "refused MixedDialects") << row.annotations << row.limits;
    EXPECT_EQ(request.refusal->detail,
              fmt::format("expected keys of one request style, found \"{}\" and \"{}\", in the pod",
                          row.one, row.other));
    EXPECT_TRUE(request.asks_gpu());
  }
}

TEST(PodDecode, OtherStylesAloneAreNotOurBusiness) {
  for (const std::string_view limits :
       {R"("amd.com/gpu":1)", R"("gpu.intel.com/i915":1)", R"("mig.das.com/1g.5gb":1)",
        R"("tke.cloud.tencent.com/qgpu-core":8)", R"("aliyun.com/gpu-core.percentage":10)",
        R"("elasticgpu.io/qgpu-core":1)", R"("koordinator.sh/rdma":50)",
        R"("amd.com/gpu":1,"nvidia.com/gpu":0)"}) {
    EXPECT_EQ(RequestText(RequestOf("", OneContainer(limits))), "nothing") << limits;
  }
}

TEST(PodDecode, AnnotationsOfOtherToolsAreLeftAlone) {
  const PodRequest request =
      RequestOf(R"("mps":"true","gpu-fraction-container-name":"x","gpu":"1","a":"b",)"
                R"("alibabacloud.com/gpu-card-model":"T4","tranche.dev/allocation2":"x")",
                OneContainer(""));
  EXPECT_EQ(RequestText(request), "nothing");
}

// Every key of the table is found, and null takes one away.
TEST(PodDecode, FindsEveryAnnotationByItsName) {
  for (std::size_t i = 0; i < kPodKeys.size(); ++i) {
    PodAnnotations annotations;
    annotations.Set(kPodKeys[i], "v");
    for (std::size_t j = 0; j < kPodKeys.size(); ++j) {
      EXPECT_EQ(annotations.Get(static_cast<PodKey>(j)).has_value(), i == j) << kPodKeys[i];
    }
    annotations.Set(kPodKeys[i], std::nullopt);
    EXPECT_FALSE(annotations.Get(static_cast<PodKey>(i)).has_value());
    annotations.Set(std::string(kPodKeys[i]) + "x", "v");
    annotations.Set(kPodKeys[i].substr(1), "v");
    EXPECT_FALSE(annotations.Get(static_cast<PodKey>(i)).has_value());
  }
}

TEST(PodDecode, WholeAndMigInOnePodAreBothCounted) {
  const PodRequest request =
      RequestOf("", R"("containers":[{"name":"a","resources":{"limits":{"nvidia.com/gpu":1}}},)"
                    R"({"name":"b","resources":{"limits":{"nvidia.com/mig-1g.5gb":2}}}])");
  EXPECT_EQ(RequestText(request), "a: 1 gpu; b: 2 1g.5gb");
}

constexpr std::string_view kRecordOfTwo =
    R"("tranche.dev/allocation":"{\"v\":1,\"epoch\":7,\"leaf\":\"team-a\",)"
    R"(\"knowledge\":\"exact\",)"
    R"(\"containers\":[{\"name\":\"main\",\"devices\":[{\"index\":2,\"uuid\":\"GPU-b\",)"
    R"(\"milli\":500,\"mib\":1000,\"mig\":null}]}]}")";

TEST(PodDecode, ABoundPodWhoseWishesWereTakenBackStillHasItsRecord) {
  const std::string bare = R"("nodeName":"n1","containers":[{"name":"main"}])";
  const PodFacts pod = TryPod(PodJson(kRecordOfTwo, bare)).value();
  EXPECT_TRUE(pod.request.asks_gpu());
  ASSERT_TRUE(pod.request.refusal.has_value());
  EXPECT_THAT(pod.request.refusal->detail, testing::HasSubstr("found none"));
  EXPECT_TRUE(pod.allocation.has_value());
  const std::string unbound = R"("containers":[{"name":"main"}])";
  EXPECT_FALSE(TryPod(PodJson(kRecordOfTwo, unbound)).value().request.asks_gpu()) << "a copy";
}

// So we write over what a user had written on a pod that asks for nothing.
TEST(PodDecode, ARecordOfNoDevicesOnAPodThatAsksForNothingSaysNothing) {
  constexpr std::string_view kNothing =
      R"("tranche.dev/allocation":"{\"v\":1,\"epoch\":7,\"leaf\":\"\",)"
      R"(\"knowledge\":\"exact\",\"containers\":[]}")";
  const std::string bare = R"("nodeName":"n1","containers":[{"name":"main"}])";
  const PodFacts pod = TryPod(PodJson(kNothing, bare)).value();
  EXPECT_FALSE(pod.request.asks_gpu());
  EXPECT_FALSE(pod.allocation.has_value());
  EXPECT_EQ(pod.allocation_problem, "");
  const std::string asks = R"("nodeName":"n1",)" + OneContainer(R"("nvidia.com/gpu":1)");
  EXPECT_TRUE(TryPod(PodJson(kNothing, asks)).value().allocation.has_value()) << "it has one";
}

TEST(PodDecode, AnAgentThatNamesOtherDevicesThanTheRecordIsHeard) {
  const std::string bound = R"("nodeName":"n1",)" + OneContainer(R"("nvidia.com/gpumem":3000)");
  const auto disputed = [&](std::string_view uuid) {
    const std::string hami = fmt::format(
        R"("hami.io/vgpu-devices-allocated":"{},NVIDIA,3000,30:;",{})", uuid, kRecordOfTwo);
    return TryPod(PodJson(hami, bound)).value().disputed;
  };
  EXPECT_FALSE(disputed("GPU-b").has_value());
  ASSERT_TRUE(disputed("GPU-a").has_value());
  EXPECT_EQ(disputed("GPU-a")->containers.at(0).devices.at(0).uuid, GpuUuid("GPU-a"));
}

TEST(PodDecode, BelievesAnAllocationOnlyTogetherWithANode) {
  constexpr std::string_view kHami = R"("hami.io/vgpu-devices-allocated":"GPU-a,NVIDIA,3000,30:;")";
  constexpr std::string_view kOurs =
      R"("tranche.dev/allocation":"{\"v\":1,\"epoch\":7,\"leaf\":\"team-a\",)"
      R"(\"knowledge\":\"exact\",)"
      R"(\"containers\":[{\"name\":\"main\",\"devices\":[{\"index\":2,\"uuid\":\"GPU-b\",)"
      R"(\"milli\":500,\"mib\":1000,\"mig\":null}]}]}")";
  const std::string unbound = OneContainer(R"("nvidia.com/gpumem":3000)");
  const std::string bound = R"("nodeName":"n1",)" + unbound;
  const auto decode = [](std::string_view annotations, std::string_view spec) {
    return TryPod(PodJson(annotations, spec)).value();
  };
  EXPECT_FALSE(decode(kHami, unbound).allocation.has_value());
  EXPECT_FALSE(decode(kOurs, unbound).allocation.has_value());
  EXPECT_EQ(decode("\"tranche.dev/allocation\":\"{\"", "\"nodeName\":\"\"").allocation_problem,
            "expected no record on a pod without a node, found one");

  const PodFacts hami = decode(kHami, bound);
  ASSERT_TRUE(hami.allocation.has_value()) << hami.allocation_problem;
  EXPECT_EQ(hami.allocation->containers.at(0).devices.at(0).uuid, GpuUuid("GPU-a"));
  const PodFacts both = decode(fmt::format("{},{}", kHami, kOurs), bound);
  ASSERT_TRUE(both.allocation.has_value()) << both.allocation_problem;
  EXPECT_EQ(both.allocation->epoch, 7);
  EXPECT_EQ(both.allocation->containers.at(0).devices.at(0).uuid, GpuUuid("GPU-b"));
}

TEST(PodDecode, SaysHowFarTheAgentIsWithABoundPod) {
  struct Row {
    std::string_view annotations;
    std::string_view node;
    AgentProgress progress;
  };
  for (const Row& row : {
           Row{R"("hami.io/bind-phase":"allocating")", "n1", AgentProgress::kWaiting},
           Row{R"("hami.io/bind-phase":"success")", "n1", AgentProgress::kServed},
           Row{R"("hami.io/bind-phase":"failed")", "n1", AgentProgress::kFailed},
           Row{R"("hami.io/bind-phase":"allocating")", "", AgentProgress::kUnknown},
           Row{"", "n1", AgentProgress::kUnknown},
       }) {
    const std::string spec =
        fmt::format(R"("nodeName":"{}",{})", row.node, OneContainer(R"("nvidia.com/gpumem":3000)"));
    EXPECT_EQ(TryPod(PodJson(row.annotations, spec)).value().progress, row.progress)
        << row.annotations << row.node;
  }
}

TEST(PodDecode, AnUnreadableAllocationIsAProblemNotAnError) {
  const PodFacts pod =
      TryPod(PodJson(R"("tranche.dev/allocation":"{\"v\":2}",)"
                     R"("hami.io/vgpu-devices-allocated":"GPU-a,NVIDIA,3000,30:;")",
                     R"("nodeName":"n1","containers":[{"name":"main"}])"))
          .value();
  EXPECT_FALSE(pod.allocation.has_value());
  EXPECT_EQ(pod.allocation_problem,
            "expected whole number from 1 to 1, found number 2, in allocation.v, in annotation "
            "tranche.dev/allocation");
}

TEST(PodDecode, RefusesFieldsOfAnotherJsonType) {
  struct Row {
    std::string_view pod;
    std::string_view message;
  };
  for (const Row& row : {
           Row{"[]", "expected object, found array, in pod"},
           Row{"\"pod\"", "expected object, found text \"pod\", in pod"},
           Row{"{}", "expected object, found nothing, in pod.metadata"},
           Row{R"({"metadata":null})", "expected object, found nothing, in pod.metadata"},
           Row{R"({"metadata":{}})", "expected a name, found none, in metadata.name"},
           Row{R"({"metadata":{"name":7}})", "expected text, found number 7, in metadata.name"},
           Row{R"({"metadata":{"name":"p","uid":true}})",
               "expected text, found true, in metadata.uid"},
           Row{R"({"metadata":{"name":"p","annotations":[]}})",
               "expected object, found array, in metadata.annotations"},
           Row{R"({"metadata":{"name":"p","annotations":{"a":1}}})",
               "expected text, found number 1, in metadata.annotations"},
           Row{R"({"metadata":{"name":"p"},"spec":[]})",
               "expected object, found array, in pod.spec"},
           Row{R"({"metadata":{"name":"p"},"spec":{"containers":{}}})",
               "expected array, found object, in spec.containers"},
           Row{R"({"metadata":{"name":"p"},"spec":{"containers":[1]}})",
               "expected object, found number 1, in containers"},
           Row{R"({"metadata":{"name":"p"},"spec":{"containers":[{"resources":"big"}]}})",
               "expected object, found text \"big\", in containers.resources"},
           Row{R"({"metadata":{"name":"p"},"spec":{"containers":[{"resources":{"limits":[]}}]}})",
               "expected object, found array, in resources.limits"},
           Row{R"({"metadata":{"name":"p"},"spec":{"containers":[{"resources":{"limits":)"
               R"({"cpu":true}}}]}})",
               "expected quantity, found true, in limits \"cpu\""},
           Row{R"({"metadata":{"name":"p"},"spec":{"initContainers":[{"restartPolicy":1}]}})",
               "expected text, found number 1, in initContainers.restartPolicy"},
           Row{R"({"metadata":{"name":"p"},"status":{"phase":{}}})",
               "expected text, found object, in status.phase"},
       }) {
    const absl::StatusOr<PodFacts> pod = TryPod(row.pod);
    ASSERT_FALSE(pod.ok()) << row.pod;
    EXPECT_EQ(pod.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(pod.status().message(), std::string(row.message));
  }
}

TEST(PodDecode, SurvivesEveryOneByteChangeAndCut) {
  const std::string pod =
      PodJson(R"("tranche.dev/gpu-fraction":"0.5","tranche.dev/allocation":"{\"v\":1}",)"
              R"("hami.io/gpu-scheduler-policy":"binpack,numa","tranche.dev/model":"h100,a100")",
              R"("nodeName":"n1","initContainers":[{"name":"i","restartPolicy":"Always"}],)"
              R"("containers":[{"name":"m","resources":{"limits":{"nvidia.com/gpu":"1",)"
              R"("nvidia.com/mig-1g.5gb.shared":2e0},"requests":{"nvidia.com/gpu":1}}}])");
  std::mt19937 random(20260102);
  int decoded = 0;
  for (std::size_t cut = 0; cut < pod.size(); ++cut) {
    EXPECT_FALSE(TryPod(std::string_view(pod).substr(0, cut)).ok()) << cut;
  }
  for (std::size_t at = 0; at < pod.size(); ++at) {
    for (int tries = 0; tries < 8; ++tries) {
      std::string changed = pod;
      changed[at] = static_cast<char>(random() % 256);
      decoded += TryPod(changed).ok() ? 1 : 0;
    }
  }
  EXPECT_GT(decoded, 0);
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
