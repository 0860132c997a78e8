#include "policy/policy_store.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "scheduler/facts/node_constraints.h"

namespace tranche {
namespace THIS_FILE {

// A store with short words for what the tests do.
class PolicyStoreTest : public testing::Test {
 protected:
  void Put(std::string_view kind, const std::string& name, std::string_view spec) {
    store_.Upsert(kind, name,
                  R"({"metadata":{"name":")" + name + R"("},"spec":)" + std::string(spec) + "}");
  }
  void PutQuota(const std::string& name, const std::string& parent, int weight = 1) {
    const std::string up = parent.empty() ? "" : R"("parent":")" + parent + "\",";
    Put("GPUQuota", name, "{" + up + R"("weight":)" + std::to_string(weight) + "}");
  }
  void PutNamespace(const std::string& name, std::string_view labels) {
    store_.Upsert("Namespace", name, R"({"metadata":{"labels":)" + std::string(labels) + "}}");
  }

  // "b<a 2": quota b below a with weight 2.
  std::vector<std::string> Tree() {
    std::vector<std::string> tree;
    for (const GpuQuota& quota : store_.set().quotas) {
      tree.push_back(quota.name + "<" + quota.parent + " " + std::to_string(quota.weight));
    }
    return tree;
  }
  // "Ready=False/Cycle" of the object; empty when there is no such condition.
  std::string Condition(std::string_view kind, std::string_view name,
                        std::string_view type = "Ready") {
    for (const Finding& finding : store_.findings()) {
      if (finding.kind == kind && finding.name == name && finding.type == type) {
        return (finding.status ? "True/" : "False/") + finding.reason;
      }
    }
    return "";
  }
  std::string Message(std::string_view kind, std::string_view name,
                      std::string_view type = "Ready") {
    for (const Finding& finding : store_.findings()) {
      if (finding.kind == kind && finding.name == name && finding.type == type) {
        return finding.message;
      }
    }
    return "";
  }

  using Lines = std::vector<std::string>;
  PolicyStore store_{GpuPolicy{}};
};

TEST_F(PolicyStoreTest, NothingDeclaredIsNothingInForce) {
  EXPECT_FALSE(store_.Commit());
  EXPECT_EQ(store_.set(), PolicySet{});
  EXPECT_TRUE(store_.findings().empty());
  EXPECT_EQ(store_.invalid(), 0);
  EXPECT_EQ(store_.set().PolicyFor("x"), nullptr);
  EXPECT_EQ(store_.set().ClassOf("x"), nullptr);
}

TEST_F(PolicyStoreTest, ChangesTakeEffectWithCommitAndAreToldOnce) {
  PutQuota("a", "");
  EXPECT_TRUE(store_.set().quotas.empty());
  EXPECT_TRUE(store_.Commit());
  EXPECT_EQ(Tree(), (Lines{"a< 1"}));
  EXPECT_EQ(Condition("GPUQuota", "a"), "True/Accepted");
  EXPECT_FALSE(store_.Commit());
  PutQuota("a", "");
  EXPECT_FALSE(store_.Commit()) << "the same again";
  store_.Remove("GPUQuota", "a");
  EXPECT_TRUE(store_.Commit());
  EXPECT_EQ(store_.set(), PolicySet{});
  EXPECT_TRUE(store_.findings().empty());
}

TEST_F(PolicyStoreTest, AnUnreadableObjectLeavesItsFormerSelfInForce) {
  PutQuota("a", "", 2);
  store_.Commit();
  PutQuota("a", "", -1);
  EXPECT_TRUE(store_.Commit());
  EXPECT_EQ(Tree(), (Lines{"a< 2"}));
  EXPECT_EQ(Condition("GPUQuota", "a"), "False/Invalid");
  EXPECT_EQ(Message("GPUQuota", "a"),
            "spec.weight: expected 0..1000000, found -1; its former version stays in force");
  EXPECT_EQ(store_.invalid(), 1);
  PutQuota("a", "", 3);
  EXPECT_TRUE(store_.Commit());
  EXPECT_EQ(Tree(), (Lines{"a< 3"}));
  EXPECT_EQ(store_.invalid(), 0);
}

TEST_F(PolicyStoreTest, AnObjectNeverReadIsNotInForce) {
  for (const std::string_view kind : {"GPUQuota", "GPUBudget", "GPUClass", "GPUPolicy"}) {
    Put(kind, "a", "[]");
    EXPECT_TRUE(store_.Commit());
    EXPECT_EQ(store_.set(), PolicySet{});
    EXPECT_EQ(Condition(kind, "a"), "False/Invalid");
    EXPECT_EQ(Message(kind, "a"), "spec: expected an object, found []; not in force");
    store_.Remove(kind, "a");
    EXPECT_TRUE(store_.Commit());
    EXPECT_TRUE(store_.findings().empty());
  }
}

TEST_F(PolicyStoreTest, QuotasComeInAnyOrder) {
  PutQuota("c", "b");
  store_.Commit();
  PutQuota("b", "a");
  store_.Commit();
  EXPECT_EQ(Tree(), Lines{});
  EXPECT_EQ(store_.invalid(), 2);
  PutQuota("a", "");
  store_.Commit();
  EXPECT_EQ(Tree(), (Lines{"a< 1", "b<a 1", "c<b 1"}));
  EXPECT_EQ(store_.invalid(), 0);
}

TEST_F(PolicyStoreTest, AnUnknownParentKeepsOutTheBranchAndNothingElse) {
  PutQuota("root", "");
  PutQuota("lost", "nowhere");
  PutQuota("below", "lost");
  store_.Commit();
  EXPECT_EQ(Tree(), (Lines{"root< 1"}));
  EXPECT_EQ(Condition("GPUQuota", "lost"), "False/UnknownParent");
  EXPECT_EQ(Message("GPUQuota", "lost"),
            "spec.parent: expected a GPUQuota that is in force, found \"nowhere\"; not in force");
  EXPECT_EQ(Condition("GPUQuota", "below"), "False/UnknownParent");
  EXPECT_EQ(Condition("GPUQuota", "root"), "True/Accepted");
}

TEST_F(PolicyStoreTest, AMoveUnderAnUnknownParentIsNotMade) {
  PutQuota("root", "");
  PutQuota("a", "root");
  store_.Commit();
  PutQuota("a", "nowhere", 7);
  PutQuota("root", "", 5);
  store_.Commit();
  EXPECT_EQ(Tree(), (Lines{"a<root 1", "root< 5"}));
  EXPECT_EQ(Message("GPUQuota", "a"),
            "spec.parent: expected a GPUQuota that is in force, found \"nowhere\"; its former "
            "version stays in force");
}

TEST_F(PolicyStoreTest, ARemovedParentStaysWhileItIsNeeded) {
  PutQuota("top", "");
  PutQuota("root", "top");
  PutQuota("a", "root");
  store_.Commit();
  store_.Remove("GPUQuota", "root");
  store_.Remove("GPUQuota", "top");
  EXPECT_TRUE(store_.Commit());
  EXPECT_EQ(Tree(), (Lines{"a<root 1", "root<top 1", "top< 1"}));
  EXPECT_EQ(Condition("GPUQuota", "a"), "False/UnknownParent");
  EXPECT_EQ(Message("GPUQuota", "a"),
            "spec.parent: expected a GPUQuota that is in force, found \"root\"; its former parent "
            "stays in force");
  EXPECT_EQ(Condition("GPUQuota", "root"), "") << "the object is gone";
  PutQuota("a", "");
  store_.Commit();
  EXPECT_EQ(Tree(), (Lines{"a< 1"}));
  EXPECT_EQ(Condition("GPUQuota", "a"), "True/Accepted");
}

TEST_F(PolicyStoreTest, ACycleIsNotClosed) {
  PutQuota("a", "");
  PutQuota("b", "a");
  PutQuota("c", "b");
  store_.Commit();
  PutQuota("a", "c");
  store_.Commit();
  EXPECT_EQ(Tree(), (Lines{"a< 1", "b<a 1", "c<b 1"}));
  EXPECT_EQ(Condition("GPUQuota", "a"), "False/Cycle");
  EXPECT_EQ(Condition("GPUQuota", "b"), "True/Accepted");
  EXPECT_EQ(Condition("GPUQuota", "c"), "True/Accepted");
  PutQuota("b", "");
  store_.Commit();
  EXPECT_EQ(Tree(), (Lines{"a<c 1", "b< 1", "c<b 1"})) << "the cycle was opened elsewhere";
  EXPECT_EQ(store_.invalid(), 0);
}

TEST_F(PolicyStoreTest, ANewCycleIsNotInForceAndHarmsNobody) {
  PutQuota("a", "b");
  PutQuota("b", "a");
  PutQuota("root", "");
  store_.Commit();
  EXPECT_EQ(Tree(), (Lines{"root< 1"}));
  EXPECT_EQ(Condition("GPUQuota", "a"), "False/Cycle");
  EXPECT_EQ(Condition("GPUQuota", "b"), "False/Cycle");
}

TEST_F(PolicyStoreTest, ABudgetNeedsItsQuota) {
  PutQuota("a", "");
  Put("GPUBudget", "of-quota", R"({"quotaRef":"a","gpuHours":1})");
  Put("GPUBudget", "of-namespace", R"({"namespace":"n","gpuHours":1})");
  Put("GPUBudget", "of-nothing", R"({"quotaRef":"b","gpuHours":1})");
  store_.Commit();
  ASSERT_EQ(store_.set().budgets.size(), 2U);
  EXPECT_EQ(store_.set().budgets[0].name, "of-namespace");
  EXPECT_EQ(store_.set().budgets[1].name, "of-quota");
  EXPECT_EQ(Condition("GPUBudget", "of-nothing"), "False/UnknownQuota");
  store_.Remove("GPUQuota", "a");
  store_.Commit();
  EXPECT_EQ(store_.set().budgets.size(), 1U);
  EXPECT_EQ(Condition("GPUBudget", "of-quota"), "False/UnknownQuota");
}

TEST_F(PolicyStoreTest, APriorityClassStaysWithTheFirstClassThatNamesIt) {
  Put("GPUClass", "b", R"({"priorityClassNames":["x","y"]})");
  Put("GPUClass", "a", R"({"priorityClassNames":["x"]})");
  store_.Commit();
  const PolicySet& set = store_.set();
  EXPECT_EQ(set.ClassOf("x")->name, "a");
  EXPECT_EQ(set.ClassOf("y")->name, "b") << "its other names stay";
  EXPECT_EQ(set.ClassOf("z"), nullptr);
  EXPECT_EQ(Condition("GPUClass", "a"), "True/Accepted");
  EXPECT_EQ(Condition("GPUClass", "b"), "False/Duplicate");
  store_.Remove("GPUClass", "a");
  store_.Commit();
  EXPECT_EQ(store_.set().ClassOf("x")->name, "b");
  EXPECT_EQ(Condition("GPUClass", "b"), "True/Accepted");
}

TEST_F(PolicyStoreTest, AnUnknownPriorityClassIsToldWhereAnyIsKnown) {
  Put("GPUClass", "a", R"({"priorityClassNames":["x"]})");
  store_.Commit();
  EXPECT_EQ(Condition("GPUClass", "a", "UnknownPriorityClass"), "");
  store_.Upsert("PriorityClass", "other", "{}");
  store_.Commit();
  EXPECT_EQ(Condition("GPUClass", "a", "UnknownPriorityClass"), "True/UnknownPriorityClass");
  EXPECT_EQ(Condition("GPUClass", "a"), "True/Accepted");
  EXPECT_NE(store_.set().ClassOf("x"), nullptr);
  store_.Upsert("PriorityClass", "x", "{}");
  store_.Commit();
  EXPECT_EQ(Condition("GPUClass", "a", "UnknownPriorityClass"), "");
}

TEST_F(PolicyStoreTest, IdleAfterDoesSomethingWhereSomebodyTellsOfUse) {
  PolicyStore told{GpuPolicy{}, UseReading::kOn};
  told.Upsert("GPUClass", "a", R"({"metadata":{"name":"a"},"spec":{"idleAfter":"1h"}})");
  told.Commit();
  EXPECT_EQ(told.set().classes.at(0).idle_after, std::chrono::hours(1));
  for (const Finding& finding : told.findings()) EXPECT_EQ(finding.type, "Ready");
}

TEST_F(PolicyStoreTest, AFieldThatNobodyActsOnIsTold) {
  Put("GPUClass", "a", R"({"idleAfter":"1h"})");
  store_.Commit();
  EXPECT_EQ(Condition("GPUClass", "a", "IdleAfterIgnored"), "True/IdleAfterIgnored");
  EXPECT_EQ(Condition("GPUClass", "a"), "True/Accepted");
  Put("GPUClass", "a", "{}");
  store_.Commit();
  EXPECT_EQ(Condition("GPUClass", "a", "IdleAfterIgnored"), "");
}

TEST_F(PolicyStoreTest, QuotasThatOwnTheSameNamespaceAreBothToldAndBothInForce) {
  Put("GPUQuota", "a", R"({"namespaceSelector":{"matchLabels":{"team":"a"}}})");
  Put("GPUQuota", "b", R"({"namespaceSelector":{"matchExpressions":[
      {"key":"team","operator":"Exists"}]}})");
  Put("GPUQuota", "c", R"({"namespaceSelector":{"matchLabels":{"team":"c"}}})");
  PutNamespace("only-b", R"({"team":"b"})");
  store_.Commit();
  EXPECT_EQ(Condition("GPUQuota", "b", "LeafConflict"), "");
  for (int i = 1; i <= 7; ++i) PutNamespace("n" + std::to_string(i), R"({"team":"a"})");
  store_.Commit();
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(Condition("GPUQuota", name, "LeafConflict"), "True/LeafConflict");
    EXPECT_EQ(Condition("GPUQuota", name), "True/Accepted");
    EXPECT_EQ(Message("GPUQuota", name, "LeafConflict"),
              "spec.namespaceSelector: other quotas match these, too: n1, n2, n3, n4, n5 and 2 "
              "more");
  }
  EXPECT_EQ(Condition("GPUQuota", "c", "LeafConflict"), "");
  EXPECT_EQ(store_.set().quotas.size(), 3U);
  EXPECT_EQ(store_.invalid(), 0);
}

TEST_F(PolicyStoreTest, ANamespaceIsOwnedByItsLabels) {
  Put("GPUQuota", "team", R"({"namespaceSelector":{"matchLabels":{"team":"a"}}})");
  Put("GPUQuota", "by-name",
      R"({"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"n"}}})");
  PutQuota("inner", "");
  PutNamespace("m", R"({"team":"a","kubernetes.io/metadata.name":"n"})");
  store_.Commit();
  const auto leaves = [&](const std::string& ns) {
    Lines names;
    for (const GpuQuota* quota : store_.set().LeavesOf(ns)) names.push_back(quota->name);
    return names;
  };
  EXPECT_EQ(leaves("m"), Lines{"team"}) << "the name label is the name";
  EXPECT_EQ(leaves("n"), Lines{"by-name"}) << "of an unknown namespace the name is known";
  EXPECT_EQ(leaves("o"), Lines{});
  PutNamespace("n", R"({"team":"a"})");
  store_.Commit();
  EXPECT_EQ(leaves("n"), (Lines{"by-name", "team"}));
  store_.Remove("Namespace", "n");
  store_.Commit();
  EXPECT_EQ(leaves("n"), Lines{"by-name"});
}

TEST_F(PolicyStoreTest, OfPoliciesForNodesTheMostExactCounts) {
  const auto put = [this](const char* name, const std::string& labels, const std::string& most) {
    Put("GPUPolicy", name,
        R"({"selector":{"nodes":{"matchLabels":)" + labels + R"(}},"sharing":{"limits":[)" +
            R"({"model":"any","maxPodsPerGpu":)" + most + "}]}}");
  };
  put("all", "{}", "1");
  put("pool", R"({"pool":"t4"})", "2");
  put("also-pool", R"({"pool":"t4"})", "3");
  put("zone", R"({"pool":"t4","zone":"a"})", "4");
  store_.Commit();
  const struct {
    Labels labels;
    int most;
  } rows[] = {{{}, 1},
              {{{"pool", "a100"}}, 1},
              {{{"pool", "t4"}}, 3},
              {{{"pool", "t4"}, {"zone", "a"}}, 4},
              {{{"pool", "t4"}, {"zone", "b"}}, 3}};
  for (const auto& row : rows) {
    const LabelText text(row.labels);
    const NodeRules rules = store_.set().RulesOf(text.Finder());
    ASSERT_TRUE(rules.sharing_limits) << testing::PrintToString(row.labels);
    EXPECT_EQ(rules.sharing_limits->at(0).max_pods_per_gpu, row.most)
        << testing::PrintToString(row.labels);
  }
  // A policy that is for nodes no longer.
  Put("GPUPolicy", "zone", R"({"selector":{"namespaces":{}}})");
  store_.Commit();
  EXPECT_EQ(store_.set().node_policies.size(), 3U);
  EXPECT_EQ(store_.set().policies.size(), 1U);
}

TEST_F(PolicyStoreTest, PoliciesForNamespacesGoBeforeTheOneForAll) {
  Put("GPUPolicy", "a", R"({"placement":{"filterWidth":1}})");
  Put("GPUPolicy", "b", R"({"placement":{"filterWidth":2}})");
  Put("GPUPolicy", "y", R"({"selector":{"namespaces":{"matchLabels":{"team":"a"}}}})");
  Put("GPUPolicy", "x", R"({"selector":{"namespaces":{}},"unassigned":"Refuse"})");
  Put("GPUPolicy", "z", R"({"selector":{"nodes":{"matchLabels":{"pool":"a"}}}})");
  store_.Commit();
  Lines names;
  for (const GpuPolicy& policy : store_.set().policies) names.push_back(policy.name);
  EXPECT_EQ(names, (Lines{"x", "y", "a"}));
  EXPECT_EQ(Condition("GPUPolicy", "b"), "False/Surplus");
  EXPECT_EQ(Condition("GPUPolicy", "z"), "True/Accepted");
  ASSERT_EQ(store_.set().node_policies.size(), 1U);
  EXPECT_EQ(store_.set().node_policies[0].name, "z");
  EXPECT_EQ(store_.set().PolicyFor("anything")->name, "x");
  store_.Remove("GPUPolicy", "x");
  PutNamespace("n", R"({"team":"a"})");
  store_.Commit();
  EXPECT_EQ(store_.set().PolicyFor("n")->name, "y");
  EXPECT_EQ(store_.set().PolicyFor("o")->name, "a");
  EXPECT_EQ(store_.invalid(), 1);
}

TEST_F(PolicyStoreTest, FindingsStandInOrder) {
  Put("GPUQuota", "b", "{}");
  Put("GPUQuota", "a", "{}");
  Put("GPUClass", "c", R"({"priorityClassNames":["x"]})");
  Put("GPUBudget", "d", "[]");
  store_.Upsert("PriorityClass", "other", "{}");
  store_.Upsert("ConfigMap", "e", "{}");
  store_.Commit();
  Lines found;
  for (const Finding& finding : store_.findings()) {
    found.push_back(finding.kind + " " + finding.name + " " + finding.type);
  }
  EXPECT_EQ(found,
            (Lines{"GPUBudget d Ready", "GPUClass c Ready", "GPUClass c UnknownPriorityClass",
                   "GPUQuota a Ready", "GPUQuota b Ready"}));
}

// Whatever comes and goes, what is in force is a tree, and a good tree is in force as written.
TEST_F(PolicyStoreTest, WhatIsInForceIsAlwaysATree) {
  uint64_t state = 42;
  const auto draw = [&state](uint64_t below) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state >> 33U) % below;
  };
  const Lines names = {"a", "b", "c", "d", "e"};
  std::map<std::string, std::string> wanted;  // name -> parent
  for (int step = 0; step < 3000; ++step) {
    const std::string name = names[draw(names.size())];
    if (draw(3) == 0) {
      store_.Remove("GPUQuota", name);
      wanted.erase(name);
    } else {
      std::string parent = draw(2) == 0 ? "" : names[draw(names.size())];
      if (parent == name) parent.clear();
      PutQuota(name, parent);
      wanted[name] = parent;
    }
    if (draw(3) == 0) continue;
    store_.Commit();
    std::map<std::string, std::string> in_force;
    for (const GpuQuota& quota : store_.set().quotas) in_force[quota.name] = quota.parent;
    const auto is_tree = [](const std::map<std::string, std::string>& parents) {
      return std::all_of(parents.begin(), parents.end(), [&](const auto& entry) {
        std::string at = entry.first;
        for (size_t steps = 0; !at.empty() && steps <= parents.size(); ++steps) {
          if (!parents.contains(at)) return false;
          at = parents.at(at);
        }
        return at.empty();
      });
    };
    ASSERT_TRUE(is_tree(in_force)) << step;
    if (is_tree(wanted)) {
      ASSERT_EQ(in_force, wanted) << step;
      ASSERT_EQ(store_.invalid(), 0) << step;
    } else {
      ASSERT_GT(store_.invalid(), 0) << step;
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
