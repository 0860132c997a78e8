// tranche-node making MIG instances to measure: two H100s, a and b, in MIG mode.
#include <gmock/gmock.h>

#include <thread>

#include "scheduler/agent/mig_worker.h"
#include "test/agent/agent_node.h"

namespace tranche::agent {
namespace {

using fakes::Ids;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr int kInsufficientResources = 23;
constexpr int kInUse = 19;

std::string ResourceOf(const std::string& id) {
  return "nvidia.com/mig-" + ParseDeviceId(id).place->profile;
}

class MigTest : public AgentTest {
 protected:
  MigTest() {
    config_.make_mig = true;
    Play();
  }

  static nlohmann::json MigCards() {
    nlohmann::json cards = Cards({"GPU-a", "GPU-b"});
    for (auto& gpu : cards["gpus"]) {
      gpu["board"] = "h100-80";
      gpu["mig"] = nlohmann::json::array();
    }
    return cards;
  }
  // As after a restart of the node: no instance is there.
  void Play() { node_.emplace(MigCards()); }

  void StartMigAgent() {
    agent_.reset();
    agent_ = std::make_unique<Agent>(config_, credentials_, /*looks=*/1);
    const absl::Status status = agent_->Step(now_);
    ASSERT_TRUE(status.ok()) << status;
    // All that a GPU can be cut into; seven 1g.10gb of each.
    ASSERT_TRUE(Await([&] { return kubelet_->Devices("nvidia.com/mig-1g.10gb").size() == 14; }));
    ASSERT_TRUE(Await([&] { return kubelet_->Devices("nvidia.com/mig-3g.40gb").size() == 4; }));
  }

  // Takes a look, lets the agent clear, and waits.
  bool Settles(const Ids& instances) {
    now_ += config_.look_period;
    agent_->Step(now_).IgnoreError();
    return Await([&] { return node_->Instances() == instances; });
  }

  absl::Status Admit(const std::string& name, const std::string& id) {
    api_.Put(kPods, PodJson(name, {id}, ResourceOf(id)));
    return kubelet_->Admit(Managed(name, 1), ResourceOf(id));
  }
  void Run(const std::string& name, const std::string& id) {
    Acknowledge(PodJson(name, {id}, ResourceOf(id)), "Running");
  }
  void End(const std::string& name, const std::string& id) {
    kubelet_->End("uid-" + name);
    Acknowledge(PodJson(name, {id}, ResourceOf(id)), "Succeeded");
  }
  std::string Given(const std::string& name, const std::string& id) {
    const Ids given = kubelet_->Given("uid-" + name, "main", ResourceOf(id));
    return given.empty() ? "" : given.front();
  }
  absl::Status Start(const std::string& name, const std::string& id) {
    return kubelet_->Start("uid-" + name, "main", ResourceOf(id));
  }
  // Closed places of the register.
  Ids Closed() const {
    Ids all;
    const auto node = api_.Object(kNodes, "node-1");
    const auto parsed = wire::ParseTrancheRegister(
        node["metadata"]["annotations"].value("tranche.dev/agent-register", ""));
    if (!parsed.ok()) return {std::string(parsed.status().message())};
    for (const AgentDevice& device : parsed->agent.devices) {
      for (const MigDevice& place : device.closed) {
        all.push_back(DeviceId{device.uuid, place}.str());
      }
    }
    return all;
  }
};

const std::string kHalf = "GPU-a/3g.40gb@4+4";
const std::string kSmall = "GPU-a/1g.10gb@2+1";
const std::string kQuarter = "GPU-b/2g.20gb@0+2";

TEST_F(MigTest, MakesEachInstanceAtItsPlannedPlace) {
  StartMigAgent();
  EXPECT_EQ(Register(), "0:GPU-a true, 1:GPU-b true, ");
  EXPECT_THAT(kubelet_->resources(),
              UnorderedElementsAre("nvidia.com/gpu", "nvidia.com/mig-1g.10gb",
                                   "nvidia.com/mig-1g.10gb.me", "nvidia.com/mig-1g.20gb",
                                   "nvidia.com/mig-2g.20gb", "nvidia.com/mig-3g.40gb",
                                   "nvidia.com/mig-4g.40gb", "nvidia.com/mig-7g.80gb"));
  EXPECT_THAT(kubelet_->Devices("nvidia.com/gpu"), IsEmpty()) << "none is given whole";
  for (const auto& [name, id] :
       {std::pair("half", kHalf), std::pair("small", kSmall), std::pair("quarter", kQuarter)}) {
    const absl::Status admitted = Admit(name, id);
    ASSERT_TRUE(admitted.ok()) << admitted;
    Run(name, id);
    EXPECT_THAT(Given(name, id), HasSubstr("MIG-"));
    const absl::Status started = Start(name, id);
    EXPECT_TRUE(started.ok()) << started;
  }
  EXPECT_THAT(node_->Instances(),
              ElementsAre("GPU-a 3g.40gb@4", "GPU-a 1g.10gb@2", "GPU-b 2g.20gb@0"));
  // It is removed when its pod has ended, beside those that run.
  End("half", kHalf);
  EXPECT_TRUE(Settles({"GPU-a 1g.10gb@2", "GPU-b 2g.20gb@0"}));
  ASSERT_TRUE(Admit("next", "GPU-a/2g.20gb@4+2").ok());
  EXPECT_THAT(Closed(), IsEmpty());
}

TEST_F(MigTest, WhatIsInTheWayOfANewPodAndNobodysIsRemovedAtOnce) {
  StartMigAgent();
  ASSERT_TRUE(Admit("half", kHalf).ok());
  End("half", kHalf);
  const absl::Status admitted = Admit("other", "GPU-a/1g.10gb@5+1");
  ASSERT_TRUE(admitted.ok()) << admitted;
  EXPECT_THAT(node_->Instances(), ElementsAre("GPU-a 1g.10gb@5"));
}

TEST_F(MigTest, FailedAndHalfDoneCreationsCloseThePlace) {
  StartMigAgent();
  node_->Fail({{"nvmlDeviceCreateGpuInstanceWithPlacement", {{"code", kInsufficientResources}}}});
  EXPECT_THAT(std::string(Admit("half", kHalf).message()),
              HasSubstr("tranche-node: pod team/half: MIG instance GPU-a/3g.40gb@4+4: "
                        "nvmlDeviceCreateGpuInstanceWithPlacement: expected success, found "
                        "Insufficient Resources"));
  End("half", kHalf);
  now_ += config_.look_period / 2;
  ASSERT_TRUE(agent_->Step(now_).ok());
  EXPECT_THAT(Closed(), ElementsAre(kHalf)) << "told at once";
  EXPECT_THAT(Problem(), HasSubstr("3g.40gb at 4: nvmlDeviceCreateGpuInstanceWithPlacement"));
  EXPECT_TRUE(Await([&] { return !kubelet_->Devices("nvidia.com/mig-3g.40gb").at(kHalf); }));
  EXPECT_FALSE(Admit("again", "GPU-a/1g.10gb@6+1").ok()) << "it overlaps";
  // A compute instance that cannot be made takes the GPU instance with it, if the driver lets it.
  node_->Fail({{"nvmlGpuInstanceCreateComputeInstance", {{"code", kInsufficientResources}}}});
  EXPECT_FALSE(Admit("small", kSmall).ok());
  EXPECT_THAT(node_->Instances(), IsEmpty());
  node_->Fail({{"nvmlGpuInstanceCreateComputeInstance", {{"code", kInsufficientResources}}},
               {"nvmlGpuInstanceDestroy", {{"code", kInUse}}}});
  EXPECT_FALSE(Admit("quarter", kQuarter).ok());
  End("quarter", kQuarter);
  EXPECT_TRUE(Settles({"GPU-b 2g.20gb@0"}));
  EXPECT_TRUE(agent_->Step(now_).ok());
  EXPECT_THAT(Closed(), ElementsAre(kSmall, kHalf, kQuarter));
  node_->Fail({});
  EXPECT_TRUE(Settles({})) << "what was left half done is removed";
}

TEST_F(MigTest, ANewAgentRemovesWhatIsLeftOverAndTakesUpWhatIsUsed) {
  StartMigAgent();
  ASSERT_TRUE(Admit("half", kHalf).ok());
  Run("half", kHalf);
  ASSERT_TRUE(Admit("small", kSmall).ok());
  ASSERT_TRUE(Admit("forced", kQuarter).ok());
  agent_.reset();
  End("small", kSmall);
  api_.Delete(kPods, "team/forced");  // by force: its container lives on
  StartMigAgent();
  EXPECT_TRUE(Settles({"GPU-a 3g.40gb@4", "GPU-b 2g.20gb@0"}));
  EXPECT_TRUE(Start("half", kHalf).ok());
  // The kubelet loses its checkpoint, and asks again for what runs.
  const std::string uuid = Given("half", kHalf);
  kubelet_->Restart(/*with_checkpoint=*/false);
  StartMigAgent();
  ASSERT_TRUE(kubelet_->Admit(Managed("half", 1), ResourceOf(kHalf)).ok());
  EXPECT_EQ(Given("half", kHalf), uuid);
}

TEST_F(MigTest, WhatCannotBeRemovedIsClosedUntilItCan) {
  node_->Fail({{"nvmlComputeInstanceDestroy", {{"code", kInUse}}}});
  StartMigAgent();
  ASSERT_TRUE(Admit("stranger", kHalf).ok());
  End("stranger", kHalf);
  api_.Delete(kPods, "team/stranger");
  now_ += config_.look_period;
  ASSERT_TRUE(agent_->Step(now_).ok());
  EXPECT_TRUE(Await([&] {
    EXPECT_TRUE(agent_->Step(now_).ok());
    return Closed() == Ids{kHalf};
  }));
  EXPECT_THAT(Problem(), HasSubstr("an instance that no record names is there"));
  node_->Fail({});
  EXPECT_TRUE(Settles({}));
  EXPECT_TRUE(Await([&] {
    EXPECT_TRUE(agent_->Step(now_).ok());
    return Closed().empty();
  }));
}

TEST_F(MigTest, AfterARestartOfTheNodeNobodyGetsAnothersInstance) {
  StartMigAgent();
  ASSERT_TRUE(Admit("half", kHalf).ok());
  Run("half", kHalf);
  agent_.reset();
  Play();
  kubelet_->Restart(/*with_checkpoint=*/true);
  StartMigAgent();
  ASSERT_TRUE(kubelet_->Admit(Managed("half", 1), ResourceOf(kHalf)).ok()) << "by the checkpoint";
  EXPECT_THAT(std::string(Start("half", kHalf).message()), HasSubstr("the pod must be made anew"));
  ASSERT_TRUE(Admit("small", kSmall).ok());
  EXPECT_TRUE(Start("small", kSmall).ok());
}

TEST_F(MigTest, WithoutTheSwitchGpusInMigModeAreClosed) {
  config_.make_mig = false;
  agent_ = std::make_unique<Agent>(config_, credentials_, /*looks=*/1);
  ASSERT_TRUE(agent_->Step(now_).ok());
  EXPECT_TRUE(kubelet_->WaitForDevices({{"GPU-a", false}, {"GPU-b", false}}));
  EXPECT_EQ(kubelet_->resources(), Ids{"nvidia.com/gpu"});
}

// Seven at a time, again and again.
TEST_F(MigTest, TheProgramMakesInstancesWithinTwentyMebibytes) {
  StartProgram("makeMig: true\n");
  ASSERT_TRUE(Await([&] { return kubelet_->Devices("nvidia.com/mig-1g.10gb").size() == 14; }));
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 70; ++i) {
    const std::string id = fmt::format("GPU-a/1g.10gb@{}+1", i % 7);
    const std::string name = fmt::format("pod-{}", i);
    const absl::Status admitted = Admit(name, id);
    ASSERT_TRUE(admitted.ok()) << admitted;
    EXPECT_TRUE(Start(name, id).ok());
    End(name, id);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::cout << "70 instances made in " << took.count() << " s\n";
  EndProgram();
}

// A driver that hangs until it is let go.
class HangingDriver : public MigDriver {
 public:
  struct Gate {
    std::mutex mutex;
    std::condition_variable opened;
    bool open = false;
    bool entered = false;  // somebody hangs there
    std::vector<Instance> instances;
  };
  explicit HangingDriver(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}

  absl::StatusOr<std::vector<Instance>> List(const GpuUuid&) override {
    const std::lock_guard lock(gate_->mutex);
    return gate_->instances;
  }
  absl::Status Make(const GpuUuid&, const MigDevice& place) override {
    std::unique_lock lock(gate_->mutex);
    gate_->entered = true;
    gate_->opened.wait(lock, [&] { return gate_->open; });
    gate_->instances.push_back({1, place, "MIG-1"});
    return absl::OkStatus();
  }
  absl::Status Remove(const GpuUuid&, unsigned) override {
    const std::lock_guard lock(gate_->mutex);
    gate_->instances.clear();
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Gate> gate_;
};

TEST(MigWorker, NobodyWaitsForADriverThatHangs) {
  const auto gate = std::make_shared<HangingDriver::Gate>();
  Look nobody;
  nobody.pods.emplace();
  MigWorker worker(std::make_unique<HangingDriver>(gate),
                   {std::chrono::milliseconds(1), [nobody] { return nobody; }});
  const DeviceId id = ParseDeviceId(kHalf);
  const auto hangs = [&] {
    const std::lock_guard lock(gate->mutex);
    return gate->entered;
  };
  // One that is not even begun in time is forgotten.
  while (!hangs()) {
    const auto given = worker.Provide({{"team", "p"}, PodUid("u"), "main", {id}}, id);
    EXPECT_THAT(std::string(given.status().message()), HasSubstr("has not answered within 1 ms"));
  }
  ASSERT_EQ(worker.closed().size(), 1U);
  EXPECT_EQ(worker.closed().begin()->second.front().place, *id.place);
  EXPECT_TRUE(absl::IsUnavailable(worker.Check(id))) << "it still hangs";
  {
    const std::lock_guard lock(gate->mutex);
    gate->open = true;
  }
  gate->opened.notify_all();
  // What was made too late is nobody's.
  Card card{id.gpu, ""};
  card.mig = true;
  for (int i = 0; i < 600; ++i) {
    worker.Clear({card});
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::lock_guard lock(gate->mutex);
    if (gate->instances.empty() && worker.closed()[id.gpu].empty()) break;
  }
  EXPECT_THAT(worker.closed()[id.gpu], IsEmpty());
  const std::lock_guard lock(gate->mutex);
  EXPECT_THAT(gate->instances, IsEmpty());
}

}  // namespace
}  // namespace tranche::agent
