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

TEST_F(EmbeddedCluster, BindsAPodAsTheBindingSubresourceDoes) {
  Applied(Pod("a", R"(,"uid":"u","annotations":{"keep":"1","over":"old"})", "",
              R"("conditions":[{"type":"PodScheduled","status":"False"},{"type":"X"}])"));
  clock_.AdvanceBy(seconds(10));
  const WriteResult result = Bound("a", "u", "n1", {{"over", "new"}, {"new", "2"}});
  EXPECT_EQ(result.kind, WriteResult::Kind::kDone);
  EXPECT_EQ(recorder_.Take(), (Lines{"pod default/a on n1 Running", "bind done"}));
  const Json pod = Stored("Pod", "a");
  EXPECT_EQ(pod["spec"]["nodeName"], "n1");
  EXPECT_EQ(pod["metadata"]["annotations"], Json::parse(R"({"keep":"1","over":"new","new":"2"})"));
  EXPECT_EQ(pod["status"]["phase"], "Running");
  EXPECT_EQ(pod["status"]["startTime"], "2026-03-01T00:00:10Z");
  ASSERT_EQ(pod["status"]["conditions"].size(), 2U);
  EXPECT_EQ(pod["status"]["conditions"][0]["type"], "X");
  EXPECT_EQ(pod["status"]["conditions"][1]["type"], "PodScheduled");
  EXPECT_EQ(pod["status"]["conditions"][1]["status"], "True");
  EXPECT_EQ(pod["spec"]["containers"][0]["name"], "main");
}

TEST_F(EmbeddedCluster, RefusesABindingThatAServerWouldRefuseAndWritesNothing) {
  Applied(Pod("free", R"(,"uid":"u1")"));
  Applied(Pod("bound", R"(,"uid":"u2")", kOnNode));
  Applied(Pod("gated", R"(,"uid":"u3")", R"(,"schedulingGates":[{"name":"g"}])"));
  Applied(Pod("going", R"(,"uid":"u4","deletionTimestamp":"2026-03-01T01:00:00Z")"));
  recorder_.Take();
  struct Case {
    const char* what;
    const char *pod, *uid, *node;
    int code;
  };
  const std::vector<Case> cases = {
      {"no such pod", "none", "u9", "n1", 404},
      {"another uid", "free", "u9", "n1", 409},
      {"bound to another node", "bound", "u2", "n2", 409},
      {"bound to that node already", "bound", "u2", "n1", 409},
      {"gated", "gated", "u3", "n1", 409},
      {"being deleted", "going", "u4", "n1", 409},
      {"no node named", "free", "u1", "", 422},
  };
  for (const Case& c : cases) {
    const auto before = cluster_.Get("Pod", "default", c.pod);
    const WriteResult result = Bound(c.pod, c.uid, c.node, {{"k", "v"}});
    EXPECT_EQ(result.kind, WriteResult::Kind::kRejected) << c.what;
    EXPECT_EQ(result.http_code, c.code) << c.what;
    EXPECT_FALSE(result.message.empty()) << c.what;
    EXPECT_EQ(recorder_.Take(), Lines{"bind done"}) << c.what;
    EXPECT_EQ(cluster_.Get("Pod", "default", c.pod), before) << c.what;
  }
}

TEST_F(EmbeddedCluster, DeletesAtOnceOrAfterTheGracePeriod) {
  struct Case {
    const char* what;
    std::string spec, status;
    std::string request;  // members beside kind and metadata
    int grace;            // 0: gone at once
  };
  const std::string own_grace = R"(,"terminationGracePeriodSeconds":7)";
  const std::vector<Case> cases = {
      {"no node", "", "", "", 0},
      {"finished", kOnNode, R"("phase":"Succeeded")", "", 0},
      {"failed", kOnNode, R"("phase":"Failed")", R"(,"gracePeriodSeconds":9)", 0},
      {"running: Kubernetes' default", kOnNode, "", "", 30},
      {"running: the pod's own", kOnNode + own_grace, "", "", 7},
      {"running: as asked", kOnNode + own_grace, "", R"(,"gracePeriodSeconds":9)", 9},
      {"running: none asked", kOnNode, "", R"(,"gracePeriodSeconds":0)", 0},
      {"running: the pod has none", kOnNode + R"(,"terminationGracePeriodSeconds":0)", "", "", 0},
  };
  for (const Case& c : cases) {
    const Instant start = clock_.AdvanceBy(seconds(100));
    Applied(Pod("a", R"(,"uid":"u")", c.spec, c.status));
    const Lines lines =
        Deleted(R"({"kind":"Pod","metadata":{"name":"a","namespace":"default"})" + c.request + "}");
    if (c.grace == 0) {
      EXPECT_EQ(lines, Lines{"pod gone u"}) << c.what;
      EXPECT_FALSE(cluster_.Get("Pod", "default", "a").has_value()) << c.what;
      continue;
    }
    EXPECT_EQ(lines, Lines{"pod default/a on n1 Running terminating"}) << c.what;
    EXPECT_EQ(Stored("Pod", "a")["metadata"]["deletionGracePeriodSeconds"], c.grace) << c.what;
    EXPECT_TRUE(recorder_.pod("default/a").holds_devices()) << c.what;
    EXPECT_EQ(TickedAt(start + seconds(c.grace) - Millis(1)), Lines{}) << c.what;
    EXPECT_EQ(cluster_.Tick(start), start + seconds(c.grace)) << c.what;
    EXPECT_EQ(TickedAt(start + seconds(c.grace)), Lines{"pod gone u"}) << c.what;
    EXPECT_FALSE(cluster_.Get("Pod", "default", "a").has_value()) << c.what;
    EXPECT_EQ(cluster_.Tick(start), std::nullopt) << c.what;
  }
}

TEST_F(EmbeddedCluster, ShortensAGracePeriodButNeverLengthensIt) {
  const std::string request = R"({"kind":"Pod","name":"a","namespace":"default",)"
                              R"("gracePeriodSeconds":)";
  Applied(Pod("a", R"(,"uid":"u")", kOnNode));
  Deleted(request + "20}");
  EXPECT_EQ(Deleted(request + "60}"), Lines{});
  EXPECT_EQ(cluster_.Tick(kStart), kStart + seconds(20));
  recorder_.Take();
  EXPECT_EQ(Deleted(request + "5}"), Lines{"pod default/a on n1 Running terminating"});
  EXPECT_EQ(cluster_.Tick(kStart), kStart + seconds(5));
  recorder_.Take();
  EXPECT_EQ(Deleted(request + "0}"), Lines{"pod gone u"});
}

TEST_F(EmbeddedCluster, DoesNotTakeADeletionBackWhenThePodIsAppliedAgain) {
  Applied(Pod("a", R"(,"uid":"u")", kOnNode));
  Deleted(R"({"kind":"Pod","metadata":{"name":"a"}})");
  EXPECT_EQ(Applied(Pod("a", "", kOnNode)), Lines{"pod default/a on n1 Running terminating"});
  EXPECT_EQ(Stored("Pod", "a")["metadata"]["deletionTimestamp"], "2026-03-01T00:00:30Z");
  EXPECT_EQ(TickedAt(kStart + seconds(30)), Lines{"pod gone u"});
}

TEST_F(EmbeddedCluster, KeepsAPodAppliedAsTerminatingUntilItsTimeHasCome) {
  EXPECT_EQ(Applied(Pod("a", R"(,"uid":"u","deletionTimestamp":"2026-03-01T00:00:20Z")", kOnNode)),
            Lines{"pod default/a on n1 Running terminating"});
  EXPECT_EQ(TickedAt(kStart + seconds(19)), Lines{});
  EXPECT_EQ(TickedAt(kStart + seconds(20)), Lines{"pod gone u"});
}

TEST_F(EmbeddedCluster, DeletesListsAndAllOtherKindsAtOnce) {
  Applied("kind: Node\nmetadata: {name: n1}\n---\n" + Quota("q"));
  EXPECT_EQ(Deleted(R"({"kind":"List","items":[{"kind":"Node","metadata":{"name":"n1"}},)"
                    R"({"kind":"GPUQuota","metadata":{"name":"q"}}]})"),
            (Lines{"node gone n1", "GPUQuota gone q", "settled"}));
  EXPECT_FALSE(cluster_.Get("GPUQuota", "", "q").has_value());
}

TEST_F(EmbeddedCluster, RefusesToDeleteWhatIsNotThereAndThenDeletesNothing) {
  Applied(Pod("a", R"(,"uid":"u")"));
  struct Case {
    std::string text;
    absl::StatusCode code;
  };
  const std::vector<Case> cases = {
      {R"({"kind":"List","items":[{"kind":"Pod","metadata":{"name":"a"}},)"
       R"({"kind":"Pod","metadata":{"name":"b"}}]})",
       absl::StatusCode::kNotFound},
      {R"({"kind":"Pod","metadata":{"name":"a","namespace":"other"}})",
       absl::StatusCode::kNotFound},
      {R"({"kind":"Pod","metadata":{"name":"a","uid":"v"}})", absl::StatusCode::kNotFound},
      {R"({"kind":"Service","metadata":{"name":"a"}})", absl::StatusCode::kInvalidArgument},
      {R"({"kind":"Pod","metadata":{}})", absl::StatusCode::kInvalidArgument},
      {R"({"kind":"Pod","metadata":{"name":"a"},"gracePeriodSeconds":-1})",
       absl::StatusCode::kInvalidArgument},
      {R"({"kind":"Pod","metadata":{"name":"a"},"gracePeriodSeconds":1e30})",
       absl::StatusCode::kInvalidArgument},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(cluster_.Delete(c.text).code(), c.code) << c.text;
    EXPECT_EQ(recorder_.Take(), Lines{}) << c.text;
  }
  EXPECT_TRUE(cluster_.Get("Pod", "default", "a").has_value());
}

TEST_F(EmbeddedCluster, FindsObjectsByKindOrResourceNameAndFillsInTheNamespace) {
  Applied(
      "kind: Pod\nmetadata: {name: a}\n---\nkind: Pod\nmetadata: {name: a, namespace: x}\n---\n"
      "kind: Node\nmetadata: {name: n1, namespace: ignored}\n");
  for (const char* kind : {"Pod", "pod", "pods"}) {
    EXPECT_TRUE(cluster_.Get(kind, "", "a").has_value()) << kind;
    EXPECT_TRUE(cluster_.Get(kind, "x", "a").has_value()) << kind;
    EXPECT_EQ(Json::parse(cluster_.List(kind, ""))["items"].size(), 2U) << kind;
    EXPECT_EQ(Json::parse(cluster_.List(kind, "x"))["items"].size(), 1U) << kind;
  }
  EXPECT_FALSE(cluster_.Get("POD", "", "a").has_value());
  EXPECT_FALSE(cluster_.Get("Pod", "y", "a").has_value());
  EXPECT_TRUE(cluster_.Get("nodes", "anything", "n1").has_value());
  EXPECT_EQ(Json::parse(cluster_.List("nodes", "anything"))["items"].size(), 1U);
}

TEST_F(EmbeddedCluster, ListsWhatCanBeAppliedAgain) {
  Applied(Pod("a", R"(,"uid":"u","annotations":{"k":"v"})", kOnNode));
  Applied(Pod("b", R"(,"namespace":"x")"));
  const std::string list = cluster_.List("Pod", "");
  Cluster copy(clock_, recorder_, GpuPolicy{});
  ASSERT_TRUE(copy.Apply(list).ok());
  EXPECT_EQ(Json::parse(copy.List("Pod", ""))["items"], Json::parse(list)["items"]);
}

TEST_F(EmbeddedCluster, ReadsAPodByNameAndUid) {
  Applied(Pod("a", R"(,"uid":"u")", kOnNode));
  const auto read = [&](const char* name, const char* uid) {
    PodLookup found;
    cluster_.GetPod({"default", name}, PodUid(uid), [&](PodLookup l) { found = std::move(l); });
    return found;
  };
  EXPECT_EQ(read("a", "u").kind, PodLookup::Kind::kFound);
  EXPECT_EQ(read("a", "u").pod->node.str(), "n1");
  EXPECT_EQ(read("a", "").pod->request.uid.str(), "u");
  EXPECT_EQ(read("a", "v").kind, PodLookup::Kind::kMissing);
  EXPECT_EQ(read("b", "").kind, PodLookup::Kind::kMissing);
}

TEST_F(EmbeddedCluster, SaysWhenTheFirstSetIsComplete) {
  Applied(Pod("a"));
  cluster_.FinishLoading();
  EXPECT_EQ(recorder_.Take(), (Lines{"heard nodes", "heard pods", "synced"}));
}

TEST_F(EmbeddedCluster, LoadsFilesAndNamesThemInErrors) {
  const std::string path = testing::TempDir() + "embedded_cluster_objects.json";
  std::ofstream(path) << Pod("a");
  EXPECT_TRUE(cluster_.LoadFile(path).ok());
  EXPECT_EQ(recorder_.Take(), Lines{"pod default/a Pending"});

  std::ofstream(path) << "kind: Pod\n";
  const absl::Status bad = cluster_.LoadFile(path).status();
  EXPECT_EQ(bad.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(bad.message()).rfind(path + ": Pod: ", 0), 0U) << bad;
  std::filesystem::remove(path);

  const absl::Status missing = cluster_.LoadFile(path).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(missing.message()).find(path), std::string::npos);
  EXPECT_EQ(cluster_.LoadFile(testing::TempDir()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(EmbeddedCluster, LetsTheEngineCallBackFromWithinAnEvent) {
  Applied(Pod("a"));
  Applied(Pod("b"));
  const std::string uid = Stored("Pod", "b")["metadata"]["uid"].get<std::string>();
  bool called = false;
  recorder_.on_pod = [&] {
    if (std::exchange(called, true)) return;
    cluster_.Bind({{"default", "b"}, PodUid(uid), NodeName("n1"), {}},
                  [&](WriteResult) { recorder_.Note("bind done"); });
    EXPECT_TRUE(cluster_.Apply(Pod("c")).ok());
    recorder_.Note("callback over");
  };
  EXPECT_EQ(Applied(Pod("a")),
            (Lines{"pod default/a Pending", "callback over", "pod default/b on n1 Running",
                   "bind done", "pod default/c Pending"}));
}

TEST_F(EmbeddedCluster, KeepsTheOrderOfEventsOfManyThreadsAndWaitsForOnesOwn) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  std::atomic<int> unseen = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::string name = "p" + std::to_string(t);
      for (int round = 0; round < kRounds; ++round) {
        const std::string node = ",\"nodeName\":\"n" + std::to_string(round) + "\"";
        if (!cluster_.Apply(Pod(name, "", node)).ok()) ++unseen;
        if (!cluster_.Delete(R"({"kind":"Pod","gracePeriodSeconds":0,"name":")" + name + "\"}")
                 .ok()) {
          ++unseen;
        }
      }
      recorder_.Note("end " + name);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(unseen, 0);

  std::map<std::string, Lines> by_pod;
  std::size_t gone = 0;
  for (const std::string& line : recorder_.Take()) {
    if (line.rfind("pod gone", 0) == 0) ++gone;
    for (int t = 0; t < kThreads; ++t) {
      const std::string name = "p" + std::to_string(t);
      if (line.find(name) != std::string::npos) by_pod[name].push_back(line);
    }
  }
  EXPECT_EQ(gone, static_cast<std::size_t>(kThreads * kRounds));
  for (const auto& [name, lines] : by_pod) {
    ASSERT_EQ(lines.size(), static_cast<std::size_t>(kRounds + 1));
    for (int round = 0; round < kRounds; ++round) {
      EXPECT_EQ(lines[static_cast<std::size_t>(round)],
                fmt::format("pod default/{} on n{} Running", name, round));
    }
    EXPECT_EQ(lines.back(), "end " + name);
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::embedded
