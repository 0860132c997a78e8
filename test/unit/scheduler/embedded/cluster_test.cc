#include <fmt/core.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "test/unit/scheduler/embedded/cluster_fixture.h"

namespace tranche::embedded {
namespace THIS_FILE {

TEST_F(EmbeddedCluster, CreatesAnObjectAndTellsTheEngineBeforeApplyReturns) {
  EXPECT_EQ(Applied(R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"n1"}})"),
            Lines{"node n1"});
  EXPECT_EQ(Applied(Pod("a")), Lines{"pod default/a Pending"});
}

TEST_F(EmbeddedCluster, GivesANewObjectWhatAServerWouldGive) {
  Applied(Pod("a"));
  const Json pod = Stored("Pod", "a");
  EXPECT_EQ(pod["metadata"]["namespace"], "default");
  EXPECT_EQ(pod["metadata"]["creationTimestamp"], "2026-03-01T00:00:00Z");
  EXPECT_FALSE(pod["metadata"]["resourceVersion"].get<std::string>().empty());
  EXPECT_EQ(pod["metadata"]["uid"].get<std::string>().size(), 36U);
  EXPECT_EQ(pod["status"]["phase"], "Pending");
  EXPECT_EQ(recorder_.pod("default/a").request.uid.str(), pod["metadata"]["uid"]);
  EXPECT_EQ(recorder_.pod("default/a").created, kStart);
}

TEST_F(EmbeddedCluster, GivesEveryObjectAUidOfItsOwn) {
  std::set<std::string> uids;
  for (int i = 0; i < 100; ++i) {
    const std::string name = "p" + std::to_string(i);
    Applied(Pod(name));
    uids.insert(Stored("Pod", name)["metadata"]["uid"].get<std::string>());
  }
  EXPECT_EQ(uids.size(), 100U);
}

TEST_F(EmbeddedCluster, KeepsUidAndCreationTimeOfAReplacedObjectAndRaisesItsVersion) {
  Applied(Pod("a"));
  const Json before = Stored("Pod", "a");
  clock_.AdvanceBy(seconds(5));
  EXPECT_EQ(Applied(Pod("a", R"(,"labels":{"x":"y"})")), Lines{"pod default/a Pending"});
  const Json after = Stored("Pod", "a");
  EXPECT_EQ(after["metadata"]["uid"], before["metadata"]["uid"]);
  EXPECT_EQ(after["metadata"]["creationTimestamp"], before["metadata"]["creationTimestamp"]);
  EXPECT_EQ(after["metadata"]["labels"]["x"], "y");
  EXPECT_GT(std::stoi(after["metadata"]["resourceVersion"].get<std::string>()),
            std::stoi(before["metadata"]["resourceVersion"].get<std::string>()));
}

TEST_F(EmbeddedCluster, ReplacesTheWholeObject) {
  Applied(Pod("a", R"(,"annotations":{"k":"v"})", kOnNode, R"("phase":"Running","reason":"r")"));
  Applied(Pod("a", "", kOnNode, R"("phase":"Succeeded")"));
  EXPECT_FALSE(Stored("Pod", "a")["metadata"].contains("annotations"));
  EXPECT_FALSE(Stored("Pod", "a")["status"].contains("reason"));
  EXPECT_EQ(recorder_.pod("default/a").phase, PodPhase::kSucceeded);
}

TEST_F(EmbeddedCluster, TakesAnotherUidAsAnotherObject) {
  Applied(Pod("a", R"(,"uid":"u1")"));
  EXPECT_EQ(Applied(Pod("a", R"(,"uid":"u2")")), (Lines{"pod gone u1", "pod default/a Pending"}));
  EXPECT_EQ(Stored("Pod", "a")["metadata"]["uid"], "u2");
  EXPECT_EQ(Applied(Pod("a", R"(,"uid":"u2")")), Lines{"pod default/a Pending"});

  Applied(R"({"kind":"Node","metadata":{"name":"n1","uid":"v1"}})");
  EXPECT_EQ(Applied(R"({"kind":"Node","metadata":{"name":"n1","uid":"v2"}})"),
            (Lines{"node gone n1", "node n1"}));
}

TEST_F(EmbeddedCluster, TurnsABoundPendingPodRunningAtOnce) {
  EXPECT_EQ(Applied(Pod("none", "", kOnNode)), Lines{"pod default/none on n1 Running"});
  EXPECT_EQ(Applied(Pod("pending", "", kOnNode, R"("phase":"Pending")")),
            Lines{"pod default/pending on n1 Running"});
  EXPECT_EQ(Applied(Pod("done", "", kOnNode, R"("phase":"Failed")")),
            Lines{"pod default/done on n1 Failed"});
  EXPECT_EQ(Applied(Pod("unbound", "", "", R"("phase":"Pending")")),
            Lines{"pod default/unbound Pending"});
}

TEST_F(EmbeddedCluster, TakesUpAnAllocationAsOnARestart) {
  Applied(Pod("a",
              R"(,"annotations":{"tranche.dev/allocation":"{\"v\":1,\"epoch\":7,\"leaf\":\"t\",)"
              R"(\"knowledge\":\"exact\",\"containers\":[{\"name\":\"main\",\"devices\":)"
              R"([{\"index\":2,\"uuid\":\"GPU-1\",\"milli\":500,\"mib\":100,\"mig\":null}]}]}"})",
              kOnNode));
  const PodFacts& pod = recorder_.pod("default/a");
  ASSERT_TRUE(pod.allocation.has_value()) << pod.allocation_problem;
  EXPECT_EQ(pod.allocation->containers.at(0).devices.at(0).card, 2);
  EXPECT_TRUE(pod.holds_devices());
}

TEST_F(EmbeddedCluster, LoadsListsOfMixedKindsAndItemsWithoutKind) {
  EXPECT_EQ(Applied(R"({"kind":"List","apiVersion":"v1","items":[)"
                    R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"n1"}},)" +
                    Pod("a") + "]}"),
            (Lines{"node n1", "pod default/a Pending"}));
  EXPECT_EQ(
      Applied(R"({"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n2"}}]})"),
      Lines{"node n2"});
  EXPECT_EQ(Stored("Node", "n2")["kind"], "Node");
  EXPECT_EQ(Stored("Node", "n2")["apiVersion"], "v1");
  EXPECT_EQ(Applied(R"({"kind":"PodList","items":[{"metadata":{"name":"b","namespace":"x"}}]})"),
            Lines{"pod x/b Pending"});
  EXPECT_EQ(Applied(R"({"kind":"PodList","apiVersion":"v1","items":null})"), Lines{});
}

TEST_F(EmbeddedCluster, LoadsYamlOfSeveralDocumentsWithKubernetesTyping) {
  EXPECT_EQ(Applied(R"(# a comment
---
kind: Node
apiVersion: v1
metadata: {name: n1}
status:
  allocatable: {nvidia.com/gpu: 8}
---
kind: Node
apiVersion: v1
metadata: {name: n2}
status:
  allocatable: {nvidia.com/gpu: "4"}
---
kind: List
items:
- kind: Pod
  metadata:
    name: a
    labels: {n: "1", t: 'true', d: 2026-01-01}
)"),
            (Lines{"node n1", "node n2", "pod default/a Pending"}));
  EXPECT_EQ(recorder_.node("n1").gpu->allocatable, 8);
  EXPECT_EQ(recorder_.node("n2").gpu->allocatable, 4);
  EXPECT_EQ(Stored("Pod", "a")["metadata"]["labels"],
            Json::parse(R"({"n":"1","t":"true","d":"2026-01-01"})"));
}

TEST_F(EmbeddedCluster, IgnoresAndCountsKindsItDoesNotUse) {
  const auto report = cluster_.Apply(
      R"({"kind":"List","items":[{"kind":"Service","metadata":{"name":"s"}},)"
      R"({"kind":"Service","metadata":{"name":"t"}},{"kind":"DeploymentList","items":[{}]},)"
      R"({"kind":"Node","apiVersion":"other.example/v1","metadata":{"name":"x"}},)" +
      Pod("a") + "]}");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->applied, 1);
  EXPECT_EQ(report->ignored,
            (std::map<std::string, int>{{"Service", 2}, {"Deployment", 1}, {"Node", 1}}));
  EXPECT_EQ(recorder_.Take(), Lines{"pod default/a Pending"});
}

TEST_F(EmbeddedCluster, KeepsWhatTheEngineDoesNotReadForLaterQueries) {
  EXPECT_EQ(Applied(R"({"kind":"Newer","apiVersion":"tranche.dev/v2","metadata":{"name":"x"}})"),
            Lines{});
  EXPECT_TRUE(cluster_.Get("Newer", "", "x").has_value());
}

TEST_F(EmbeddedCluster, DropsWhatIsLargeAndNeverRead) {
  Applied(R"({"kind":"Node","metadata":{"name":"n1","managedFields":[{"a":1}],"labels":{"a":"b"}},)"
          R"("status":{"images":[{"names":["x"]}],"capacity":{"cpu":"1"}}})");
  const Json node = Stored("Node", "n1");
  EXPECT_FALSE(node["metadata"].contains("managedFields"));
  EXPECT_FALSE(node["status"].contains("images"));
  EXPECT_EQ(node["status"]["capacity"]["cpu"], "1");
  EXPECT_EQ(node["metadata"]["labels"]["a"], "b");
}

TEST_F(EmbeddedCluster, RefusesTheWholeTextWhenOneObjectIsWrong) {
  struct Case {
    const char* what;
    std::string text;
    Lines error_parts;
  };
  const std::vector<Case> cases = {
      {"nothing", " \n", {"expected a Kubernetes object, found nothing"}},
      {"not an object", "[1]", {"expected a Kubernetes object, found array"}},
      {"a scalar", "hello", {"expected a Kubernetes object, found text \"hello\""}},
      {"malformed JSON", R"({"kind":"Pod",})", {"expected JSON"}},
      {"no kind", R"({"metadata":{"name":"a"}})", {"found nothing, in object.kind"}},
      {"no metadata", R"({"kind":"Node"})", {"Node: ", "found nothing, in metadata.name"}},
      {"a name no server takes", Pod("A_b"), {"Pod: ", "found \"A_b\", in metadata.name"}},
      {"a namespace no server takes", Pod("a", R"(,"namespace":"x.y")"), {"metadata.namespace"}},
      {"a bad time",
       Pod("a", R"(,"creationTimestamp":"now")"),
       {"Pod default/a: ", "expected an RFC 3339 time, found \"now\""}},
      {"items of another type", R"({"kind":"List","items":{}})", {"in object.items"}},
      {"the second item",
       R"({"kind":"List","items":[)" + Pod("ok") + R"(,{"kind":"Pod"}]})",
       {"item 2, Pod: ", "metadata.name"}},
      {"an item of an item",
       R"({"kind":"List","items":[{"kind":"PodList","items":[)" + Pod("ok") + ",7]}]}",
       {"item 1, item 2: ", "found number 7"}},
      {"a pod whose field has another type",
       R"({"kind":"List","items":[)" + Pod("ok") + "," + Pod("bad", "", R"(,"nodeName":5)") + "]}",
       {"item 2, Pod default/bad: ", "nodeName", "5"}},
      {"a policy out of range",
       "kind: Node\nmetadata: {name: n1}\n---\nkind: GPUPolicy\n"
       "metadata: {name: p}\nspec: {placement: {filterWidth: 0}}\n",
       {"document 2, GPUPolicy p: ", "filterWidth", "found 0"}},
      {"one uid twice",
       R"({"kind":"List","items":[)" + Pod("a", R"(,"uid":"u")") + "," + Pod("b", R"(,"uid":"u")") +
           "]}",
       {"Pod default/b: ", "found \"u\" of Pod default/a, in metadata.uid"}},
      {"too deep",
       Pod("a", R"(,"x":)" + std::string(70, '[') + std::string(70, ']')),
       {"64 levels"}},
  };
  for (const Case& c : cases) {
    const std::string error = ApplyError(c.text);
    for (const std::string& part : c.error_parts) {
      EXPECT_NE(error.find(part), std::string::npos) << c.what << ": " << error;
    }
  }
  EXPECT_EQ(Json::parse(cluster_.List("Pod", ""))["items"].size(), 0U);
  EXPECT_EQ(Json::parse(cluster_.List("Node", ""))["items"].size(), 0U);
}

TEST_F(EmbeddedCluster, RefusesAUidThatAnotherObjectHas) {
  Applied(Pod("a", R"(,"uid":"u")"));
  EXPECT_NE(ApplyError(Pod("b", R"(,"uid":"u")")).find("of Pod default/a"), std::string::npos);
}

}  // namespace THIS_FILE
}  // namespace tranche::embedded
