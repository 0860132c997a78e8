// The product as processes of the simulator, with an API server and nobody else.

#include "test/sim/product/replicas.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "test/sim/cluster/api_server.h"
#include "test/sim/cluster/network.h"

namespace tranche::sim {
namespace THIS_FILE {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr int64_t kManySteps = 10'000'000;

Json GpuNode(const std::string& name) {
  const Json amounts = {
      {"cpu", "64"}, {"memory", "512Gi"}, {"nvidia.com/gpu", "8"}, {"pods", "110"}};
  return {{"metadata",
           {{"name", name},
            {"labels",
             {{"kubernetes.io/hostname", name},
              {"nvidia.com/gpu.present", "true"},
              {"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"},
              {"nvidia.com/gpu.memory", "81559"},
              {"nvidia.com/gpu.count", "8"},
              {"nvidia.com/gpu.replicas", "1"},
              {"nvidia.com/mig.strategy", "none"}}}}},
          {"spec", Json::object()},
          {"status",
           {{"allocatable", amounts},
            {"capacity", amounts},
            {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
}

Json GpuPod(const std::string& name, int gpus) {
  const Json amounts = {{"nvidia.com/gpu", std::to_string(gpus)}};
  return {{"metadata", {{"name", name}, {"namespace", "team-a"}}},
          {"spec",
           {{"schedulerName", "default-scheduler"},
            {"containers",
             {{{"name", "main"},
               {"image", "train"},
               {"resources", {{"limits", amounts}, {"requests", amounts}}}}}}}},
          {"status", {{"phase", "Pending"}}}};
}

class Scene {
 public:
  Scene(uint64_t seed, FaultPlan faults, int replicas, const std::string& who)
      : loop_(seed),
        history_(loop_),
        script_(seed),
        network_(loop_, history_, script_, faults, seed),
        api_(loop_, history_, script_, faults, network_, seed),
        scheduler_(loop_.NewActor("scheduler-0/1")),
        replicas_(loop_, history_, script_, faults, api_, OptionsOf(seed, replicas, who)) {
    history_.Listen([this](const Happening& happening) { seen_.push_back(happening); });
    api_.Put("world", "namespaces", {{"metadata", {{"name", "tranche-system"}}}});
    api_.Put("world", "namespaces", {{"metadata", {{"name", "team-a"}}}});
    api_.Put("world", "nodes", GpuNode("node-1"));
    replicas_.Start();
  }

  void Run(SimTime time) { ASSERT_TRUE(loop_.RunUntil(loop_.now() + time, kManySteps)); }
  // Until somebody leads and answers.
  int AwaitLeader() {
    for (int second = 0; second < 300 && !replicas_.leader(); ++second) Run(seconds(1));
    EXPECT_TRUE(replicas_.leader().has_value());
    return replicas_.leader().value_or(-1);
  }
  Reply Ask(const std::string& method, const std::string& target, const std::string& body) {
    std::optional<Reply> reply;
    replicas_.Send(scheduler_, {method, target, body}, seconds(5),
                   [&reply](Reply given) { reply = std::move(given); });
    for (int step = 0; step < 100 && !reply; ++step) Run(std::chrono::milliseconds(100));
    EXPECT_TRUE(reply.has_value());
    return reply.value_or(Reply{});
  }
  // Makes the pod, and has it bound as kube-scheduler would.
  void Bind(const std::string& name, int gpus) {
    api_.Put("world", "pods", GpuPod(name, gpus));
    Run(seconds(1));
    const Json pod = Pod(name);
    const Json args = {{"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", {"node-1"}}};
    const Reply filtered = Ask("POST", "/scheduler/filter", args.dump());
    EXPECT_EQ(filtered.code, 200) << filtered.body;
    EXPECT_NE(filtered.body.find("\"NodeNames\":[\"node-1\"]"), std::string::npos) << filtered.body;
    const Json bind = {{"PodName", name},
                       {"PodNamespace", "team-a"},
                       {"PodUID", pod.at("metadata").at("uid")},
                       {"Node", "node-1"}};
    const Reply bound = Ask("POST", "/scheduler/bind", bind.dump());
    EXPECT_EQ(bound.code, 200) << bound.body;
    EXPECT_EQ(Pod(name).at("spec").value("nodeName", ""), "node-1") << bound.body;
  }
  Json Pod(const std::string& name) {
    return api_.store().Find("pods", "team-a/" + name)->object();
  }
  // Pods and their devices, as the leader's books have them.
  std::string Books() {
    const auto pods = replicas_.Ask("/api/v1/pods");
    if (!pods) return "nobody answers";
    return pods->at("pods").dump();  // the version of the list is of one process
  }
  std::vector<std::string> Seen(Happening::Kind kind) const {
    std::vector<std::string> out;
    for (const Happening& one : seen_) {
      if (one.kind == kind) out.push_back(one.who + " " + one.key);
    }
    return out;
  }

  Replicas& replicas() { return replicas_; }
  uint64_t digest() const { return history_.digest(); }
  Loop& loop() { return loop_; }

 private:
  static ReplicasOptions OptionsOf(uint64_t seed, int replicas, const std::string& who) {
    ReplicasOptions options;
    options.seed = seed;
    options.replicas = replicas;
    options.folder = fmt::format("/dev/shm/tranche-sim-tests-{}-{}", getpid(), who);
    if (const char* level = std::getenv("TRANCHE_SIM_LOG")) options.log_level = level;
    return options;
  }

  Loop loop_;
  History history_;
  std::vector<Happening> seen_;
  Script script_;
  Network network_;
  ApiServer api_;
  const Actor scheduler_;
  Replicas replicas_;
};

std::string Name() { return testing::UnitTest::GetInstance()->current_test_info()->name(); }

TEST(ReplicasTest, BindsAndHasTheSameBooksAfterACrash) {
  Scene scene(7, {}, 1, Name());
  EXPECT_EQ(scene.AwaitLeader(), 0);
  scene.Bind("a", 2);
  scene.Bind("b", 1);
  scene.Run(seconds(2));
  const std::string before = scene.Books();
  EXPECT_NE(before.find("\"team-a\""), std::string::npos);
  EXPECT_EQ(scene.Seen(Happening::Kind::kPromised),
            (std::vector<std::string>{"tranche-0/1 team-a/a", "tranche-0/1 team-a/b"}));
  scene.replicas().Crash(0);
  EXPECT_EQ(scene.Books(), "nobody answers");
  scene.AwaitLeader();
  scene.Run(seconds(2));
  EXPECT_EQ(scene.Books(), before);
  scene.Bind("c", 5);
  const std::vector<std::string> leaders = scene.Seen(Happening::Kind::kLeads);
  EXPECT_EQ(leaders, (std::vector<std::string>{"tranche-0/1 ", "tranche-0/2 "}));
}

TEST(ReplicasTest, AnotherTakesOverWhenTheLeaderIsKilled) {
  Scene scene(11, {}, 3, Name());
  const int first = scene.AwaitLeader();
  scene.Bind("a", 2);
  scene.replicas().Crash(first);
  scene.Run(seconds(3));
  const int second = scene.AwaitLeader();
  EXPECT_NE(first, second);
  scene.Bind("b", 6);
}

// Two replicas for twenty minutes with kills, pauses, clocks and disks: whoever leads in the end
// knows the pods that were bound.
uint64_t DigestOfAWhile(uint64_t seed, const std::string& who) {
  FaultPlan faults;
  for (const Fault kind : {Fault::kCrash, Fault::kPause, Fault::kClock, Fault::kDisk}) {
    faults.rates[static_cast<int>(kind)] = 100;
  }
  Scene scene(seed, faults, 2, who);
  scene.AwaitLeader();
  scene.Run(minutes(20));
  scene.replicas().Quiet();
  scene.Run(minutes(3));
  scene.AwaitLeader();
  scene.Bind("a", 2);
  return scene.digest();
}

TEST(ReplicasTest, OneSeedIsOneRun) {
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    EXPECT_EQ(DigestOfAWhile(seed, Name()), DigestOfAWhile(seed, Name())) << "seed " << seed;
  }
  EXPECT_NE(DigestOfAWhile(1, Name()), DigestOfAWhile(2, Name()));
}

}  // namespace THIS_FILE
}  // namespace tranche::sim
