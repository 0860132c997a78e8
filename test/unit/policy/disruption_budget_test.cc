#include "policy/disruption_budget.h"

#include <string>

#include "gtest/gtest.h"

namespace tranche {
namespace THIS_FILE {

TEST(DisruptionBudgetTest, ReadsAWholeObject) {
  const auto budget = DecodeDisruptionBudget(R"({
    "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
    "metadata": {"name": "serve", "namespace": "prod", "generation": 2},
    "spec": {"minAvailable": "50%", "unhealthyPodEvictionPolicy": "AlwaysAllow",
      "selector": {"matchLabels": {"app": "serve"},
                   "matchExpressions": [{"key": "canary", "operator": "DoesNotExist"}]}},
    "status": {"disruptionsAllowed": 2, "currentHealthy": 4, "observedGeneration": 2,
      "disruptedPods": {"serve-1": "2026-01-02T03:04:05Z"}}})");
  ASSERT_TRUE(budget.ok()) << budget.status();
  EXPECT_EQ(budget->ns, "prod");
  EXPECT_EQ(budget->name, "serve");
  EXPECT_EQ(budget->allowed, 2);
  EXPECT_EQ(budget->disrupted, std::set<std::string>{"serve-1"});
  const Labels serve = {{"app", "serve"}};
  EXPECT_TRUE(budget->Covers("prod", "serve-0", serve));
  EXPECT_FALSE(budget->Covers("prod", "serve-1", serve)) << "its eviction is counted already";
  EXPECT_FALSE(budget->Covers("test", "serve-0", serve));
  EXPECT_FALSE(budget->Covers("prod", "serve-0", {{"app", "train"}}));
  EXPECT_FALSE(budget->Covers("prod", "serve-0", {{"app", "serve"}, {"canary", ""}}));
  EXPECT_FALSE(budget->Covers("prod", "serve-0", {}));
}

TEST(DisruptionBudgetTest, AnEmptySelectorCoversTheNamespaceAndAnAbsentOneNobody) {
  const auto covers = [](const std::string& spec) {
    const auto budget = DecodeDisruptionBudget(R"({"metadata":{"name":"b"},"spec":)" + spec + "}");
    return budget->Covers("default", "p", {});
  };
  EXPECT_TRUE(covers(R"({"selector":{}})"));
  EXPECT_FALSE(covers("{}"));
  EXPECT_FALSE(covers(R"({"selector":null})"));
}

TEST(DisruptionBudgetTest, AllowsNothingThatIsNotKnown) {
  const struct {
    std::string status;
    int64_t allowed;
  } rows[] = {
      {"{}", 0},
      {"null", 0},
      {R"({"disruptionsAllowed":3})", 3},
      {R"({"disruptionsAllowed":0})", 0},
      {R"({"disruptionsAllowed":-1})", 0},
      {R"({"disruptionsAllowed":3,"observedGeneration":5})", 3},
      {R"({"disruptionsAllowed":3,"observedGeneration":4})", 0},
  };
  for (const auto& [status, allowed] : rows) {
    const auto budget = DecodeDisruptionBudget(
        R"({"metadata":{"name":"b","generation":5},"spec":{},"status":)" + status + "}");
    ASSERT_TRUE(budget.ok()) << budget.status();
    EXPECT_EQ(budget->allowed, allowed) << status;
  }
}

TEST(DisruptionBudgetTest, RefusesWhatIsNoBudgetAndSaysWhere) {
  const struct {
    std::string json, message;
  } rows[] = {
      {"[", "PodDisruptionBudget: expected JSON"},
      {"{}", "metadata: expected an object with a name, found nothing"},
      {R"({"metadata":{}})", "metadata.name: expected a name, found nothing"},
      {R"({"metadata":{"name":"b","namespace":7}})", "metadata.namespace: expected text, found 7"},
      {R"({"metadata":{"name":"b"},"spec":{"selector":[]}})",
       "spec.selector: expected an object, found []"},
      {R"({"metadata":{"name":"b"},"status":{"disruptionsAllowed":1.5}})",
       "status.disruptionsAllowed: expected a whole number, found 1.5"},
      {R"({"metadata":{"name":"b"},"status":{"disruptedPods":[]}})",
       "status.disruptedPods: expected an object, found []"},
  };
  for (const auto& [json, message] : rows) {
    const auto budget = DecodeDisruptionBudget(json);
    ASSERT_FALSE(budget.ok()) << json;
    EXPECT_NE(std::string(budget.status().message()).find(message), std::string::npos)
        << budget.status();
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
