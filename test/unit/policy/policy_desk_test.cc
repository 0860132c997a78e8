#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "policy/policy_set.h"

namespace tranche {
namespace {

// A desk with short words for what the tests do.
class PolicyDeskTest : public testing::Test {
 protected:
  void Put(std::string_view kind, const std::string& name, std::string_view spec) {
    desk_.Upsert(kind, name,
                 R"({"metadata":{"name":")" + name + R"("},"spec":)" + std::string(spec) + "}");
  }
  void PutQuota(const std::string& name, const std::string& parent, int weight = 1) {
    const std::string up = parent.empty() ? "" : R"("parent":")" + parent + "\",";
    Put("GPUQuota", name, "{" + up + R"("weight":)" + std::to_string(weight) + "}");
  }
  void PutNamespace(const std::string& name, std::string_view labels) {
    desk_.Upsert("Namespace", name, R"({"metadata":{"labels":)" + std::string(labels) + "}}");
  }

  // "b<a 2": quota b below a with weight 2.
  std::vector<std::string> Tree() {
    std::vector<std::string> tree;
    for (const GpuQuota& quota : desk_.set().quotas) {
      tree.push_back(quota.name + "<" + quota.parent + " " + std::to_string(quota.weight));
    }
    return tree;
  }
  // "Ready=False/Cycle" of the object; empty when there is no such condition.
  std::string Condition(std::string_view kind, std::string_view name,
                        std::string_view type = "Ready") {
    for (const Finding& finding : desk_.findings()) {
      if (finding.kind == kind && finding.name == name && finding.type == type) {
        return (finding.status ? "True/" : "False/") + finding.reason;
      }
    }
    return "";
  }
  std::string Message(std::string_view kind, std::string_view name,
                      std::string_view type = "Ready") {
    for (const Finding& finding : desk_.findings()) {
      if (finding.kind == kind && finding.name == name && finding.type == type) {
        return finding.message;
      }
    }
    return "";
  }

  using Lines = std::vector<std::string>;
  PolicyDesk desk_{GpuPolicy{}};
};

TEST_F(PolicyDeskTest, NothingDeclaredIsNothingInForce) {
  EXPECT_FALSE(desk_.Commit());
  EXPECT_EQ(desk_.set(), PolicySet{});
  EXPECT_TRUE(desk_.findings().empty());
  EXPECT_EQ(desk_.invalid(), 0);
  EXPECT_EQ(desk_.set().PolicyFor("x"), nullptr);
  EXPECT_EQ(desk_.set().ClassOf("x"), nullptr);
}

TEST_F(PolicyDeskTest, ChangesTakeEffectWithCommitAndAreToldOnce) {
  PutQuota("a", "");
  EXPECT_TRUE(desk_.set().quotas.empty());
  EXPECT_TRUE(desk_.Commit());
  EXPECT_EQ(Tree(), (Lines{"a< 1"}));
  EXPECT_EQ(Condition("GPUQuota", "a"), "True/Accepted");
  EXPECT_FALSE(desk_.Commit());
  PutQuota("a", "");
  EXPECT_FALSE(desk_.Commit()) << "the same again";
  desk_.Remove("GPUQuota", "a");
  EXPECT_TRUE(desk_.Commit());
  EXPECT_EQ(desk_.set(), PolicySet{});
  EXPECT_TRUE(desk_.findings().empty());
}

TEST_F(PolicyDeskTest, AnUnreadableObjectLeavesItsFormerSelfInForce) {
  PutQuota("a", "", 2);
  desk_.Commit();
  PutQuota("a", "", -1);
  EXPECT_TRUE(desk_.Commit());
  EXPECT_EQ(Tree(), (Lines{"a< 2"}));
  EXPECT_EQ(Condition("GPUQuota", "a"), "False/Invalid");
  EXPECT_EQ(Message("GPUQuota", "a"),
            "spec.weight: expected 0..1000000, found -1; its former version stays in force");
  EXPECT_EQ(desk_.invalid(), 1);
  PutQuota("a", "", 3);
  EXPECT_TRUE(desk_.Commit());
  EXPECT_EQ(Tree(), (Lines{"a< 3"}));
  EXPECT_EQ(desk_.invalid(), 0);
}

TEST_F(PolicyDeskTest, AnObjectNeverReadIsNotInForce) {
  for (const std::string_view kind : {"GPUQuota", "GPUBudget", "GPUClass", "GPUPolicy"}) {
    Put(kind, "a", "[]");
    EXPECT_TRUE(desk_.Commit());
    EXPECT_EQ(desk_.set(), PolicySet{});
    EXPECT_EQ(Condition(kind, "a"), "False/Invalid");
    EXPECT_EQ(Message(kind, "a"), "spec: expected an object, found []; not in force");
    desk_.Remove(kind, "a");
    EXPECT_TRUE(desk_.Commit());
    EXPECT_TRUE(desk_.findings().empty());
  }
}

TEST_F(PolicyDeskTest, QuotasComeInAnyOrder) {
  PutQuota("c", "b");
  desk_.Commit();
  PutQuota("b", "a");
  desk_.Commit();
  EXPECT_EQ(Tree(), Lines{});
  EXPECT_EQ(desk_.invalid(), 2);
  PutQuota("a", "");
  desk_.Commit();
  EXPECT_EQ(Tree(), (Lines{"a< 1", "b<a 1", "c<b 1"}));
  EXPECT_EQ(desk_.invalid(), 0);
}

TEST_F(PolicyDeskTest, AnUnknownParentKeepsOutTheBranchAndNothingElse) {
  PutQuota("root", "");
  PutQuota("lost", "nowhere");
  PutQuota("below", "lost");
  desk_.Commit();
  EXPECT_EQ(Tree(), (Lines{"root< 1"}));
  EXPECT_EQ(Condition("GPUQuota", "lost"), "False/UnknownParent");
  EXPECT_EQ(Message("GPUQuota", "lost"),
            "spec.parent: expected a GPUQuota that is in force, found \"nowhere\"; not in force");
  EXPECT_EQ(Condition("GPUQuota", "below"), "False/UnknownParent");
  EXPECT_EQ(Condition("GPUQuota", "root"), "True/Accepted");
}

TEST_F(PolicyDeskTest, AMoveUnderAnUnknownParentIsNotMade) {
  PutQuota("root", "");
  PutQuota("a", "root");
  desk_.Commit();
  PutQuota("a", "nowhere", 7);
  PutQuota("root", "", 5);
  desk_.Commit();
  EXPECT_EQ(Tree(), (Lines{"a<root 1", "root< 5"}));
  EXPECT_EQ(Message("GPUQuota", "a"),
            "spec.parent: expected a GPUQuota that is in force, found \"nowhere\"; its former "
            "version stays in force");
}

TEST_F(PolicyDeskTest, ARemovedParentStaysWhileItIsNeeded) {
  PutQuota("top", "");
  PutQuota("root", "top");
  PutQuota("a", "root");
  desk_.Commit();
  desk_.Remove("GPUQuota", "root");
  desk_.Remove("GPUQuota", "top");
  EXPECT_TRUE(desk_.Commit());
  EXPECT_EQ(Tree(), (Lines{"a<root 1", "root<top 1", "top< 1"}));
  EXPECT_EQ(Condition("GPUQuota", "a"), "False/UnknownParent");
  EXPECT_EQ(Message("GPUQuota", "a"),
            "spec.parent: expected a GPUQuota that is in force, found \"root\"; its former parent "
            "stays in force");
  EXPECT_EQ(Condition("GPUQuota", "root"), "") << "the object is gone";
  PutQuota("a", "");
  desk_.Commit();
  EXPECT_EQ(Tree(), (Lines{"a< 1"}));
  EXPECT_EQ(Condition("GPUQuota", "a"), "True/Accepted");
}

TEST_F(PolicyDeskTest, ACycleIsNotClosed) {
  PutQuota("a", "");
  PutQuota("b", "a");
  PutQuota("c", "b");
  desk_.Commit();
  PutQuota("a", "c");
  desk_.Commit();
  EXPECT_EQ(Tree(), (Lines{"a< 1", "b<a 1", "c<b 1"}));
  EXPECT_EQ(Condition("GPUQuota", "a"), "False/Cycle");
  EXPECT_EQ(Condition("GPUQuota", "b"), "True/Accepted");
  EXPECT_EQ(Condition("GPUQuota", "c"), "True/Accepted");
  PutQuota("b", "");
  desk_.Commit();
  EXPECT_EQ(Tree(), (Lines{"a<c 1", "b< 1", "c<b 1"})) << "the cycle was opened elsewhere";
  EXPECT_EQ(desk_.invalid(), 0);
}

TEST_F(PolicyDeskTest, ANewCycleIsNotInForceAndHarmsNobody) {
  PutQuota("a", "b");
  PutQuota("b", "a");
  PutQuota("root", "");
  desk_.Commit();
  EXPECT_EQ(Tree(), (Lines{"root< 1"}));
  EXPECT_EQ(Condition("GPUQuota", "a"), "False/Cycle");
  EXPECT_EQ(Condition("GPUQuota", "b"), "False/Cycle");
}

TEST_F(PolicyDeskTest, ABudgetNeedsItsQuota) {
  PutQuota("a", "");
  Put("GPUBudget", "of-quota", R"({"quotaRef":"a","gpuHours":1})");
  Put("GPUBudget", "of-namespace", R"({"namespace":"n","gpuHours":1})");
  Put("GPUBudget", "of-nothing", R"({"quotaRef":"b","gpuHours":1})");
  desk_.Commit();
  ASSERT_EQ(desk_.set().budgets.size(), 2U);
  EXPECT_EQ(desk_.set().budgets[0].name, "of-namespace");
  EXPECT_EQ(desk_.set().budgets[1].name, "of-quota");
  EXPECT_EQ(Condition("GPUBudget", "of-nothing"), "False/UnknownQuota");
  desk_.Remove("GPUQuota", "a");
  desk_.Commit();
  EXPECT_EQ(desk_.set().budgets.size(), 1U);
  EXPECT_EQ(Condition("GPUBudget", "of-quota"), "False/UnknownQuota");
}

TEST_F(PolicyDeskTest, APriorityClassStaysWithTheFirstClassThatNamesIt) {
  Put("GPUClass", "b", R"({"priorityClassNames":["x","y"]})");
  Put("GPUClass", "a", R"({"priorityClassNames":["x"]})");
  desk_.Commit();
  const PolicySet& set = desk_.set();
  EXPECT_EQ(set.ClassOf("x")->name, "a");
  EXPECT_EQ(set.ClassOf("y")->name, "b") << "its other names stay";
  EXPECT_EQ(set.ClassOf("z"), nullptr);
  EXPECT_EQ(Condition("GPUClass", "a"), "True/Accepted");
  EXPECT_EQ(Condition("GPUClass", "b"), "False/Duplicate");
  desk_.Remove("GPUClass", "a");
  desk_.Commit();
  EXPECT_EQ(desk_.set().ClassOf("x")->name, "b");
  EXPECT_EQ(Condition("GPUClass", "b"), "True/Accepted");
}

TEST_F(PolicyDeskTest, AnUnknownPriorityClassIsToldWhereAnyIsKnown) {
  Put("GPUClass", "a", R"({"priorityClassNames":["x"]})");
  desk_.Commit();
  EXPECT_EQ(Condition("GPUClass", "a", "UnknownPriorityClass"), "");
  desk_.Upsert("PriorityClass", "other", "{}");
  desk_.Commit();
  EXPECT_EQ(Condition("GPUClass", "a", "UnknownPriorityClass"), "True/UnknownPriorityClass");
  EXPECT_EQ(Condition("GPUClass", "a"), "True/Accepted");
  EXPECT_NE(desk_.set().ClassOf("x"), nullptr);
  desk_.Upsert("PriorityClass", "x", "{}");
  desk_.Commit();
  EXPECT_EQ(Condition("GPUClass", "a", "UnknownPriorityClass"), "");
}

TEST_F(PolicyDeskTest, QuotasThatOwnTheSameNamespaceAreBothToldAndBothInForce) {
  Put("GPUQuota", "a", R"({"namespaceSelector":{"matchLabels":{"team":"a"}}})");
  Put("GPUQuota", "b", R"({"namespaceSelector":{"matchExpressions":[
      {"key":"team","operator":"Exists"}]}})");
  Put("GPUQuota", "c", R"({"namespaceSelector":{"matchLabels":{"team":"c"}}})");
  PutNamespace("only-b", R"({"team":"b"})");
  desk_.Commit();
  EXPECT_EQ(Condition("GPUQuota", "b", "LeafConflict"), "");
  for (int i = 1; i <= 7; ++i) PutNamespace("n" + std::to_string(i), R"({"team":"a"})");
  desk_.Commit();
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(Condition("GPUQuota", name, "LeafConflict"), "True/LeafConflict");
    EXPECT_EQ(Condition("GPUQuota", name), "True/Accepted");
    EXPECT_EQ(Message("GPUQuota", name, "LeafConflict"),
              "spec.namespaceSelector: other quotas match these, too: n1, n2, n3, n4, n5 and 2 "
              "more");
  }
  EXPECT_EQ(Condition("GPUQuota", "c", "LeafConflict"), "");
  EXPECT_EQ(desk_.set().quotas.size(), 3U);
  EXPECT_EQ(desk_.invalid(), 0);
}

TEST_F(PolicyDeskTest, ANamespaceIsOwnedByItsLabels) {
  Put("GPUQuota", "team", R"({"namespaceSelector":{"matchLabels":{"team":"a"}}})");
  Put("GPUQuota", "by-name",
      R"({"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"n"}}})");
  PutQuota("inner", "");
  PutNamespace("m", R"({"team":"a","kubernetes.io/metadata.name":"n"})");
  desk_.Commit();
  const auto leaves = [&](const std::string& ns) {
    Lines names;
    for (const GpuQuota* quota : desk_.set().LeavesOf(ns)) names.push_back(quota->name);
    return names;
  };
  EXPECT_EQ(leaves("m"), Lines{"team"}) << "the name label is the name";
  EXPECT_EQ(leaves("n"), Lines{"by-name"}) << "of an unknown namespace the name is known";
  EXPECT_EQ(leaves("o"), Lines{});
  PutNamespace("n", R"({"team":"a"})");
  desk_.Commit();
  EXPECT_EQ(leaves("n"), (Lines{"by-name", "team"}));
  desk_.Remove("Namespace", "n");
  desk_.Commit();
  EXPECT_EQ(leaves("n"), Lines{"by-name"});
}

TEST_F(PolicyDeskTest, PoliciesForNamespacesGoBeforeTheOneForAll) {
  Put("GPUPolicy", "a", R"({"placement":{"filterWidth":1}})");
  Put("GPUPolicy", "b", R"({"placement":{"filterWidth":2}})");
  Put("GPUPolicy", "y", R"({"selector":{"namespaces":{"matchLabels":{"team":"a"}}}})");
  Put("GPUPolicy", "x", R"({"selector":{"namespaces":{}},"unassigned":"Refuse"})");
  Put("GPUPolicy", "z", R"({"selector":{"nodes":{"matchLabels":{"pool":"a"}}}})");
  desk_.Commit();
  Lines names;
  for (const GpuPolicy& policy : desk_.set().policies) names.push_back(policy.name);
  EXPECT_EQ(names, (Lines{"x", "y", "a"}));
  EXPECT_EQ(Condition("GPUPolicy", "b"), "False/Surplus");
  EXPECT_EQ(Condition("GPUPolicy", "z"), "False/Unsupported");
  EXPECT_EQ(desk_.set().PolicyFor("anything")->name, "x");
  desk_.Remove("GPUPolicy", "x");
  PutNamespace("n", R"({"team":"a"})");
  desk_.Commit();
  EXPECT_EQ(desk_.set().PolicyFor("n")->name, "y");
  EXPECT_EQ(desk_.set().PolicyFor("o")->name, "a");
  EXPECT_EQ(desk_.invalid(), 2);
}

TEST_F(PolicyDeskTest, FindingsStandInOrder) {
  Put("GPUQuota", "b", "{}");
  Put("GPUQuota", "a", "{}");
  Put("GPUClass", "c", R"({"priorityClassNames":["x"]})");
  Put("GPUBudget", "d", "[]");
  desk_.Upsert("PriorityClass", "other", "{}");
  desk_.Upsert("ConfigMap", "e", "{}");
  desk_.Commit();
  Lines found;
  for (const Finding& finding : desk_.findings()) {
    found.push_back(finding.kind + " " + finding.name + " " + finding.type);
  }
  EXPECT_EQ(found,
            (Lines{"GPUBudget d Ready", "GPUClass c Ready", "GPUClass c UnknownPriorityClass",
                   "GPUQuota a Ready", "GPUQuota b Ready"}));
}

// Whatever comes and goes, what is in force is a tree, and a good tree is in force as written.
TEST_F(PolicyDeskTest, WhatIsInForceIsAlwaysATree) {
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
      desk_.Remove("GPUQuota", name);
      wanted.erase(name);
    } else {
      std::string parent = draw(2) == 0 ? "" : names[draw(names.size())];
      if (parent == name) parent.clear();
      PutQuota(name, parent);
      wanted[name] = parent;
    }
    if (draw(3) == 0) continue;
    desk_.Commit();
    std::map<std::string, std::string> in_force;
    for (const GpuQuota& quota : desk_.set().quotas) in_force[quota.name] = quota.parent;
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
      ASSERT_EQ(desk_.invalid(), 0) << step;
    } else {
      ASSERT_GT(desk_.invalid(), 0) << step;
    }
  }
}

}  // namespace
}  // namespace tranche
