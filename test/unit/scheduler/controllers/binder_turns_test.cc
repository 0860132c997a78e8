// Binds to nodes whose agent serves one pod at a time, and is told by a lock for whom.
#include <string>

#include "test/unit/scheduler/controllers/bind_bench.h"

namespace tranche {
namespace THIS_FILE {

using namespace std::chrono_literals;

// HAMi with one card of ten slots; `minor` 7 and 9 differ in the register's form.
NodeFacts HamiNode(const std::string& name, int minor) {
  NodeFacts node = GpuNode(name);
  node.gpu = ResourceCount{10, 10};
  AgentRegister agent;
  agent.minor = minor;
  AgentDevice device;
  device.uuid = GpuUuid("GPU-" + name);
  device.slots = 10;
  device.memory = Mebibytes::Of(80'000);
  device.cores_percent = 100;
  device.type = "NVIDIA-H100";
  device.mode = "hami-core";
  device.healthy = true;
  agent.devices.push_back(device);
  node.agent = agent;
  return node;
}

PodFacts Share(const std::string& name) {
  return PodFrom(R"({"metadata":{"name":")" + name + R"(","namespace":"team-a","uid":")" + name +
                 R"("},"spec":{"containers":[{"name":"main","resources":{"limits":)" +
                 R"({"nvidia.com/gpu":"1","nvidia.com/gpumem":"1000"}}}]}})");
}

class BinderTurns : public BindBench {
 protected:
  static constexpr const char* kNode = "hami";

  void SetUpNode(int minor) { host.cluster.Receive(NodeChanged{HamiNode(kNode, minor)}); }
  void Ask(const std::string& name) {
    Create(Share(name));
    Bind(kNode, name, name);
    timers.Advance(0ms);
  }
  // The watch shows the pod as the agent left it.
  void Seen(const std::string& name, AgentProgress progress) {
    PodFacts& pod = Stored(name);
    pod.progress = progress;
    host.cluster.Receive(PodChanged{pod});
    timers.Advance(0ms);
  }
  std::string Posts() const {
    std::string names;
    for (const BindingWrite& post : api.posts) names += (names.empty() ? "" : " ") + post.pod.name;
    return names;
  }
  std::string Advice(const std::string& name) {
    return host.engine.With([&](Engine& engine, Instant now) {
      return engine.Explain({"team-a", name}, now)->advice;
    });
  }
  std::string LockOwner() {
    const std::string& lock = api.locks[NodeName(kNode)];
    return lock.substr(lock.rfind(',') + 1);
  }
};

TEST_F(BinderTurns, TheNextBindIsWrittenWhenTheAgentHasServedTheLast) {
  SetUpNode(7);
  Ask("a");
  Ask("b");
  Ask("c");
  EXPECT_EQ(Posts(), "a");
  EXPECT_EQ(Advice("a"), "");
  EXPECT_EQ(Advice("b"), "the agent of hami serves one pod at a time, 1 before this one");
  EXPECT_EQ(Advice("c"), "the agent of hami serves one pod at a time, 2 before this one");
  Seen("a", AgentProgress::kWaiting);
  EXPECT_EQ(Posts(), "a");
  Seen("a", AgentProgress::kServed);
  EXPECT_EQ(Posts(), "a b");
  Seen("b", AgentProgress::kWaiting);
  Seen("b", AgentProgress::kFailed);
  EXPECT_EQ(Posts(), "a b c");
  EXPECT_EQ(answers.size(), 3U);
  EXPECT_TRUE(api.locks.empty()) << "no lock before HAMi 2.9";
}

TEST_F(BinderTurns, BindingAndAgentKeysAreOneWrite) {
  SetUpNode(7);
  Ask("a");
  ASSERT_EQ(api.posts.size(), 1U);
  EXPECT_EQ(api.posts[0].annotations.count("tranche.dev/allocation"), 1U);
  EXPECT_EQ(api.posts[0].annotations.count("hami.io/vgpu-devices-to-allocate"), 1U);
}

TEST_F(BinderTurns, TheCallerIsAnsweredInTimeAndTheBindGoesOn) {
  SetUpNode(7);
  Ask("a");
  Ask("b");
  answers.clear();
  timers.Advance(4'000ms);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].error, "the outcome of the bind is not known yet");
  EXPECT_EQ(Posts(), "a");
  answers.clear();
  Bind(kNode, "b", "b");  // kube-scheduler tries again
  Seen("a", AgentProgress::kServed);
  EXPECT_EQ(Posts(), "a b");
  EXPECT_EQ(Answer(), "ok");
}

TEST_F(BinderTurns, APodThatEndsBeforeItsTurnIsNeverWritten) {
  SetUpNode(7);
  Ask("a");
  Ask("b");
  answers.clear();
  api.pods.erase({"team-a", "b"});
  host.cluster.Receive(PodGone{PodUid("b")});
  timers.Advance(0ms);
  Seen("a", AgentProgress::kServed);
  EXPECT_EQ(Posts(), "a");
  EXPECT_NE(Answer(), "ok");
  EXPECT_EQ(Reservations(), 0);
}

TEST_F(BinderTurns, ABindThatCameToNothingGivesItsTurnAway) {
  SetUpNode(9);
  Ask("a");
  api.locks.clear();
  Seen("a", AgentProgress::kServed);
  api.writes = {Outcome::kRefused};
  Ask("b");
  EXPECT_EQ(LockOwner(), "") << "the lock goes with it";
  Ask("c");
  EXPECT_EQ(Posts(), "a b c");
  EXPECT_EQ(LockOwner(), "c");
}

TEST_F(BinderTurns, ANodeThatGoesSendsWaitingBindsBack) {
  SetUpNode(7);
  Ask("a");
  Ask("b");
  answers.clear();
  host.cluster.Receive(NodeGone{NodeName(kNode)});
  timers.Advance(0ms);
  EXPECT_EQ(Answer(), "the node's agent is gone");
  EXPECT_EQ(Posts(), "a");
}

struct NodeChange {
  const char* what;
  std::function<void(NodeFacts& node)> change;
  const char* answer;
};
constexpr const char* kChanged = "the node changed while the pod waited for the node's agent";

class BinderTurnsOfAChangedNode : public BinderTurns,
                                  public testing::WithParamInterface<NodeChange> {};

// Found by seed 8009446: the GPUs were gone when the turn came.
TEST_P(BinderTurnsOfAChangedNode, ABindGoesOnOrBackWhenItsTurnComes) {
  SetUpNode(7);
  Ask("a");
  Ask("b");
  answers.clear();
  NodeFacts node = HamiNode(kNode, 7);
  GetParam().change(node);
  host.cluster.Receive(NodeChanged{node});
  timers.Advance(0ms);
  EXPECT_EQ(answers.size(), 0U) << "it waits for its turn";
  Seen("a", AgentProgress::kServed);
  EXPECT_EQ(Answer(), GetParam().answer) << GetParam().what;
  EXPECT_EQ(Posts(), GetParam().answer == kChanged ? "a" : "a b");
  EXPECT_EQ(Reservations(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Changes, BinderTurnsOfAChangedNode,
    testing::Values(
        NodeChange{"not at all", [](NodeFacts&) {}, "ok"},
        NodeChange{"no GPU is allocatable", [](NodeFacts& node) { node.gpu->allocatable = 0; },
                   kChanged},
        NodeChange{"its card is another",
                   [](NodeFacts& node) { node.agent->devices[0].uuid = GpuUuid("GPU-other"); },
                   kChanged},
        NodeChange{"its card fell ill",
                   [](NodeFacts& node) { node.agent->devices[0].healthy = false; }, kChanged},
        NodeChange{"it is cordoned", [](NodeFacts& node) { node.cordoned = true; }, kChanged}));

TEST_F(BinderTurns, TheLockIsTakenBeforeTheBinding) {
  SetUpNode(9);
  Ask("a");
  EXPECT_EQ(LockOwner(), "a");
  EXPECT_EQ(Posts(), "a");
}

TEST_F(BinderTurns, AnotherSchedulersLockIsWaitedFor) {
  SetUpNode(9);
  Create(Share("theirs"));
  api.locks[NodeName(kNode)] = "2026-01-01T00:00:00Z,team-a,theirs";
  Ask("a");
  timers.Advance(1'000ms);
  EXPECT_EQ(Posts(), "");
  api.locks.clear();
  timers.Advance(1'000ms);
  EXPECT_EQ(Posts(), "a");
}

TEST_F(BinderTurns, ANodeThatChangedWhileItWasLockedSendsTheBindBack) {
  SetUpNode(9);
  Create(Share("theirs"));
  api.locks[NodeName(kNode)] = "2026-01-01T00:00:00Z,team-a,theirs";
  Ask("a");
  timers.Advance(1'000ms);
  NodeFacts node = HamiNode(kNode, 9);
  node.cordoned = true;
  host.cluster.Receive(NodeChanged{node});
  api.locks.clear();
  timers.Advance(1'000ms);
  EXPECT_EQ(Answer(), kChanged);
  EXPECT_EQ(Posts(), "");
  EXPECT_EQ(LockOwner(), "") << "it is given back";
  EXPECT_EQ(Reservations(), 0);
}

TEST_F(BinderTurns, ALockWhosePodIsGoneOrServedIsTakenOver) {
  SetUpNode(9);
  api.locks[NodeName(kNode)] = "2026-01-01T00:00:00Z,team-a,gone";
  Ask("a");
  EXPECT_EQ(Posts(), "a");
  EXPECT_EQ(LockOwner(), "a");
  // The agent has served a and died before it gave the lock back.
  Seen("a", AgentProgress::kServed);
  Ask("b");
  EXPECT_EQ(Posts(), "a b");
  EXPECT_EQ(LockOwner(), "b");
}

// A process that was killed between lock and Binding; its pod may stand in line behind this one.
TEST_F(BinderTurns, ALockWhosePodWasNeverBoundIsTakenOverAfterSeconds) {
  SetUpNode(9);
  Create(Share("left"));
  api.locks[NodeName(kNode)] = "2026-01-01T00:00:00Z,team-a,left";
  Ask("a");
  Ask("left");
  timers.Advance(1'000ms);
  EXPECT_EQ(Posts(), "") << "somebody may be about to bind it";
  api.lock_age = Millis(5'000);
  timers.Advance(1'000ms);
  EXPECT_EQ(Posts(), "a");
  // One that is bound and waits for its agent keeps the lock.
  api.lock_age = Millis(200'000);
  Seen("a", AgentProgress::kWaiting);
  PodFacts bound = Share("bound");
  bound.node = NodeName(kNode);
  bound.progress = AgentProgress::kWaiting;
  api.pods[bound.request.name] = bound;
  api.locks[NodeName(kNode)] = "2026-01-01T00:00:00Z,team-a,bound";
  Seen("a", AgentProgress::kServed);
  timers.Advance(60'000ms);
  EXPECT_EQ(Posts(), "a");
  // Found by seed 5007855: our clock was set, and we locked the node a minute ago.
  api.lock_age = Millis(300'000);
  timers.Advance(60'000ms);
  EXPECT_EQ(Posts(), "a");
  timers.Advance(180'000ms);
  EXPECT_EQ(Posts(), "a left");
}

TEST_F(BinderTurns, WithoutTheLockNothingIsWritten) {
  SetUpNode(9);
  api.failing_locks = true;
  Ask("a");
  EXPECT_EQ(Answer(), "the node could not be locked for its agent");
  EXPECT_EQ(Posts(), "");
  EXPECT_EQ(Reservations(), 0);
}

TEST_F(BinderTurns, AnAgentThatNeverAnswersHoldsTheOthersForFiveMinutes) {
  SetUpNode(7);
  Ask("a");
  Seen("a", AgentProgress::kWaiting);
  Ask("b");
  clock.AdvanceBy(Millis(299'000));
  host.engine.Tick();
  timers.Advance(0ms);
  EXPECT_EQ(Posts(), "a");
  clock.AdvanceBy(Millis(1'000));
  host.engine.Tick();
  timers.Advance(0ms);
  EXPECT_EQ(Posts(), "a b");
}

TEST_F(BinderTurns, APodFoundUnservedAtStartIsServedFirst) {
  SetUpNode(7);
  PodFacts earlier = Share("earlier");
  earlier.node = NodeName(kNode);
  earlier.progress = AgentProgress::kWaiting;
  Allocation allocation;
  allocation.epoch = 1;
  allocation.knowledge = Knowledge::kExact;
  allocation.containers = {{"main",
                            {Device{0, GpuUuid(std::string("GPU-") + kNode), MilliGpu::Zero(),
                                    Mebibytes::Of(1'000), std::nullopt}}}};
  earlier.allocation = allocation;
  Create(earlier);
  Ask("a");
  EXPECT_EQ(Posts(), "");
  Seen("earlier", AgentProgress::kServed);
  EXPECT_EQ(Posts(), "a");
}

}  // namespace THIS_FILE
}  // namespace tranche
