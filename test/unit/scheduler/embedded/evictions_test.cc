// Evictions and nominations at the embedded cluster, and the disruption budgets in their way.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "test/unit/scheduler/embedded/cluster_fixture.h"

namespace tranche::embedded {
namespace THIS_FILE {

using Kind = WriteResult::Kind;

class EmbeddedEvictions : public EmbeddedCluster {
 protected:
  // A pod with label app=web and its name as uid.
  static std::string Web(const std::string& name, const std::string& spec = kOnNode,
                         const std::string& status = "") {
    return Pod(name, fmt::format(R"(,"uid":"{}","labels":{{"app":"web"}})", name), spec, status);
  }
  static std::string Together(const Lines& objects) {
    return fmt::format(R"({{"kind":"List","items":[{}]}})", fmt::join(objects, ","));
  }
  EvictionResult Evict(const std::string& name, const std::string& uid,
                       std::optional<Millis> grace = std::nullopt) {
    std::optional<EvictionResult> result;
    cluster_.Evict({{"default", name}, PodUid(uid), grace}, [&](EvictionResult r) {
      recorder_.Note("evict done");
      result = std::move(r);
    });
    EXPECT_TRUE(result.has_value());
    return result.value_or(EvictionResult{});
  }
  int EvictCode(const std::string& name, std::optional<Millis> grace = std::nullopt) {
    return Evict(name, name, grace).write.http_code;
  }
  Json BudgetStatus(const std::string& name = "web") {
    return Stored("PodDisruptionBudget", name)["status"];
  }
  WriteResult Nominate(const std::string& name, const std::string& uid, const std::string& node) {
    return Written([&](auto done) {
      cluster_.Nominate({"default", name}, PodUid(uid), NodeName(node), std::move(done));
    });
  }
};

TEST_F(EmbeddedEvictions, EndAPodAtOnceOrAfterItsGrace) {
  struct Case {
    const char* what;
    std::string spec, status;
    std::optional<Millis> asked;
    int grace;  // 0: gone at once
  };
  const std::string own_grace = R"(,"nodeName":"n1","terminationGracePeriodSeconds":7)";
  const std::vector<Case> cases = {
      {"no node", "", "", seconds(9), 0},
      {"finished", kOnNode, R"("phase":"Succeeded")", seconds(9), 0},
      {"running: Kubernetes' default", kOnNode, "", std::nullopt, 30},
      {"running: the pod's own", own_grace, "", std::nullopt, 7},
      {"running: as asked", own_grace, "", seconds(9), 9},
      {"running: as asked, a part of a second counts", own_grace, "", Millis(9001), 10},
      {"running: none asked", own_grace, "", Millis(0), 0},
  };
  for (const Case& c : cases) {
    const Instant start = clock_.AdvanceBy(seconds(100));
    Applied(Web("a", c.spec, c.status));
    const EvictionResult result = Evict("a", "a", c.asked);
    EXPECT_EQ(result.write.kind, Kind::kDone) << c.what << result.write.message;
    EXPECT_EQ(result.write.http_code, 201) << c.what;
    if (c.grace == 0) {
      EXPECT_EQ(recorder_.Take(), (Lines{"pod gone a", "evict done"})) << c.what;
      continue;
    }
    EXPECT_EQ(recorder_.Take(), (Lines{"pod default/a on n1 Running terminating", "evict done"}))
        << c.what;
    const Json pod = Stored("Pod", "a");
    EXPECT_EQ(pod["metadata"]["deletionGracePeriodSeconds"], c.grace) << c.what;
    const Json condition = pod["status"]["conditions"].back();
    EXPECT_EQ(condition["type"], "DisruptionTarget") << c.what;
    EXPECT_EQ(condition["status"], "True") << c.what;
    EXPECT_EQ(condition["reason"], "EvictionByEvictionAPI") << c.what;
    EXPECT_EQ(TickedAt(start + seconds(c.grace) - Millis(1)), Lines{}) << c.what;
    EXPECT_EQ(TickedAt(start + seconds(c.grace)), Lines{"pod gone a"}) << c.what;
  }
}

TEST_F(EmbeddedEvictions, AreRefusedForAnotherPodThanTheOneMeant) {
  Applied(Web("a"));
  EXPECT_EQ(Evict("a", "other").write.http_code, 409);
  EXPECT_EQ(Evict("b", "b").write.http_code, 404);
  EXPECT_EQ(Evict("b", "b").write.kind, Kind::kRejected);
  EXPECT_FALSE(Stored("Pod", "a")["metadata"].contains("deletionTimestamp"));
}

TEST_F(EmbeddedEvictions, AreTakenOffAStatedBudget) {
  Applied(DisruptionBudget("web", R"(,"maxUnavailable":9)",
                           R"(,"status":{"disruptionsAllowed":1,"currentHealthy":5})"));
  Applied(Together({Web("a"), Web("b")}));
  EXPECT_EQ(BudgetStatus()["disruptionsAllowed"], 1) << "stays as stated";
  EXPECT_EQ(EvictCode("a"), 201);
  EXPECT_EQ(recorder_.Take(),
            (Lines{"PodDisruptionBudget web", "pod default/a on n1 Running terminating", "settled",
                   "evict done"}));
  EXPECT_EQ(Json::parse(recorder_.policy_objects().json)["status"], BudgetStatus());
  EXPECT_EQ(BudgetStatus(), Json::parse(R"({"disruptionsAllowed":0,"currentHealthy":5,
                            "disruptedPods":{"a":"2026-03-01T00:00:00Z"}})"));
  const EvictionResult refused = Evict("b", "b");
  EXPECT_EQ(refused.write.kind, Kind::kRejected);
  EXPECT_EQ(refused.write.http_code, 429);
  EXPECT_NE(refused.write.message.find("PodDisruptionBudget default/web"), std::string::npos);
  EXPECT_EQ(recorder_.Take(), Lines{"evict done"});
  EXPECT_EQ(EvictCode("a", Millis(0)), 201) << "terminating: no budget is asked";
  Applied(Together({Web("c", ""), Web("d", kOnNode, R"("phase":"Failed")")}));
  EXPECT_EQ(EvictCode("c"), 201) << "pending: no budget is asked";
  EXPECT_EQ(EvictCode("d"), 201) << "finished: no budget is asked";
  EXPECT_EQ(BudgetStatus()["disruptionsAllowed"], 0);
}

TEST_F(EmbeddedEvictions, AskOnlyTheBudgetsOverThePod) {
  Applied(DisruptionBudget("web", R"(,"minAvailable":"100%")"));
  Applied(R"({"kind":"PodDisruptionBudget","metadata":{"name":"none"},"spec":{"minAvailable":9}})");
  Applied(R"({"kind":"PodDisruptionBudget","metadata":{"name":"x","namespace":"x"},)"
          R"("spec":{"minAvailable":9,"selector":{}}})");
  Applied(Pod("other", R"(,"uid":"other","labels":{"app":"db"})", kOnNode));
  Applied(Pod("bare", R"(,"uid":"bare")", kOnNode));
  Applied(Web("a"));
  EXPECT_EQ(EvictCode("other"), 201);
  EXPECT_EQ(EvictCode("bare"), 201);
  EXPECT_EQ(EvictCode("a"), 429);
}

TEST_F(EmbeddedEvictions, FailWhereSeveralBudgetsCoverThePod) {
  Applied(DisruptionBudget("web", R"(,"maxUnavailable":1)"));
  Applied(DisruptionBudget("web-2", R"(,"maxUnavailable":1)"));
  Applied(Web("a"));
  recorder_.Take();
  const EvictionResult result = Evict("a", "a");
  EXPECT_EQ(result.write.kind, Kind::kRejected);
  EXPECT_EQ(result.write.http_code, 500);
  EXPECT_EQ(recorder_.Take(), Lines{"evict done"});
}

TEST_F(EmbeddedEvictions, AreAllowedByASpecAsItsPodsStand) {
  // Four pods run, one waits for a node, one has finished.
  Applied(Together({Web("a"), Web("b"), Web("c"), Web("d"), Web("waits", ""),
                    Web("finished", kOnNode, R"("phase":"Succeeded")")}));
  struct Case {
    std::string spec;
    int allowed, desired;
  };
  const std::vector<Case> cases = {
      {R"(,"minAvailable":3)", 1, 3},
      {R"(,"minAvailable":0)", 4, 0},
      {R"(,"minAvailable":9)", 0, 9},
      {R"(,"minAvailable":"50%")", 1, 3},
      {R"(,"minAvailable":"0%")", 4, 0},
      {R"(,"minAvailable":"100%")", 0, 5},
      {R"(,"maxUnavailable":0)", 0, 5},
      {R"(,"maxUnavailable":1)", 0, 4},
      {R"(,"maxUnavailable":3)", 2, 2},
      {R"(,"maxUnavailable":9)", 4, 0},
      {R"(,"maxUnavailable":"30%")", 1, 3},
      {R"(,"maxUnavailable":"100%")", 4, 0},
      {"", 0, 5},
  };
  for (const Case& c : cases) {
    Applied(DisruptionBudget("web", c.spec));
    EXPECT_EQ(BudgetStatus(), (Json{{"currentHealthy", 4},
                                    {"desiredHealthy", c.desired},
                                    {"disruptionsAllowed", c.allowed},
                                    {"expectedPods", 5}}))
        << c.spec;
    EXPECT_EQ(Json::parse(recorder_.policy_objects().json)["status"], BudgetStatus()) << c.spec;
  }
}

TEST_F(EmbeddedEvictions, TellOfABudgetThatFollowsItsPods) {
  const auto allowed = [this] { return BudgetStatus()["disruptionsAllowed"].get<int>(); };
  EXPECT_EQ(Applied(Together(
                {DisruptionBudget("web", R"(,"maxUnavailable":1)"), Web("a"), Web("b", "")})),
            (Lines{"PodDisruptionBudget web", "settled", "pod default/a on n1 Running",
                   "pod default/b Pending", "PodDisruptionBudget web", "settled"}));
  EXPECT_EQ(allowed(), 0) << "one of two is down already";
  EXPECT_EQ(EvictCode("a"), 429);
  recorder_.Take();
  EXPECT_EQ(Bound("b", "b", "n1").kind, Kind::kDone);
  EXPECT_EQ(recorder_.Take(), (Lines{"pod default/b on n1 Running", "PodDisruptionBudget web",
                                     "settled", "bind done"}));
  EXPECT_EQ(allowed(), 1);
  EXPECT_EQ(EvictCode("a"), 201);
  EXPECT_EQ(recorder_.Take(), (Lines{"pod default/a on n1 Running terminating",
                                     "PodDisruptionBudget web", "settled", "evict done"}));
  EXPECT_EQ(EvictCode("b"), 429) << "a is not gone yet";
  recorder_.Take();
  EXPECT_EQ(TickedAt(kStart + seconds(30)),
            (Lines{"pod gone a", "PodDisruptionBudget web", "settled"}));
  EXPECT_EQ(allowed(), 1);
  EXPECT_EQ(
      Deleted(R"({"kind":"Pod","name":"b","namespace":"default"})"),
      (Lines{"pod default/b on n1 Running terminating", "PodDisruptionBudget web", "settled"}));
  EXPECT_EQ(Applied(Pod("other", "", kOnNode)), Lines{"pod default/other on n1 Running"});
  EXPECT_EQ(Deleted(R"({"kind":"PodDisruptionBudget","name":"web","namespace":"default"})"),
            (Lines{"PodDisruptionBudget gone default/web", "settled"}));
  EXPECT_EQ(Applied(Web("c")), Lines{"pod default/c on n1 Running"});
}

TEST_F(EmbeddedEvictions, StopFollowingOnceAStatusIsStated) {
  Applied(Web("a"));
  Applied(DisruptionBudget("web", R"(,"maxUnavailable":1)"));
  Applied(
      DisruptionBudget("web", R"(,"maxUnavailable":1)", R"(,"status":{"disruptionsAllowed":3})"));
  Applied(Web("b"));
  EXPECT_EQ(BudgetStatus(), Json::parse(R"({"disruptionsAllowed":3})"));
  Applied(DisruptionBudget("web", R"(,"maxUnavailable":1)"));
  EXPECT_EQ(BudgetStatus()["expectedPods"], 2);
}

TEST_F(EmbeddedEvictions, RefuseABudgetThatCannotBeRead) {
  struct Case {
    std::string spec, error;
  };
  const std::vector<Case> cases = {
      {R"(,"minAvailable":"half")", R"(found text "half", in spec.minAvailable)"},
      {R"(,"maxUnavailable":"%")", R"(found text "%", in spec.maxUnavailable)"},
      {R"(,"maxUnavailable":"-1%")", "in spec.maxUnavailable"},
      {R"(,"maxUnavailable":"101%")", "in spec.maxUnavailable"},
      {R"(,"maxUnavailable":"50%x")", "in spec.maxUnavailable"},
      {R"(,"maxUnavailable":-1)", "in spec.maxUnavailable"},
      {R"(,"maxUnavailable":1.5)", "in spec.maxUnavailable"},
      {R"(,"maxUnavailable":9999999999)", "in spec.maxUnavailable"},
      {R"(,"minAvailable":1,"maxUnavailable":1)", "found both"},
      {R"(,"selector":5)", "spec.selector"},
  };
  for (const Case& c : cases) {
    const std::string error = ApplyError(DisruptionBudget("web", c.spec));
    EXPECT_NE(error.find("PodDisruptionBudget default/web: "), std::string::npos) << error;
    EXPECT_NE(error.find(c.error), std::string::npos) << error;
  }
}

TEST_F(EmbeddedEvictions, NominationsStandUntilThePodIsBound) {
  Applied(Pod("a", R"(,"uid":"u")"));
  EXPECT_EQ(Nominate("a", "v", "n1").http_code, 409);
  EXPECT_EQ(Nominate("b", "u", "n1").http_code, 404);
  recorder_.Take();
  EXPECT_EQ(Nominate("a", "u", "n1").kind, Kind::kDone);
  EXPECT_EQ(recorder_.Take(), Lines{"pod default/a Pending"});
  EXPECT_EQ(Stored("Pod", "a")["status"]["nominatedNodeName"], "n1");
  EXPECT_EQ(Bound("a", "u", "n2").kind, Kind::kDone);
  EXPECT_FALSE(Stored("Pod", "a")["status"].contains("nominatedNodeName"));
}

}  // namespace THIS_FILE
}  // namespace tranche::embedded
