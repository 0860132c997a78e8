// What only pods have: binding, eviction against disruption budgets, graceful deletion, defaults.
#include "test/sim/cluster/pod_writes.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "test/sim/cluster/server_scene.h"

namespace tranche::sim {
namespace THIS_FILE {

constexpr const char* kPods = "/api/v1/namespaces/team/pods/";
constexpr const char* kStrategic = "application/strategic-merge-patch+json";

Json Binding(const std::string& uid) {
  return {{"kind", "Binding"},
          {"metadata", {{"name", "p"}, {"uid", uid}, {"annotations", {{"tranche.dev/x", "y"}}}}},
          {"target", {{"kind", "Node"}, {"name", "node-1"}}}};
}

TEST(PodWritesTest, Bindings) {
  struct Row {
    const char* what;
    Json spec;
    Json metadata;
    std::optional<std::string> uid;  // nullopt: the pod's own
    int code;
  };
  const std::vector<Row> rows = {
      {"one that waits", Json::object(), Json::object(), {}, 201},
      {"no uid is no precondition", Json::object(), Json::object(), "", 409},
      {"another uid", Json::object(), Json::object(), "x", 409},
      {"bound elsewhere", {{"nodeName", "node-2"}}, Json::object(), {}, 409},
      {"bound there already", {{"nodeName", "node-1"}}, Json::object(), {}, 409},
      {"being deleted", Json::object(), {{"deletionTimestamp", "t"}}, {}, 409},
      {"gated", {{"schedulingGates", Json::array({{{"name", "g"}}})}}, Json::object(), {}, 409},
  };
  for (const Row& row : rows) {
    ServerScene scene;
    scene.PutPod("p", row.spec, "Pending", row.metadata);
    const std::string uid = row.uid.value_or(scene.UidOf("team/p"));
    const Reply reply = scene.Send("POST", std::string(kPods) + "p/binding", Binding(uid));
    EXPECT_EQ(reply.code, row.code) << row.what;
    const Json pod = scene.Object("pods", "team/p");
    const Json notes = pod["metadata"].value("annotations", Json::object());
    // Node and annotations come together, or neither does.
    EXPECT_EQ(notes.contains("tranche.dev/x"), row.code == 201) << row.what;
    if (row.code == 201) {
      EXPECT_EQ(NodeOf(pod), "node-1") << row.what;
    } else {
      EXPECT_EQ(NodeOf(pod), row.spec.value("nodeName", "")) << row.what;
    }
  }
  ServerScene scene;
  EXPECT_EQ(scene.Send("POST", std::string(kPods) + "p/binding", Binding("x")).code, 404);
}

TEST(PodWritesTest, ABindingTakesTheNominationAwaySince135) {
  for (const bool clears : {false, true}) {
    ServerScene scene;
    scene.api.pods().set_clears_nominations(clears);
    scene.PutPod("p", Json::object());
    const std::string uid = scene.UidOf("team/p");
    scene.Send("PATCH", std::string(kPods) + "p/status",
               {{"metadata", {{"uid", uid}}}, {"status", {{"nominatedNodeName", "node-1"}}}},
               kStrategic);
    scene.Send("POST", std::string(kPods) + "p/binding", Binding(uid));
    EXPECT_EQ(scene.Object("pods", "team/p")["status"].contains("nominatedNodeName"), !clears);
  }
}

TEST(PodWritesTest, Evictions) {
  struct Row {
    const char* what;
    const char* phase;
    Json metadata;
    std::vector<Json> budgets;  // their statuses
    Json options;
    int code;
    bool names_budget;
    std::optional<int> retry_after;
    bool gone;
  };
  const Json app = {{"labels", {{"app", "a"}}}};
  const Json allows = {{"observedGeneration", 1}, {"disruptionsAllowed", 1}};
  const Json forbids = {{"observedGeneration", 1}, {"disruptionsAllowed", 0}};
  const Json behind = {{"observedGeneration", 0}, {"disruptionsAllowed", 5}};
  const Json negative = {{"observedGeneration", 1}, {"disruptionsAllowed", -1}};
  Json leaving = app;
  leaving["deletionTimestamp"] = "t";
  leaving["deletionGracePeriodSeconds"] = 5;
  const Json none = Json::object();
  const std::vector<Row> rows = {
      {"no budget", "Running", none, {forbids}, none, 201, false, {}, false},
      {"allowed", "Running", app, {allows}, none, 201, false, {}, false},
      {"forbidden", "Running", app, {forbids}, none, 429, true, {}, false},
      {"the budget is behind", "Running", app, {behind}, none, 429, true, 10, false},
      {"a negative budget", "Running", app, {negative}, none, 403, false, {}, false},
      {"two budgets", "Running", app, {allows, allows}, none, 500, false, {}, false},
      {"one that does not run yet", "Pending", app, {forbids}, none, 201, false, {}, false},
      {"one that has ended", "Failed", app, {forbids}, none, 201, false, {}, true},
      {"one that leaves", "Running", leaving, {forbids}, none, 201, false, {}, false},
      {"another uid",
       "Running",
       app,
       {allows},
       {{"preconditions", {{"uid", "x"}}}},
       409,
       false,
       {},
       false},
      {"without any grace",
       "Running",
       app,
       {allows},
       {{"gracePeriodSeconds", 0}},
       201,
       false,
       {},
       true},
  };
  for (const Row& row : rows) {
    ServerScene scene;
    scene.PutPod("p", {{"nodeName", "node-1"}}, row.phase, row.metadata);
    int number = 0;
    for (const Json& status : row.budgets) {
      scene.Put("poddisruptionbudgets",
                {{"metadata", {{"name", "b" + std::to_string(++number)}, {"namespace", "team"}}},
                 {"spec", {{"selector", {{"matchLabels", {{"app", "a"}}}}}}},
                 {"status", status}});
    }
    const Reply reply = scene.Send(
        "POST", std::string(kPods) + "p/eviction",
        {{"kind", "Eviction"}, {"metadata", {{"name", "p"}}}, {"deleteOptions", row.options}});
    EXPECT_EQ(reply.code, row.code) << row.what << ": " << reply.body;
    EXPECT_EQ(reply.body.find("DisruptionBudget\"") != std::string::npos, row.names_budget)
        << row.what;
    EXPECT_EQ(reply.retry_after, row.retry_after) << row.what;
    const Json pod = scene.Object("pods", "team/p");
    EXPECT_EQ(pod.is_null(), row.gone) << row.what;
    if (pod.is_null()) continue;
    const bool leaves = row.code == 201 || row.metadata.contains("deletionTimestamp");
    EXPECT_EQ(pod["metadata"].contains("deletionTimestamp"), leaves) << row.what;
  }
}

TEST(PodWritesTest, ABudgetIsChargedOnceForEachEviction) {
  ServerScene scene;
  scene.Put("poddisruptionbudgets",
            {{"metadata", {{"name", "b"}, {"namespace", "team"}}},
             {"spec", {{"selector", {{"matchLabels", Json::object()}}}}},
             {"status", {{"observedGeneration", 1}, {"disruptionsAllowed", 1}}}});
  for (const char* name : {"p", "q"}) {
    scene.PutPod(name, {{"nodeName", "node-1"}}, "Running", {{"labels", {{"app", "a"}}}});
  }
  const auto evict = [&scene](const std::string& name) {
    return scene
        .Send("POST", kPods + name + "/eviction",
              {{"kind", "Eviction"}, {"metadata", {{"name", name}}}})
        .code;
  };
  EXPECT_EQ(evict("p"), 201);
  EXPECT_EQ(evict("q"), 429);
  EXPECT_TRUE(
      scene.Object("poddisruptionbudgets", "team/b")["status"]["disruptedPods"].contains("p"));
}

TEST(PodWritesTest, Deletions) {
  struct Row {
    const char* what;
    const char* node;
    const char* phase;
    Json options;
    bool gone;
    int64_t grace;  // where it stays
  };
  const std::vector<Row> rows = {
      {"one that waits", "", "Pending", nullptr, true, 0},
      {"one that has ended", "node-1", "Succeeded", nullptr, true, 0},
      {"one that runs", "node-1", "Running", nullptr, false, 30},
      {"with a grace", "node-1", "Running", {{"gracePeriodSeconds", 7}}, false, 7},
      {"by force", "node-1", "Running", {{"gracePeriodSeconds", 0}}, true, 0},
  };
  for (const Row& row : rows) {
    ServerScene scene;
    Json spec = Json::object();
    if (*row.node != 0) spec["nodeName"] = row.node;
    scene.PutPod("p", spec, row.phase);
    EXPECT_EQ(scene.Send("DELETE", std::string(kPods) + "p", row.options).code, 200) << row.what;
    const Json pod = scene.Object("pods", "team/p");
    EXPECT_EQ(pod.is_null(), row.gone) << row.what;
    if (pod.is_null()) continue;
    EXPECT_EQ(pod["metadata"]["deletionGracePeriodSeconds"], row.grace) << row.what;
    // Asked again with more time, the first word holds; with less, the new one.
    scene.Send("DELETE", std::string(kPods) + "p", {{"gracePeriodSeconds", 100}});
    EXPECT_EQ(scene.Object("pods", "team/p")["metadata"]["deletionGracePeriodSeconds"], row.grace);
    scene.Send("DELETE", std::string(kPods) + "p", {{"gracePeriodSeconds", 1}});
    EXPECT_EQ(scene.Object("pods", "team/p")["metadata"]["deletionGracePeriodSeconds"], 1);
  }
}

TEST(PodWritesTest, ATerminalPhaseStays) {
  ServerScene scene;
  scene.PutPod("p", {{"nodeName", "node-1"}}, "Failed");
  const Json patch = {{"status", {{"phase", "Running"}}}};
  EXPECT_EQ(scene.Send("PATCH", std::string(kPods) + "p/status", patch, kStrategic).code, 422);
}

TEST(PodWritesTest, ConditionsMergeByType) {
  ServerScene scene;
  scene.PutPod("p", Json::object());
  const auto set = [&scene](const char* type, const char* status) {
    return scene
        .Send("PATCH", std::string(kPods) + "p/status",
              {{"status", {{"conditions", Json::array({{{"type", type}, {"status", status}}})}}}},
              kStrategic)
        .code;
  };
  EXPECT_EQ(set("A", "True"), 200);
  EXPECT_EQ(set("B", "True"), 200);
  EXPECT_EQ(set("A", "False"), 200);
  EXPECT_EQ(scene.Object("pods", "team/p")["status"]["conditions"],
            Json::parse(R"([{"type":"A","status":"False"},{"type":"B","status":"True"}])"));
}

// A client that has given up may have been let pass after all.
TEST(PodWritesTest, APolicyThatHangsLetsPassLater) {
  FaultPlan plan;
  plan.rates[static_cast<int>(Fault::kApiServer)] = 1;
  ServerScene scene(plan);
  scene.api.set_policies_hang(true);
  int kept = 0;
  for (int i = 0; i < 60; ++i) {
    scene.PutPod("p", Json::object());
    const Reply reply =
        scene.Send("POST", std::string(kPods) + "p/binding", Binding(scene.UidOf("team/p")));
    const bool is_kept = reply.code == 0 && NodeOf(scene.Object("pods", "team/p")).empty();
    scene.loop.RunUntil(scene.loop.now() + std::chrono::seconds(30), 100'000);
    if (is_kept) {
      ++kept;
      EXPECT_EQ(NodeOf(scene.Object("pods", "team/p")), "node-1");
    }
    scene.api.store().Remove("pods", "team/p", "user");
  }
  EXPECT_GT(kept, 0);
}

TEST(PodWritesTest, NewPodsAreFilledIn) {
  ServerScene scene;
  scene.Put("priorityclasses",
            {{"metadata", {{"name", "high"}}}, {"value", 7}, {"preemptionPolicy", "Never"}});
  const auto make = [&scene](const char* name, const char* gpus, const char* priority) {
    Json pod = {{"kind", "Pod"},
                {"apiVersion", "v1"},
                {"metadata", {{"name", name}, {"namespace", "team"}}},
                {"spec",
                 {{"priorityClassName", priority},
                  {"containers",
                   Json::array({{{"name", "main"},
                                 {"resources", {{"limits", {{"nvidia.com/gpu", gpus}}}}}}})}}}};
    return scene.Send("POST", "/api/v1/namespaces/team/pods", pod).code;
  };
  EXPECT_EQ(make("p", "2", "high"), 201);
  const Json spec = scene.Object("pods", "team/p")["spec"];
  EXPECT_EQ(spec["priority"], 7);
  EXPECT_EQ(spec["preemptionPolicy"], "Never");
  EXPECT_EQ(spec["containers"][0]["resources"]["requests"]["nvidia.com/gpu"], "2");
  EXPECT_EQ(scene.Object("pods", "team/p")["status"]["phase"], "Pending");
  EXPECT_EQ(make("q", "0.5", "high"), 422);
  EXPECT_EQ(make("r", "1", "none"), 403);
}

}  // namespace THIS_FILE
}  // namespace tranche::sim
