// kube-scheduler's cycle against an extender whose answers are written down.
#include "test/sim/world/kube_scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "test/sim/cluster/server_scene.h"
#include "test/sim/world/toy_extender.h"

namespace tranche::sim {
namespace THIS_FILE {

using std::chrono::seconds;

struct Scene : ServerScene {
  explicit Scene(const KubeSchedulerOptions& options = {})
      : extender(loop, api), scheduler(loop, history, script, faults, api, network, options, 1) {
    for (const char* name : {"node-1", "node-2"}) {
      Put("nodes",
          {{"metadata", {{"name", name}}},
           {"status", {{"allocatable", {{"cpu", "8"}, {"pods", "10"}, {"nvidia.com/gpu", "2"}}}}}});
    }
    scheduler.Start(extender);
  }
  void Come(const std::string& name, int gpus, int64_t priority = 0, const char* node = "") {
    const std::string amount = std::to_string(gpus);
    Json spec = {{"schedulerName", "gpu-scheduler"},
                 {"priority", priority},
                 {"containers",
                  Json::array({{{"name", "main"},
                                {"resources", {{"requests", {{"nvidia.com/gpu", amount}}}}}}})}};
    if (*node != 0) spec["nodeName"] = node;
    Put("pods", {{"metadata", {{"name", name}, {"namespace", "team"}}},
                 {"spec", std::move(spec)},
                 {"status", {{"phase", *node != 0 ? "Running" : "Pending"}}}});
  }
  void Run(int64_t time) { loop.RunUntil(loop.now() + seconds(time), 100'000); }
  std::string NodeOfPod(const std::string& name) { return NodeOf(Object("pods", "team/" + name)); }
  // Its PodScheduled condition's reason; empty: none.
  std::string ReasonOf(const std::string& name) {
    const Json pod = Object("pods", "team/" + name);
    if (!pod["status"].contains("conditions")) return "";
    for (const Json& condition : pod["status"]["conditions"]) {
      if (condition["type"] == "PodScheduled") return condition.value("reason", "");
    }
    return "";
  }
  std::vector<std::string> Verbs() const {
    std::vector<std::string> out;
    for (const auto& [verb, body] : extender.heard()) out.push_back(verb);
    return out;
  }

  ToyExtender extender;
  KubeScheduler scheduler;
};

TEST(KubeSchedulerTest, FiltersRanksAndBinds) {
  Scene scene;
  scene.extender.Answer("prioritize", Json::parse(R"([{"Host":"node-2","Score":10}])"));
  scene.Come("p", 1);
  scene.Run(1);
  EXPECT_EQ(scene.NodeOfPod("p"), "node-2");
  EXPECT_EQ(scene.Verbs(), (std::vector<std::string>{"filter", "prioritize", "bind"}));
  const Json args = scene.extender.heard().front().second;
  EXPECT_EQ(args["NodeNames"], Json({"node-1", "node-2"}));
  EXPECT_TRUE(args["Nodes"].is_null());
  EXPECT_FALSE(args["Pod"].contains("kind"));
}

TEST(KubeSchedulerTest, SomeWaitForAVolumeBeforeTheyAreBound) {
  constexpr int kPods = 16;
  for (const bool has_volumes : {false, true}) {
    KubeSchedulerOptions options;
    options.has_volumes = has_volumes;
    Scene scene(options);
    for (int i = 0; i < kPods; ++i) scene.Come("p" + std::to_string(i), 0);
    const auto bound = [&scene] {
      int count = 0;
      for (int i = 0; i < kPods; ++i) count += scene.NodeOfPod("p" + std::to_string(i)) != "";
      return count;
    };
    scene.Run(1);
    EXPECT_EQ(bound() < kPods, has_volumes);
    scene.Run(60);
    EXPECT_EQ(bound(), kPods);
  }
}

TEST(KubeSchedulerTest, OneNodeIsNotRanked) {
  Scene scene;
  scene.extender.Answer("filter", {{"NodeNames", {"node-1"}}});
  scene.Come("p", 1);
  scene.Run(1);
  EXPECT_EQ(scene.Verbs(), (std::vector<std::string>{"filter", "bind"}));
}

TEST(KubeSchedulerTest, AnswersThatPlaceNothing) {
  struct Row {
    const char* what;
    Json filter;
    const char* reason;
  };
  const std::vector<Row> rows = {
      {"no answer", nullptr, "SchedulerError"},
      {"an error", {{"Error", "bad"}, {"NodeNames", {"node-1"}}}, "SchedulerError"},
      {"a node nobody asked about", {{"NodeNames", {"node-9"}}}, "SchedulerError"},
      {"no names at all", Json::object(), "Unschedulable"},
      {"refused",
       {{"NodeNames", Json::array()}, {"FailedNodes", {{"node-1", "full"}}}},
       "Unschedulable"},
  };
  for (const Row& row : rows) {
    Scene scene;
    scene.extender.Answer("filter", row.filter);
    scene.Come("p", 1);
    scene.Run(6);
    EXPECT_EQ(scene.NodeOfPod("p"), "") << row.what;
    EXPECT_EQ(scene.ReasonOf("p"), row.reason) << row.what;
    const std::vector<std::string> verbs = scene.Verbs();
    EXPECT_EQ(std::count(verbs.begin(), verbs.end(), "bind"), 0) << row.what;
  }
}

TEST(KubeSchedulerTest, ABindThatFailsIsTriedAgain) {
  Scene scene;
  scene.extender.Answer("bind", {{"Error", "no"}});
  scene.Come("p", 1);
  scene.Run(6);
  EXPECT_EQ(scene.NodeOfPod("p"), "");
  EXPECT_EQ(scene.ReasonOf("p"), "SchedulerError");
  const std::vector<std::string> verbs = scene.Verbs();
  EXPECT_GE(std::count(verbs.begin(), verbs.end(), "bind"), 2);
}

// What it assumes takes room until it is told otherwise, and for ever where a bind said yes and did
// nothing.
TEST(KubeSchedulerTest, AnAssumedPodTakesRoom) {
  Scene scene;
  scene.extender.Answer("bind", {{"Error", ""}});
  scene.Come("a", 2);
  scene.Come("b", 2);
  scene.Run(1);
  scene.Come("c", 2);
  scene.Run(30);
  EXPECT_EQ(scene.ReasonOf("c"), "Unschedulable");
  const std::vector<std::string> verbs = scene.Verbs();
  EXPECT_EQ(std::count(verbs.begin(), verbs.end(), "bind"), 2);
}

TEST(KubeSchedulerTest, PreemptsTheLeastImportantPodThatHelps) {
  Scene scene;
  scene.Come("low", 2, 1, "node-1");
  scene.Come("middle", 2, 5, "node-2");
  scene.Run(1);
  scene.Come("high", 2, 9);
  scene.Run(2);
  const Json low = scene.Object("pods", "team/low");
  EXPECT_TRUE(low["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(low["status"]["conditions"][0]["reason"], "PreemptionByScheduler");
  EXPECT_FALSE(scene.Object("pods", "team/middle")["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(scene.Object("pods", "team/high")["status"]["nominatedNodeName"], "node-1");
  // The victim is gone: the nominated node alone is asked about.
  scene.Send("DELETE", "/api/v1/namespaces/team/pods/low", {{"gracePeriodSeconds", 0}});
  scene.Run(20);
  EXPECT_EQ(scene.NodeOfPod("high"), "node-1");
  const auto& heard = scene.extender.heard();
  const auto filter = std::find_if(heard.begin(), heard.end(),
                                   [](const auto& one) { return one.first == "filter"; });
  ASSERT_NE(filter, heard.end());
  EXPECT_EQ(filter->second["NodeNames"], Json({"node-1"}));
}

TEST(KubeSchedulerTest, TheExtenderDecidesWhoIsPreempted) {
  for (const char* answer : {R"({"NodeNameToMetaVictims":{}})",
                             R"({"NodeNameToMetaVictims":{"node-1":{"Pods":[{"UID":"x"}]}}})",
                             R"({"NodeNameToMetaVictims":{"node-1":{"Pods":[]}}})"}) {
    Scene scene;
    scene.extender.Answer("preempt", Json::parse(answer));
    scene.Come("low", 2, 1, "node-1");
    scene.Come("other", 2, 1, "node-2");
    scene.Run(1);
    scene.Come("high", 2, 9);
    scene.Run(5);
    EXPECT_FALSE(scene.Object("pods", "team/low")["metadata"].contains("deletionTimestamp"));
    EXPECT_EQ(scene.ReasonOf("high"), "Unschedulable");
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::sim
