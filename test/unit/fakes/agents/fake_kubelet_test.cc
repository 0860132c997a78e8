// kubelet and agent together: what becomes of pods whose scheduler keeps the agent's slot rule, and
// of those whose scheduler does not.
#include "test/fakes/agents/fake_kubelet.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "test/fakes/agents/elastic_agent.h"
#include "test/fakes/agents/gpushare_agent.h"
#include "test/fakes/agents/hami_agent.h"
#include "test/fakes/agents/koordlet.h"
#include "test/fakes/agents/tkestack_agent.h"
#include "test/fakes/agents/vgpu_manager_agent.h"
#include "test/fakes/agents/volcano_agent.h"
#include "test/fakes/agents/volcano_old_agent.h"
#include "test/unit/fakes/agents/agent_bench.h"

namespace tranche::fakes {
namespace THIS_FILE {

// A scheduler that gives pod `n` (0, 1) its own card and writes what the agent wants.
struct Style {
  const char* name;
  std::function<std::unique_ptr<NodeAgent>(FakePods&)> agent;
  Text limits;
  std::function<Text(int n)> notes;
  bool confusable;  // two equal pods on their way may be taken for each other
};

std::string Card(int n) { return std::to_string(n); }
std::string HamiList(int n) { return "GPU-" + Card(n) + ",NVIDIA,1000,0:"; }

template <typename Agent>
std::unique_ptr<NodeAgent> Make(FakePods& pods) {
  return std::make_unique<Agent>(pods);
}

Text HamiNotes(int n) {
  return {{"hami.io/vgpu-node", "n1"},
          {"hami.io/bind-time", "1"},
          {"hami.io/bind-phase", "allocating"},
          {"hami.io/vgpu-devices-to-allocate", HamiList(n) + ";"}};
}

std::vector<Style> Styles() {
  return {
      {"hami",
       [](FakePods& pods) { return std::make_unique<HamiAgent>(pods, 8); },
       {{"nvidia.com/gpu", "1"}},
       HamiNotes,
       true},
      {"4pd",
       Make<FourPdAgent>,
       {{"nvidia.com/gpu", "1"}},
       [](int n) -> Text {
         return {{"4pd.io/vgpu-node", "n1"},
                 {"4pd.io/bind-time", "1"},
                 {"4pd.io/bind-phase", "allocating"},
                 {"hami.sh/vgpu-devices-to-allocate", HamiList(n) + ";"}};
       },
       true},
      {"volcano",
       [](FakePods& pods) { return std::make_unique<VolcanoAgent>(pods); },
       {{"volcano.sh/vgpu-number", "1"}},
       [](int n) -> Text {
         return {{"volcano.sh/vgpu-node", "n1"},
                 {"volcano.sh/vgpu-time", Card(n + 1)},
                 {"volcano.sh/devices-to-allocate", HamiList(n)}};
       },
       true},
      {"volcano-old",
       [](FakePods& pods) { return std::make_unique<VolcanoOldAgent>(pods); },
       {{"volcano.sh/gpu-memory", "8"}},
       [](int n) -> Text {
         return {{"volcano.sh/predicate-time", Card(n + 1)}, {"volcano.sh/gpu-index", Card(n)}};
       },
       true},
      {"gpushare",
       [](FakePods& pods) { return std::make_unique<GpushareAgent>(pods); },
       {{"aliyun.com/gpu-mem", "8"}},
       [](int n) -> Text {
         return {{"ALIYUN_COM_GPU_MEM_IDX", Card(n)},
                 {"ALIYUN_COM_GPU_MEM_ASSIGNED", "false"},
                 {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", Card(n + 1)}};
       },
       true},
      {"tkestack",
       Make<TkestackAgent>,
       {{"tencent.com/vcuda-core", "60"}, {"tencent.com/vcuda-memory", "4"}},
       [](int n) -> Text {
         return {{"tencent.com/predicate-gpu-idx-0", Card(n)},
                 {"tencent.com/predicate-time", Card(n + 1)},
                 {"tencent.com/gpu-assigned", "false"}};
       },
       true},
      {"vgpu-manager",
       Make<VgpuManagerAgent>,
       {{"nvidia.com/vgpu-number", "1"}},
       [](int n) -> Text {
         return {{"nvidia.com/predicate-node", "n1"},
                 {"nvidia.com/predicate-time", Card(n + 1)},
                 {"nvidia.com/pre-allocated", "main[" + Card(n) + "_GPU-" + Card(n) + "_10_1024]"}};
       },
       true},
      {"elastic",
       Make<ElasticAgent>,
       {{"elasticgpu.io/gpu-core", "60"}},
       [](int n) -> Text {
         return {{"elasticgpu.io/container-main", Card(n)}, {"elasticgpu.io/assumed", "true"}};
       },
       false},
      {"koordinator",
       Make<Koordlet>,
       {{"koordinator.sh/gpu-core", "60"}},
       [](int n) -> Text {
         return {{"scheduling.koordinator.sh/device-allocated",
                  R"({"gpu":[{"minor":)" + Card(n) +
                      R"(,"resources":{"koordinator.sh/gpu-core":"60",)"
                      R"("koordinator.sh/gpu-memory":"1Gi",)"
                      R"("koordinator.sh/gpu-memory-ratio":"6"}}]})"}};
       },
       false},
  };
}

class KubeletBench {
 public:
  KubeletBench(const Style& style, KubeletOptions options)
      : style_(style),
        agent_(style.agent(pods_)),
        kubelet_(AddedNode(pods_, style), *agent_, "n1", options) {}

  void Bind(int n) {
    const std::string name = n == 0 ? "first" : "later";
    AddBound(pods_, Named(name, {Asking("main", style_.limits)}), style_.notes(n));
  }
  // Steps of 10 ms.
  void Run(int steps) {
    for (int i = 0; i < steps; ++i) kubelet_.Step(now_ += 10);
  }
  const KubeletReport& report() const { return kubelet_.report(); }
  FakePods& pods() { return pods_; }

 private:
  static FakePods& AddedNode(FakePods& pods, const Style& style) {
    FakeNode node = CardNode(2);
    for (const auto& [resource, amount] : style.limits) node.capacity[resource] = 200;
    pods.AddNode(std::move(node));
    return pods;
  }

  const Style& style_;
  FakePods pods_;
  std::unique_ptr<NodeAgent> agent_;
  FakeKubelet kubelet_;
  int64_t now_ = 0;
};

TEST(FakeKubelet, OneByOneEveryAgentServesTheRightPod) {
  for (const Style& style : Styles()) {
    SCOPED_TRACE(style.name);
    KubeletBench bench(style, {.seed = 3, .most_notice_ms = 40, .most_start_ms = 40});
    for (const int n : {0, 1}) {
      bench.Bind(n);
      bench.Run(20);
    }
    EXPECT_EQ(bench.report().served, 2);
    EXPECT_EQ(bench.report().faults, std::vector<std::string>{});
    EXPECT_EQ(bench.pods().Pod("u-later")->phase, FakePhase::kRunning);
  }
}

// Both on their way, and kubelet hears of the later one first in about half of the runs.
TEST(FakeKubelet, TwoOnTheirWayAreTakenForEachOtherWhereTheAgentGuesses) {
  for (const Style& style : Styles()) {
    SCOPED_TRACE(style.name);
    int wrong = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      KubeletBench bench(style, {.seed = seed, .most_notice_ms = 100, .most_start_ms = 20});
      bench.Bind(0);
      bench.Bind(1);
      bench.Run(30);
      if (bench.report().wrong_pod > 0) ++wrong;
    }
    EXPECT_EQ(wrong > 0, style.confusable) << wrong << " of 20";
  }
}

TEST(FakeKubelet, RunsInitContainersFirstAndOffersTheirDevicesAgain) {
  FakePods pods;
  pods.AddNode(CardNode(1, {{"nvidia.com/gpu", 1}}));
  HamiAgent agent(pods, 9);
  FakeKubelet kubelet(pods, agent, "n1");
  Text notes = HamiNotes(0);
  notes["hami.io/vgpu-devices-to-allocate"] = "GPU-0,NVIDIA,9000,0:;GPU-0,NVIDIA,9000,0:;";
  AddBound(pods,
           Named("a", {Asking("prepare", {{"nvidia.com/gpu", "1"}}, true),
                       Asking("main", {{"nvidia.com/gpu", "1"}})}),
           notes);
  kubelet.Step(10);
  kubelet.Step(20);
  EXPECT_EQ(kubelet.report().served, 1);
  // 9000 MiB, not 18000 of 16384: the init container has ended before the other begins.
  EXPECT_EQ(kubelet.report().faults, std::vector<std::string>{});
}

TEST(FakeKubelet, SeesWhenCardsAreGivenOutTwice) {
  FakePods pods;
  pods.AddNode(CardNode(2, {{"nvidia.com/gpu", 20}}));
  HamiAgent agent(pods, 9);
  FakeKubelet kubelet(pods, agent, "n1", {.least_run_ms = 100, .most_run_ms = 100});
  int64_t now = 0;
  const auto add = [&](const std::string& name, const std::string& memory) {
    Text notes = HamiNotes(0);
    notes["hami.io/vgpu-devices-to-allocate"] = "GPU-0,NVIDIA," + memory + ",0:;";
    AddBound(pods, Named(name, {Asking("main", {{"nvidia.com/gpu", "1"}})}), notes);
    pods.PatchNode("n1", {{"hami.io/mutex.lock", "t,team-a," + name}});
    kubelet.Step(now += 10);
    kubelet.Step(now += 10);
  };
  add("a", "10000");
  EXPECT_EQ(kubelet.report().overcommits, 0);
  add("b", "7000");
  EXPECT_EQ(kubelet.report().overcommits, 1);
  kubelet.Step(now += 200);  // both end
  EXPECT_EQ(pods.Pod("u-a")->phase, FakePhase::kSucceeded);
  EXPECT_TRUE(kubelet.idle());
  add("c", "16000");
  EXPECT_EQ(kubelet.report().overcommits, 1);
}

TEST(FakeKubelet, RefusedPodsFail) {
  FakePods pods;
  pods.AddNode(CardNode(2, {{"nvidia.com/gpu", 1}}));
  HamiAgent agent(pods, 9);
  FakeKubelet kubelet(pods, agent, "n1");
  AddBound(pods, Named("unknown", {Asking("main", {{"nvidia.com/gpu", "1"}})}), {});
  AddBound(pods, Named("large", {Asking("main", {{"nvidia.com/gpu", "2"}})}), {});
  kubelet.Step(10);
  kubelet.Step(20);
  EXPECT_EQ(kubelet.report().admission_errors, 2);
  EXPECT_EQ(pods.Pod("u-unknown")->reason, "UnexpectedAdmissionError");
  EXPECT_EQ(pods.Pod("u-large")->phase, FakePhase::kFailed);
}

TEST(FakeKubelet, PoisonedPodsDieAtStart) {
  FakePods pods;
  pods.AddNode(CardNode(2, {{"aliyun.com/gpu-mem", 32}}));
  GpushareAgent agent(pods);
  FakeKubelet kubelet(pods, agent, "n1");
  AddBound(pods, Named("a", {Asking("main", {{"aliyun.com/gpu-mem", "4"}})}), {});
  kubelet.Step(10);
  kubelet.Step(20);
  EXPECT_EQ(kubelet.report().admission_errors, 0);
  EXPECT_EQ(kubelet.report().start_errors, 1);
  EXPECT_EQ(pods.Pod("u-a")->reason, "StartError");
}

TEST(FakeKubelet, ARestartTakesUpWaitingPodsByAge) {
  FakePods pods;
  pods.AddNode(CardNode(1, {{"koordinator.sh/gpu", 9}}));
  Koordlet agent(pods);
  FakeKubelet kubelet(pods, agent, "n1", {.most_notice_ms = 1'000'000, .restart_one_in = 1});
  pods.AddPod(Named("old", {}));
  pods.AddPod(Named("new", {}));
  pods.Bind("team-a", "new", "u-new", "n1", {});
  pods.Bind("team-a", "old", "u-old", "n1", {});
  kubelet.Step(10);
  kubelet.Step(20);
  EXPECT_EQ(pods.Pod("u-old")->phase, FakePhase::kRunning);
  EXPECT_EQ(pods.Pod("u-new")->phase, FakePhase::kPending);
}

TEST(FakeKubelet, DeletedPodsGoAndGiveBackTheirDevices) {
  FakePods pods;
  pods.AddNode(CardNode(1, {{"nvidia.com/gpu", 1}}));
  HamiAgent agent(pods, 8);
  FakeKubelet kubelet(pods, agent, "n1");
  int64_t now = 0;
  for (const char* name : {"a", "b"}) {
    AddBound(pods, Named(name, {Asking("main", {{"nvidia.com/gpu", "1"}})}), HamiNotes(0));
    for (int i = 0; i < 3; ++i) kubelet.Step(now += 10);
    EXPECT_EQ(pods.Pod(std::string("u-") + name)->phase, FakePhase::kRunning);
    pods.MarkDeleting(std::string("u-") + name);
    kubelet.Step(now += 10);
    EXPECT_FALSE(pods.Pod(std::string("u-") + name));
  }
  EXPECT_EQ(kubelet.report().served, 2);
}

}  // namespace THIS_FILE
}  // namespace tranche::fakes
