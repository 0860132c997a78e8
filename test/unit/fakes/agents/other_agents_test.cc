// Agents that guess by amount, count and time: which pod each takes, and when that is the wrong
// one.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/fakes/agents/elastic_agent.h"
#include "test/fakes/agents/gpushare_agent.h"
#include "test/fakes/agents/koordlet.h"
#include "test/fakes/agents/tkestack_agent.h"
#include "test/fakes/agents/vgpu_manager_agent.h"
#include "test/fakes/agents/volcano_agent.h"
#include "test/fakes/agents/volcano_old_agent.h"
#include "test/unit/fakes/agents/agent_bench.h"

namespace tranche::fakes {
namespace THIS_FILE {

// ---- volcano-vgpu-device-plugin -----------------------------------------------------------------

constexpr const char* kVgpu = "volcano.sh/vgpu-number";

Text VolcanoNotes(const std::string& list, const std::string& time) {
  return {{"volcano.sh/vgpu-node", "n1"},
          {"volcano.sh/vgpu-time", time},
          {"volcano.sh/vgpu-ids-new", list},
          {"volcano.sh/devices-to-allocate", list},
          {"volcano.sh/bind-phase", "allocating"}};
}
FakePod VolcanoPod(const std::string& name, const std::string& count) {
  return Named(name, {Asking("main", {{kVgpu, count}})});
}

struct VolcanoRow {
  const char* name;
  std::string list_a, time_a;
  std::string list_b, time_b;
  int ids;
  const char* served;
};

TEST(VolcanoAgent, TakesTheOldestWithJustAsManyDevicesLeft) {
  const std::string one = "GPU-0,NVIDIA,1000,10:";
  const std::string two = "GPU-0,NVIDIA,1000,10:GPU-1,NVIDIA,1000,10:";
  const VolcanoRow rows[] = {
      {"by count", two, "1", one, "2", 1, "b/main"},
      {"by time, whoever is called for", one, "2", one, "1", 1, "b/main"},
      {"equal seconds: by name", one, "1", one, "1", 1, "a/main"},
      {"finished ones sort last", one, "18446744073709551615", one, "7", 1, "b/main"},
      {"no such count", one, "1", one, "2", 2, "!no pod has 2 devices left here"},
      {"unreadable list", "GPU-0,NVIDIA", "1", one, "2", 1, "b/main"},
      {"nothing left", "", "1", one, "2", 1, "b/main"},
  };
  for (const VolcanoRow& row : rows) {
    SCOPED_TRACE(row.name);
    FakePods pods;
    pods.AddNode(CardNode(2));
    AddBound(pods, VolcanoPod("a", "1"), VolcanoNotes(row.list_a, row.time_a));
    AddBound(pods, VolcanoPod("b", "1"), VolcanoNotes(row.list_b, row.time_b));
    VolcanoAgent agent(pods);
    EXPECT_EQ(Whom(agent.Allocate(CallFor(kVgpu, row.ids))), row.served);
  }
}

TEST(VolcanoAgent, EndsWithSuccessAndTheLargestTime) {
  FakePods pods;
  pods.AddNode(CardNode(2));
  AddBound(pods, VolcanoPod("a", "1"), VolcanoNotes("GPU-1,NVIDIA,400,30:", "7"));
  pods.PatchNode("n1", {{"hamivgpu", "2024-01-10T04:06:57Z"}});
  VolcanoAgent agent(pods, 10);
  EXPECT_EQ(agent.Allocate(CallFor(kVgpu, 1)).grants, (std::vector<Grant>{{1, 4000, 30}}));
  EXPECT_EQ(pods.Pod("u-a")->Note("volcano.sh/bind-phase"), "success");
  EXPECT_EQ(pods.Pod("u-a")->Note("volcano.sh/vgpu-time"), "18446744073709551615");
  EXPECT_EQ(pods.Pod("u-a")->Note("volcano.sh/devices-to-allocate"), "");
  EXPECT_EQ(pods.Pod("u-a")->Note("volcano.sh/vgpu-ids-new"), "GPU-1,NVIDIA,400,30:");
  EXPECT_EQ(pods.Node("n1")->Note("hamivgpu"), "");
}

TEST(VolcanoAgent, CannotServeTwoContainersAndFallsForDeadPods) {
  FakePods pods;
  pods.AddNode(CardNode(2));
  AddBound(pods, Named("pair", {Asking("one", {{kVgpu, "1"}}), Asking("two", {{kVgpu, "1"}})}),
           VolcanoNotes("GPU-0,NVIDIA,1000,0:;GPU-1,NVIDIA,1000,0:", "1"));
  VolcanoAgent agent(pods);
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kVgpu, 1))), "!no pod has 1 devices left here");

  AddBound(pods, VolcanoPod("dead", "1"), VolcanoNotes("GPU-0,NVIDIA,1000,0:", "2"));
  pods.SetPhase("u-dead", FakePhase::kFailed);
  AddBound(pods, VolcanoPod("live", "1"), VolcanoNotes("GPU-1,NVIDIA,1000,0:", "3"));
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kVgpu, 1))), "dead/main");
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kVgpu, 1))), "live/main");
}

// ---- Volcano's first sharing --------------------------------------------------------------------

constexpr const char* kMemory = "volcano.sh/gpu-memory";

TEST(VolcanoOldAgent, TakesTheOldestPodWithAContainerOfThisAmount) {
  FakePods pods;
  pods.AddNode(CardNode(2));
  const auto add = [&pods](const std::string& name, const std::string& amount,
                           const std::string& time, const std::string& index) {
    AddBound(pods, Named(name, {Asking("main", {{kMemory, amount}})}),
             {{"volcano.sh/predicate-time", time}, {"volcano.sh/gpu-index", index}});
  };
  add("a", "8", "30", "0");
  add("b", "8", "20", "1");
  add("c", "9", "10", "1");
  VolcanoOldAgent agent(pods, 256);
  pods.PatchNode("n1", {{"gpu", "2024-01-10T04:06:57Z"}});
  const Service service = agent.Allocate(CallFor(kMemory, 8));
  EXPECT_EQ(Whom(service), "b/main");
  EXPECT_EQ(service.grants, (std::vector<Grant>{{1, 8 * 256, 0}}));
  EXPECT_EQ(pods.Pod("u-b")->Note("volcano.sh/gpu-assigned"), "true");
  EXPECT_EQ(pods.Node("n1")->Note("gpu"), "");
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kMemory, 8))), "a/main");
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kMemory, 8))),
            "!no pod waits for 8 of volcano.sh/gpu-memory");
  pods.MarkDeleting("u-c");
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kMemory, 9))),
            "!no pod waits for 9 of volcano.sh/gpu-memory");
}

TEST(VolcanoOldAgent, WholeCardsAreCountedApart) {
  FakePods pods;
  pods.AddNode(CardNode(3));
  AddBound(pods, Named("a", {Asking("main", {{"volcano.sh/gpu-number", "2"}})}),
           {{"volcano.sh/predicate-time", "1"}, {"volcano.sh/gpu-index", "0,2"}});
  VolcanoOldAgent agent(pods);
  EXPECT_EQ(Whom(agent.Allocate(CallFor("volcano.sh/gpu-memory", 2))),
            "!no pod waits for 2 of volcano.sh/gpu-memory");
  EXPECT_EQ(agent.Allocate(CallFor("volcano.sh/gpu-number", 2)).grants,
            (std::vector<Grant>{{0, 16384, 100}, {2, 16384, 100}}));
}

// ---- gpushare -----------------------------------------------------------------------------------

constexpr const char* kGpuMem = "aliyun.com/gpu-mem";

Text GpushareNotes(const std::string& index, const std::string& time) {
  return {{"ALIYUN_COM_GPU_MEM_IDX", index},
          {"ALIYUN_COM_GPU_MEM_ASSIGNED", "false"},
          {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", time}};
}
FakePod GpusharePod(const std::string& name, const std::string& amount) {
  return Named(name, {Asking("main", {{kGpuMem, amount}})});
}

struct GpushareRow {
  const char* name;
  std::string amount_a, time_a;
  std::string amount_b, time_b;
  int ids;
  const char* served;
};

TEST(GpushareAgent, TakesTheOldestWhoseTotalIsTheCall) {
  const GpushareRow rows[] = {
      {"by amount", "4", "10", "6", "20", 6, "b/main"},
      {"by time, whoever is called for", "4", "20", "4", "10", 4, "b/main"},
      {"times are numbers", "4", "1000", "4", "999", 4, "b/main"},
      {"equal times: by name", "4", "10", "4", "10", 4, "a/main"},
      {"without a time it does not wait", "4", "", "4", "20", 4, "b/main"},
  };
  for (const GpushareRow& row : rows) {
    SCOPED_TRACE(row.name);
    FakePods pods;
    pods.AddNode(CardNode(2));
    AddBound(pods, GpusharePod("a", row.amount_a), GpushareNotes("0", row.time_a));
    AddBound(pods, GpusharePod("b", row.amount_b), GpushareNotes("1", row.time_b));
    GpushareAgent agent(pods);
    EXPECT_EQ(Whom(agent.Allocate(CallFor(kGpuMem, row.ids))), row.served);
  }
}

TEST(GpushareAgent, MarksThePodAssignedAndDoesNotServeItAgain) {
  FakePods pods;
  pods.AddNode(CardNode(2));
  AddBound(pods, GpusharePod("a", "4"), GpushareNotes("1", "10"));
  GpushareAgent agent(pods);
  EXPECT_EQ(agent.Allocate(CallFor(kGpuMem, 4)).grants, (std::vector<Grant>{{1, 4096, 0}}));
  EXPECT_EQ(pods.Pod("u-a")->Note("ALIYUN_COM_GPU_MEM_ASSIGNED"), "true");
  const Service again = agent.Allocate(CallFor(kGpuMem, 4));
  EXPECT_EQ(again.error, "");
  EXPECT_EQ(again.env.at("NVIDIA_VISIBLE_DEVICES"), "no-gpu-has-4GiB-to-run");
}

TEST(GpushareAgent, TwoContainersNeverMatchAndOneCardNeedsNoMatch) {
  for (const int cards : {1, 2}) {
    SCOPED_TRACE(cards);
    FakePods pods;
    pods.AddNode(CardNode(cards));
    AddBound(pods, Named("a", {Asking("one", {{kGpuMem, "3"}}), Asking("two", {{kGpuMem, "5"}})}),
             GpushareNotes("0", "10"));
    GpushareAgent agent(pods, 1);
    const Service service = agent.Allocate(CallFor(kGpuMem, 3));
    EXPECT_EQ(service.error, "");
    EXPECT_EQ(Whom(service), "");
    EXPECT_EQ(service.env.at("NVIDIA_VISIBLE_DEVICES"),
              cards == 1 ? "GPU-0" : "no-gpu-has-3MiB-to-run");
    EXPECT_EQ(service.grants.size(), cards == 1 ? 1U : 0U);
  }
}

// ---- gpu-manager --------------------------------------------------------------------------------

constexpr const char* kCore = "tencent.com/vcuda-core";

FakePod TkePod(const std::string& name, const std::string& cores, const std::string& blocks) {
  return Named(name, {Asking("main", {{kCore, cores}, {"tencent.com/vcuda-memory", blocks}})});
}
Text TkeNotes(const std::string& index, const std::string& time) {
  return {{"tencent.com/predicate-gpu-idx-0", index},
          {"tencent.com/predicate-node", "n1"},
          {"tencent.com/predicate-time", time},
          {"tencent.com/gpu-assigned", "false"}};
}

TEST(TkestackAgent, PicksTheTightestCardItself) {
  FakePods pods;
  pods.AddNode(CardNode(3));
  TkestackAgent agent(pods);
  const auto serve = [&](const std::string& name, const std::string& cores,
                         const std::string& blocks, const std::string& foretold) {
    AddBound(pods, TkePod(name, cores, blocks), TkeNotes(foretold, "1"));
    return Whom(agent.Allocate(CallFor(kCore, std::stoi(cores))));
  };
  EXPECT_EQ(serve("a", "50", "8", "0"), "a/main");   // all equal: the lowest minor
  EXPECT_EQ(serve("b", "60", "4", "1"), "b/main");   // no room on the tightest
  EXPECT_EQ(serve("c", "30", "4", "1"), "c/main");   // 40 are left there, 50 on the first
  EXPECT_EQ(serve("d", "20", "60", "2"), "d/main");  // memory: the first two have 14 and 14 GiB
  EXPECT_EQ(serve("e", "10", "4", "2"), "!e: foretold card 2, chose 1");
  EXPECT_EQ(serve("f", "99", "4", "2"), "!f: no card has room");
  pods.SetPhase("u-f", FakePhase::kFailed);
  pods.SetPhase("u-a", FakePhase::kSucceeded);
  EXPECT_EQ(serve("g", "99", "4", "0"), "g/main");
}

TEST(TkestackAgent, FindsItsContainerByAmountAndTimeUntilItIsAssigned) {
  FakePods pods;
  pods.AddNode(CardNode(2));
  AddBound(pods, TkePod("a", "50", "4"), TkeNotes("0", "20"));
  AddBound(pods, TkePod("b", "50", "4"), TkeNotes("0", "10"));
  AddBound(pods, TkePod("c", "40", "4"), TkeNotes("1", "5"));
  TkestackAgent agent(pods);
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kCore, 50))), "b/main");
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kCore, 50))), "a/main");  // it remembers whom it served
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kCore, 50))), "!no pod waits for 50 of vcuda-core");
  EXPECT_EQ(pods.Pod("u-b")->Note("tencent.com/gpu-assigned"), "false");
  agent.PreStart(CallFor(kCore, 50), {"u-b", "main"});
  EXPECT_EQ(pods.Pod("u-b")->Note("tencent.com/gpu-assigned"), "true");
}

TEST(TkestackAgent, WholeCardsAreItsOwnChoiceAndWrittenDown) {
  FakePods pods;
  pods.AddNode(CardNode(6));
  TkestackAgent agent(pods);
  AddBound(pods, TkePod("part", "30", "4"), TkeNotes("0", "1"));
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kCore, 30))), "part/main");
  AddBound(pods, TkePod("one", "100", "0"), TkeNotes("5", "2"));
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kCore, 100))), "one/main");  // beside the shared card
  EXPECT_EQ(pods.Pod("u-one")->Note("tencent.com/predicate-gpu-idx-0"), "1");
  AddBound(pods, TkePod("two", "200", "0"), TkeNotes("2,3", "3"));
  EXPECT_EQ(agent.Allocate(CallFor(kCore, 200)).grants.size(), 2U);
  EXPECT_EQ(pods.Pod("u-two")->Note("tencent.com/predicate-gpu-idx-0"), "4,5");
}

// ---- elastic-gpu --------------------------------------------------------------------------------

TEST(ElasticAgent, AsksKubeletWhoOwnsTheDevices) {
  FakePods pods;
  pods.AddNode(CardNode(4));
  constexpr const char* kElasticCore = "elasticgpu.io/gpu-core";
  constexpr const char* kElasticMemory = "elasticgpu.io/gpu-memory";
  AddBound(pods, Named("a", {Asking("x", {{kElasticCore, "200"}}), Asking("y", {})}),
           {{"elasticgpu.io/container-x", "1,3"},
            {"elasticgpu.io/container-y", "2"},
            {"elasticgpu.io/assumed", "true"}});
  ElasticAgent agent(pods);
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kElasticCore, 200))), "");
  EXPECT_EQ(agent.PreStart(CallFor(kElasticCore, 200), {"u-a", "x"}).grants,
            (std::vector<Grant>{{1, 16384, 100}, {3, 16384, 100}}));
  EXPECT_EQ(agent.PreStart(CallFor(kElasticCore, 30), {"u-a", "y"}).grants,
            (std::vector<Grant>{{2, 0, 30}}));
  EXPECT_EQ(agent.PreStart(CallFor(kElasticMemory, 512), {"u-a", "y"}).grants,
            (std::vector<Grant>{{2, 512, 0}}));
  EXPECT_EQ(Whom(agent.PreStart(CallFor(kElasticCore, 100), {"u-a", "x"})),
            "!a: another number of cards than asked for");
  EXPECT_EQ(Whom(agent.PreStart(CallFor(kElasticCore, 30), {"u-a", "z"})),
            "!a: no cards in elasticgpu.io/container-z");
  pods.PatchAnnotations("u-a", {{"elasticgpu.io/assumed", std::nullopt}});
  EXPECT_EQ(Whom(agent.PreStart(CallFor(kElasticCore, 30), {"u-a", "y"})), "!a: was not assumed");
}

// ---- vgpu-manager -------------------------------------------------------------------------------

constexpr const char* kVgpuNumber = "nvidia.com/vgpu-number";

Text VgpuNotes(const std::string& planned, const std::string& time) {
  return {{"nvidia.com/predicate-node", "n1"},
          {"nvidia.com/predicate-time", time},
          {"nvidia.com/real-allocated", ""},
          {"nvidia.com/pre-allocated", planned}};
}
FakePod VgpuPod(const std::string& name) {
  return Named(name, {Asking("main", {{kVgpuNumber, "1"}})});
}

TEST(VgpuManagerAgent, TakesTheSmallestTimeAndStopsThePodItTookForAnother) {
  FakePods pods;
  pods.AddNode(CardNode(2));
  AddBound(pods, VgpuPod("a"), VgpuNotes("main[0_GPU-0_20_2048]", "20"));
  AddBound(pods, VgpuPod("b"), VgpuNotes("main[1_GPU-1_10_1024]", "10"));
  VgpuManagerAgent agent(pods);
  const DeviceCall call = CallFor(kVgpuNumber, 1);
  EXPECT_EQ(Whom(agent.Allocate(call)), "b/main");  // kubelet admits a
  EXPECT_EQ(Whom(agent.PreStart(call, {"u-a", "main"})), "!the devices of u-a were given to u-b");
  EXPECT_EQ(agent.PreStart(call, {"u-b", "main"}).error, "");
  EXPECT_EQ(pods.Pod("u-b")->Note("nvidia.com/predicate-time"), "9223372036854775807");
  EXPECT_EQ(pods.Pod("u-b")->Note("nvidia.com/real-allocated"), "main[1_GPU-1_10_1024]");
  EXPECT_EQ(pods.Pod("u-b")->labels.at("nvidia.com/assigned-phase"), "succeed");
}

TEST(VgpuManagerAgent, ServesContainersInTheOrderWritten) {
  FakePods pods;
  pods.AddNode(CardNode(3));
  AddBound(pods,
           Named("a", {Asking("main", {{kVgpuNumber, "2"}}), Asking("cpu", {}),
                       Asking("side", {{kVgpuNumber, "1"}})}),
           VgpuNotes("main[0_GPU-0_20_2048,1_GPU-1_20_2048];side[2_GPU-2_0_4096]", "5"));
  VgpuManagerAgent agent(pods);
  EXPECT_EQ(agent.Allocate(CallFor(kVgpuNumber, 2)).grants,
            (std::vector<Grant>{{0, 2048, 20}, {1, 2048, 20}}));
  EXPECT_EQ(pods.Pod("u-a")->Note("nvidia.com/predicate-time"), "5");
  EXPECT_EQ(agent.Allocate(CallFor(kVgpuNumber, 1)).grants, (std::vector<Grant>{{2, 4096, 0}}));
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kVgpuNumber, 1))), "!no pod waits on n1");
}

struct VgpuRow {
  const char* name;
  const char* planned;
  const char* time;
  const char* error;
};

TEST(VgpuManagerAgent, RefusesWhatItCannotRead) {
  const VgpuRow rows[] = {
      {"another count", "main[0_GPU-0_20_2048,1_GPU-1_20_2048]", "5",
       "!a: another number of devices"},
      {"uuid of another card", "main[0_GPU-1_20_2048]", "5", "!a: cannot read its devices"},
      {"three parts", "main[0_GPU-0_20]", "5", "!a: cannot read its devices"},
      {"no bracket", "main", "5", "!a: cannot read its devices"},
      {"time of zero", "main[0_GPU-0_20_2048]", "0", "!no pod waits on n1"},
      {"finished", "main[0_GPU-0_20_2048]", "9223372036854775807", "!no pod waits on n1"},
  };
  for (const VgpuRow& row : rows) {
    SCOPED_TRACE(row.name);
    FakePods pods;
    pods.AddNode(CardNode(2));
    AddBound(pods, VgpuPod("a"), VgpuNotes(row.planned, row.time));
    VgpuManagerAgent agent(pods);
    EXPECT_EQ(Whom(agent.Allocate(CallFor(kVgpuNumber, 1))), row.error);
  }
}

// ---- Koordinator --------------------------------------------------------------------------------

TEST(Koordlet, ReadsTheDecisionOfJustThisPod) {
  FakePods pods;
  pods.AddNode(CardNode(2));
  const std::string decision =
      R"({"gpu":[{"minor":1,"id":"GPU-1","resources":{"koordinator.sh/gpu-core":"50",)"
      R"("koordinator.sh/gpu-memory":"8Gi","koordinator.sh/gpu-memory-ratio":"50"}}]})";
  AddBound(pods,
           Named("a", {Asking("main", {{"koordinator.sh/gpu-core", "50"}}), Asking("log", {})}),
           {{"scheduling.koordinator.sh/device-allocated", decision}});
  AddBound(pods, Named("b", {Asking("main", {{"koordinator.sh/gpu-core", "50"}})}), {});
  AddBound(pods, Named("c", {Asking("main", {})}), {});
  Koordlet agent(pods);
  EXPECT_TRUE(agent.resources().empty());
  EXPECT_EQ(agent.Hook("n1", {"u-a", "main"}).grants, (std::vector<Grant>{{1, 8192, 50}}));
  EXPECT_TRUE(agent.Hook("n1", {"u-a", "log"}).grants.empty());
  EXPECT_EQ(agent.Hook("n1", {"u-a", "log"}).env.at("NVIDIA_VISIBLE_DEVICES"), "1");
  EXPECT_EQ(Whom(agent.Hook("n1", {"u-b", "main"})), "!b: no devices were decided");
  EXPECT_EQ(Whom(agent.Hook("n1", {"u-c", "main"})), "");
}

}  // namespace THIS_FILE
}  // namespace tranche::fakes
