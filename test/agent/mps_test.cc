// GPUs that containers share by MPS: slots for the kubelet, limits for the containers, and the
// control daemon, played by a script, when it fails.
#include <gmock/gmock.h>

#include <csignal>

#include "test/agent/agent_node.h"

namespace tranche::agent {
namespace {

using fakes::Ids;
using ::testing::HasSubstr;

// What an agent does with NVIDIA's program: it runs as a daemon and answers lines.
constexpr const char* kControl = R"sh(#!/bin/sh
cd "$CUDA_MPS_PIPE_DIRECTORY" || exit 2
if [ "$1" = -f ]; then
  [ -e broken ] && exit 7
  echo "$@" > arguments; echo $$ > pid
  exec sleep 1000
fi
kill -0 "$(cat pid)" 2>/dev/null || exit 1
while read -r verb what; do
  case $verb in
    get_server_list) [ -e servers ] && cat servers;;
    get_server_status) cat "status-$what";;
    quit) kill "$(cat pid)";;
  esac
done
exit 0
)sh";

class MpsTest : public AgentTest {
 protected:
  MpsTest() {
    config_.slots = 4;
    config_.mps_folder = folder_ / "mps";
    config_.mps_control = folder_.Write("mps-control", kControl);
    std::filesystem::permissions(config_.mps_control, std::filesystem::perms::owner_all);
  }
  std::string Pipe(const std::string& file) const { return config_.mps_folder + "/pipe/" + file; }
  void WriteFile(const std::string& file, const std::string& text) const {
    std::ofstream(Pipe(file)) << text << '\n';
  }
  int Pid() const {
    int pid = 0;
    std::ifstream(Pipe("pid")) >> pid;
    return pid;
  }
  std::map<std::string, bool> Slots(bool healthy) const {
    std::map<std::string, bool> slots;
    for (const char* const gpu : {"GPU-a", "GPU-b"}) {
      for (int slot = 0; slot < config_.slots; ++slot) {
        slots[fmt::format("{}/slot-{}", gpu, slot)] = healthy;
      }
    }
    return slots;
  }
  // As time goes by.
  bool SlotsBecome(bool healthy) {
    auto wanted = Slots(healthy);
    wanted["GPU-c"] = false;
    return Await([&] {
      now_ += std::chrono::seconds(1);
      agent_->Step(now_).IgnoreError();
      return kubelet_->Devices("nvidia.com/gpu") == wanted;
    });
  }
  // As time goes by. What it says first may be that the daemon is starting.
  bool SaysProblem(const std::string& text) {
    return Await([&] {
      now_ += std::chrono::seconds(1);
      agent_->Step(now_).IgnoreError();
      return Problem().find(text) != std::string::npos;
    });
  }
  void StartShared() {
    agent_ = std::make_unique<Agent>(config_, credentials_, /*looks=*/1);
    ASSERT_TRUE(SlotsBecome(true));
  }
  // A pod with a part of each of these GPUs.
  static nlohmann::json PartJson(const std::string& name, const Ids& gpus, int milli, int mib) {
    nlohmann::json pod = PodJson(name, gpus);
    std::string& text =
        pod["metadata"]["annotations"]["tranche.dev/allocation"].get_ref<std::string&>();
    nlohmann::json record = nlohmann::json::parse(text);
    for (auto& device : record["containers"][0]["devices"]) {
      device["milli"] = milli;
      device["mib"] = mib;
    }
    text = record.dump();
    return pod;
  }
  void BindPart(const std::string& name, const Ids& gpus, int milli, int mib) {
    api_.Put(kPods, PartJson(name, gpus, milli, mib));
  }
  absl::Status Admit(const std::string& name, int64_t count = 1) {
    const absl::Status admitted = kubelet_->Admit(Managed(name, count));
    if (!admitted.ok()) return admitted;
    return kubelet_->Start("uid-" + name, "main");
  }
  // Of the container that was served last.
  std::string Variable(std::string_view name) const {
    const auto given = kubelet_->LastGiven();
    const auto at = given.envs().find(std::string(name));
    return at == given.envs().end() ? "" : at->second;
  }
};

TEST_F(MpsTest, HoldsContainersToTheirParts) {
  StartShared();
  std::ifstream arguments(Pipe("arguments"));
  std::string line;
  std::getline(arguments, line);
  EXPECT_EQ(line, "-f -multiuser-server");
  BindPart("half", {"GPU-a"}, 500, 40000);
  BindPart("third", {"GPU-a"}, 333, 20000);
  BindPart("pair", {"GPU-b", "GPU-a"}, 100, 9000);
  BindPart("whole", {"GPU-b"}, 1000, 81431);
  for (const auto& [name, count] : {std::pair("half", 1), std::pair("third", 1)}) {
    const absl::Status started = Admit(name, count);
    EXPECT_TRUE(started.ok()) << started;
  }
  EXPECT_EQ(kubelet_->Given("uid-third", "main"), Ids{"GPU-a"});
  EXPECT_EQ(Variable(kMpsPipeVariable), config_.mps_folder + "/pipe");
  EXPECT_EQ(Variable(kMpsMemoryVariable), "GPU-a=20000M");
  EXPECT_EQ(Variable(kMpsThreadsVariable), "33.3");
  const auto given = kubelet_->LastGiven();
  ASSERT_EQ(given.mounts_size(), 1);
  EXPECT_EQ(given.mounts(0).host_path(), config_.mps_folder + "/pipe");
  EXPECT_EQ(given.mounts(0).container_path(), config_.mps_folder + "/pipe");
  EXPECT_THAT(std::string(Admit("pair", 2).message()),
              HasSubstr("GPU GPU-b of its record: expected records and running containers"));
}

TEST_F(MpsTest, GivesAPodPartsOfSeveralGpus) {
  StartShared();
  BindPart("pair", {"GPU-b", "GPU-a"}, 250, 9000);
  const absl::Status started = Admit("pair", 2);
  EXPECT_TRUE(started.ok()) << started;
  EXPECT_EQ(Variable(kMpsMemoryVariable), "GPU-b=9000M,GPU-a=9000M");
  EXPECT_EQ(Variable(kMpsThreadsVariable), "25.0");
}

// What a container sets itself would count more than what it is given.
TEST_F(MpsTest, RefusesPodsThatSetTheirLimitsThemselves) {
  StartShared();
  nlohmann::json pod = PartJson("own", {"GPU-a"}, 500, 40000);
  pod["spec"]["containers"][0]["env"] = {
      {{"name", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"}, {"value", "0=80G"}}};
  api_.Put(kPods, pod);
  EXPECT_THAT(std::string(Admit("own").message()),
              HasSubstr("sets CUDA_MPS_PINNED_DEVICE_MEM_LIMIT itself"));
}

TEST_F(MpsTest, TellsTheServerThatItsGpusAreShared) {
  StartShared();
  const auto node = api_.Object(kNodes, "node-1");
  const auto told = wire::ParseTrancheRegister(
      node["metadata"]["annotations"].value("tranche.dev/agent-register", ""));
  ASSERT_TRUE(told.ok()) << told.status();
  ASSERT_EQ(told->agent.devices.size(), 3U);
  EXPECT_EQ(told->agent.devices[0].slots, 4);
  EXPECT_EQ(told->agent.devices[0].mode, "mps");
  EXPECT_EQ(told->agent.devices[0].memory.count(), 81559 - 480 - 128)
      << "without what the driver and the MPS server keep";
  EXPECT_EQ(told->agent.devices[2].slots, 1) << "in MIG mode";
}

// Without the daemon a program takes no notice of its limits.
TEST_F(MpsTest, NothingStartsWhileTheDaemonIsAway) {
  StartShared();
  BindPart("one", {"GPU-a"}, 500, 40000);
  ASSERT_TRUE(Admit("one").ok());
  WriteFile("broken", "");
  const int first = Pid();
  kill(first, SIGKILL);
  ASSERT_TRUE(SlotsBecome(false));
  EXPECT_THAT(Problem(), HasSubstr("the MPS control daemon"));
  EXPECT_FALSE(kubelet_->Start("uid-one", "main").ok());
  BindPart("two", {"GPU-a"}, 500, 40000);
  EXPECT_FALSE(Admit("two").ok());
  std::filesystem::remove(Pipe("broken"));
  ASSERT_TRUE(SlotsBecome(true));
  EXPECT_NE(Pid(), first);
  const absl::Status again = kubelet_->Start("uid-one", "main");
  EXPECT_TRUE(again.ok()) << again;
}

TEST_F(MpsTest, AServerThatHadAFaultTakesNobodyNew) {
  StartShared();
  WriteFile("servers", "41\n42");
  WriteFile("status-41", "ACTIVE");
  WriteFile("status-42", "FAULT");
  ASSERT_TRUE(SlotsBecome(false));
  EXPECT_THAT(Problem(), HasSubstr("its MPS server had a fault"));
  WriteFile("status-42", "ACTIVE");
  EXPECT_TRUE(SlotsBecome(true));
}

TEST_F(MpsTest, TheDaemonEndsWithTheAgent) {
  StartShared();
  const int pid = Pid();
  ASSERT_EQ(kill(pid, 0), 0);
  agent_.reset();
  EXPECT_NE(kill(pid, 0), 0);
}

TEST_F(MpsTest, AMissingProgramIsToldAndClosesTheGpus) {
  config_.mps_control = folder_ / "none";
  agent_ = std::make_unique<Agent>(config_, credentials_, /*looks=*/1);
  EXPECT_TRUE(SaysProblem("expected the program " + config_.mps_control));
  EXPECT_TRUE(SlotsBecome(false));
}

// Where programs could use a GPU beside MPS nobody would be held to anything.
TEST_F(MpsTest, GpusThatCannotBeForMpsAloneAreClosed) {
  nlohmann::json cards = Cards({"GPU-a", "GPU-b", "GPU-c"});
  for (auto& card : cards["gpus"]) card["mode"] = "fixed";
  node_->Change(cards);
  agent_ = std::make_unique<Agent>(config_, credentials_, /*looks=*/1);
  EXPECT_TRUE(SaysProblem("programs may use it beside MPS: nvmlDeviceSetComputeMode"));
  agent_.reset();
  config_.mps_only = false;
  StartShared();
}

}  // namespace
}  // namespace tranche::agent
