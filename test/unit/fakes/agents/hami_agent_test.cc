#include "test/fakes/agents/hami_agent.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/unit/fakes/agents/agent_bench.h"

namespace tranche::fakes {
namespace THIS_FILE {

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr const char* kList = "hami.io/vgpu-devices-to-allocate";
constexpr const char* kLock = "hami.io/mutex.lock";

Text Decided(const std::string& list, const std::string& phase = "allocating") {
  return {{"hami.io/vgpu-node", "n1"},
          {"hami.io/bind-time", "1700000000"},
          {"hami.io/bind-phase", phase},
          {kList, list}};
}

FakePod OneGpu(const std::string& name) { return Named(name, {Asking("main", {{kGpu, "1"}})}); }

std::string PhaseOf(const FakePods& pods, const std::string& uid) {
  return pods.Pod(uid)->Note("hami.io/bind-phase");
}

TEST(HamiAgent, ServesContainersInTurnAndTakesItsLockAwayWithTheLast) {
  FakePods pods;
  pods.AddNode(CardNode(2));
  AddBound(
      pods,
      Named("a", {Asking("one", {{kGpu, "1"}}), Asking("cpu", {}), Asking("two", {{kGpu, "2"}})}),
      Decided("GPU-1,NVIDIA,3000,20:;;GPU-0,NVIDIA,4000,0:GPU-1,NVIDIA,4000,0:;"));
  pods.PatchNode("n1", {{kLock, "2024-01-10T04:06:57Z,team-a,a"}});
  HamiAgent agent(pods, 9);

  const Service first = agent.Allocate(CallFor(kGpu, 1));
  EXPECT_EQ(Whom(first), "a/one");
  EXPECT_EQ(first.grants, (std::vector<Grant>{{1, 3000, 20}}));
  EXPECT_EQ(first.env.at("CUDA_DEVICE_MEMORY_LIMIT_0"), "3000m");
  EXPECT_EQ(first.env.at("CUDA_DEVICE_SM_LIMIT"), "20");
  EXPECT_EQ(pods.Pod("u-a")->Note(kList), ";;GPU-0,NVIDIA,4000,0:GPU-1,NVIDIA,4000,0:;");
  EXPECT_EQ(PhaseOf(pods, "u-a"), "allocating");
  EXPECT_NE(pods.Node("n1")->Note(kLock), "");

  const Service second = agent.Allocate(CallFor(kGpu, 2));
  EXPECT_EQ(Whom(second), "a/two");
  EXPECT_EQ(second.grants, (std::vector<Grant>{{0, 4000, 0}, {1, 4000, 0}}));
  EXPECT_EQ(pods.Pod("u-a")->Note(kList), ";;;");
  EXPECT_EQ(PhaseOf(pods, "u-a"), "success");
  EXPECT_EQ(pods.Node("n1")->annotations.count(kLock), 0U);
}

// Two pods of one GPU each, both told to it; kubelet calls for the one named in `call_for`.
struct PickRow {
  const char* name;
  int minor;
  const char* phase_a;
  const char* phase_b;
  const char* list_a;  // of pod a, which comes first in a list of the node's pods
  const char* lock;
  const char* served;
};

TEST(HamiAgent, FindsItsPodByTheLockElseTakesTheFirst) {
  const char* const one = "GPU-0,NVIDIA,1000,0:;";
  const PickRow rows[] = {
      {"the lock names it", 9, "allocating", "allocating", one, "t,team-a,b", "b/main"},
      {"also in old versions", 7, "allocating", "allocating", one, "t,team-a,b", "b/main"},
      {"no lock: the first, whoever is called for", 8, "allocating", "allocating", one, "",
       "a/main"},
      {"2.8 passes by whom it served", 8, "success", "allocating", ";", "", "b/main"},
      {"2.9 picks a pod that still pulls its image, and fails it", 9, "success", "allocating", ";",
       "", "!a: nothing is left of its devices"},
      {"a failed pod is passed by", 9, "failed", "allocating", one, "", "b/main"},
      {"a legacy lock names nobody", 8, "allocating", "allocating", one, "2024-01-10T04:06:57Z",
       "a/main"},
      {"a lock of two parts blocks the node", 9, "allocating", "allocating", one, "t,b",
       "!cannot read lock t,b"},
      {"the lock of a pod that is gone", 9, "allocating", "allocating", one, "t,team-a,c",
       "!the pod of lock t,team-a,c is gone"},
  };
  for (const PickRow& row : rows) {
    SCOPED_TRACE(row.name);
    FakePods pods;
    pods.AddNode(CardNode(2));
    AddBound(pods, OneGpu("a"), Decided(row.list_a, row.phase_a));
    AddBound(pods, OneGpu("b"), Decided("GPU-1,NVIDIA,2000,0:;", row.phase_b));
    if (*row.lock != '\0') pods.PatchNode("n1", {{kLock, row.lock}});
    HamiAgent agent(pods, row.minor);
    EXPECT_EQ(Whom(agent.Allocate(CallFor(kGpu, 1))), row.served);
  }
}

TEST(HamiAgent, RunningPodsAndThoseNobodyBoundAreNotPicked) {
  FakePods pods;
  pods.AddNode(CardNode(1));
  AddBound(pods, OneGpu("a"), Decided("GPU-0,NVIDIA,1000,0:;"));
  pods.SetPhase("u-a", FakePhase::kRunning);
  AddBound(pods, OneGpu("b"), Decided("GPU-0,NVIDIA,1000,0:;"));
  pods.PatchAnnotations("u-b", {{"hami.io/bind-time", std::nullopt}});
  AddBound(pods, OneGpu("c"), Decided("GPU-0,NVIDIA,1000,0:;"));
  pods.PatchAnnotations("u-c", {{"hami.io/vgpu-node", "n2"}});
  HamiAgent agent(pods, 9);
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kGpu, 1))), "!no pod waits on n1");
}

struct FailRow {
  const char* name;
  const char* list;
  int ids;
  const char* error;
};

TEST(HamiAgent, FailsThePodAndGivesTheLockBackWhereTheListDoesNotFitTheCall) {
  const FailRow rows[] = {
      {"another count", "GPU-0,NVIDIA,1000,0:;", 2, "!a: 1 devices are written, asked for 2"},
      {"unknown card", "GPU-9,NVIDIA,1000,0:;", 1, "!a: no card GPU-9"},
      {"not closed", "GPU-0,NVIDIA,1000,0:", 1, "!a: cannot read its devices"},
      {"not a number", "GPU-0,NVIDIA,1000Mi,0:;", 1, "!a: cannot read its devices"},
      {"more slots than containers", ";GPU-0,NVIDIA,1000,0:;", 1, "!a: more slots than containers"},
  };
  for (const FailRow& row : rows) {
    SCOPED_TRACE(row.name);
    FakePods pods;
    pods.AddNode(CardNode(1));
    AddBound(pods, OneGpu("a"), Decided(row.list));
    pods.PatchNode("n1", {{kLock, "t,team-a,a"}});
    HamiAgent agent(pods, 9);
    EXPECT_EQ(Whom(agent.Allocate(CallFor(kGpu, row.ids))), row.error);
    EXPECT_EQ(PhaseOf(pods, "u-a"), "failed");
    EXPECT_EQ(pods.Node("n1")->Note(kLock), "");
  }
}

TEST(HamiAgent, InitContainersHaveSlotsFrom29On) {
  for (const int minor : {8, 9}) {
    SCOPED_TRACE(minor);
    FakePods pods;
    pods.AddNode(CardNode(1));
    AddBound(pods,
             Named("a", {Asking("prepare", {{kGpu, "1"}}, true), Asking("main", {{kGpu, "1"}})}),
             Decided("GPU-0,NVIDIA,1000,0:;GPU-0,NVIDIA,2000,0:;"));
    HamiAgent agent(pods, minor);
    EXPECT_EQ(Whom(agent.Allocate(CallFor(kGpu, 1))), minor == 8 ? "a/main" : "a/prepare");
    EXPECT_EQ(Whom(agent.Allocate(CallFor(kGpu, 1))),
              minor == 8 ? "!a: more slots than containers" : "a/main");
  }
}

TEST(HamiAgent, SuffixOfTheInstanceIsNotPartOfTheCardBefore210) {
  FakePods pods;
  pods.AddNode(CardNode(2));
  AddBound(pods, OneGpu("a"), Decided("GPU-1[1-0],NVIDIA,9856,0:;"));
  HamiAgent agent(pods, 8);
  const Service service = agent.Allocate(CallFor(kGpu, 1));
  EXPECT_EQ(service.grants, (std::vector<Grant>{{1, 9856, 0}}));
}

// ---- MIG of 2.10 --------------------------------------------------------------------------------

FakeNode MigCards() {
  FakeNode node = CardNode(2);
  for (FakeCard& card : node.cards) {
    card.profiles = {{"1g.5gb", 4864, 14, 1, {0, 1, 2, 3, 4, 5, 6}},
                     {"2g.10gb", 9856, 28, 2, {0, 2, 4}}};
  }
  return node;
}

std::string Entry(const std::string& uuid, const std::string& profile, int start, int size) {
  return R"([{"containerIndex":0,"deviceIndex":0,"gpuUUID":")" + uuid + R"(","profile":")" +
         profile + R"(","placement":{"start":)" + std::to_string(start) + R"(,"size":)" +
         std::to_string(size) + "}}]";
}

struct MigRow {
  const char* name;
  std::string text;
  const char* served;
};

TEST(HamiAgent, CutsTheInstanceThatIsWritten) {
  const MigRow rows[] = {
      {"a legal place", Entry("GPU-1", "2g.10gb", 2, 2), "a/main"},
      {"an illegal start", Entry("GPU-1", "2g.10gb", 1, 2), "!a: the card has no such MIG place"},
      {"another size", Entry("GPU-1", "2g.10gb", 2, 3), "!a: the card has no such MIG place"},
      {"no such profile", Entry("GPU-1", "3g.20gb", 0, 4), "!a: the card has no such MIG place"},
      {"another card", Entry("GPU-0", "2g.10gb", 2, 2),
       "!a: its MIG instance is on another card than its device"},
      {"nothing written", "", "!a: cannot read its MIG instances"},
      {"no entry", "[]", "!a: no MIG instance for device 0"},
  };
  for (const MigRow& row : rows) {
    SCOPED_TRACE(row.name);
    FakePods pods;
    pods.AddNode(MigCards());
    Text annotations = Decided("GPU-1,NVIDIA,9856,28:;");
    annotations["hami.io/vgpu-mig-allocations"] = row.text;
    AddBound(pods, OneGpu("a"), annotations);
    HamiAgent agent(pods, 10);
    const Service service = agent.Allocate(CallFor(kGpu, 1));
    EXPECT_EQ(Whom(service), row.served);
    if (service.error.empty()) {
      EXPECT_EQ(service.grants, (std::vector<Grant>{{1, 9856, 28}}));
      EXPECT_NE(pods.Pod("u-a")->Note("hami.io/vgpu-mig-allocations").find("migUUID"),
                std::string::npos);
    }
  }
}

TEST(HamiAgent, TwoPodsCannotHaveOverlappingInstancesUntilTheFirstHasEnded) {
  FakePods pods;
  pods.AddNode(MigCards());
  HamiAgent agent(pods, 10);
  const auto add = [&pods](const std::string& name, const std::string& text) {
    Text annotations = Decided("GPU-1,NVIDIA,4864,14:;");
    annotations["hami.io/vgpu-mig-allocations"] = text;
    AddBound(pods, OneGpu(name), annotations);
    pods.PatchNode("n1", {{kLock, "t,team-a," + name}});
  };
  add("a", Entry("GPU-1", "2g.10gb", 2, 2));
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kGpu, 1))), "a/main");
  add("b", Entry("GPU-1", "1g.5gb", 3, 1));
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kGpu, 1))), "!b: its MIG place is taken");
  pods.SetPhase("u-a", FakePhase::kSucceeded);
  add("c", Entry("GPU-1", "1g.5gb", 3, 1));
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kGpu, 1))), "c/main");
}

// ---- 4paradigm ----------------------------------------------------------------------------------

TEST(FourPdAgent, ReadsItsOwnKeysAndKnowsNoLock) {
  FakePods pods;
  pods.AddNode(CardNode(1));
  const Text decided = {{"4pd.io/vgpu-node", "n1"},
                        {"4pd.io/bind-time", "1"},
                        {"4pd.io/bind-phase", "allocating"},
                        {"hami.sh/vgpu-devices-to-allocate", "GPU-0,NVIDIA,1000,0:;"}};
  AddBound(pods, OneGpu("a"), decided);
  AddBound(pods, OneGpu("b"), decided);
  pods.PatchNode("n1", {{kLock, "t,team-a,b"}});
  FourPdAgent agent(pods);
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kGpu, 1))), "a/main");
  EXPECT_EQ(pods.Pod("u-a")->Note("4pd.io/bind-phase"), "success");
  EXPECT_EQ(Whom(agent.Allocate(CallFor(kGpu, 1))), "b/main");
  EXPECT_EQ(pods.Node("n1")->Note(kLock), "t,team-a,b");
}

}  // namespace THIS_FILE
}  // namespace tranche::fakes
