// Which edits are of namespaces alone, and whom they move.
#include "scheduler/engine/teams/moved_namespaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/builders/policies.h"

namespace tranche {
namespace THIS_FILE {

using test::Quota;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

PolicySet Set(const std::map<std::string, Labels>& namespaces) {
  PolicySet set = *test::Declare({.quotas = {Quota("team-a").Owns("a").Line("any", "4")}});
  GpuQuota red;
  red.name = "red";
  red.namespaces.emplace().match_labels["team"] = "red";
  set.quotas.insert(set.quotas.begin(), red);
  for (const auto& [name, labels] : namespaces) {
    set.namespaces[name] = labels;
    set.namespaces[name].insert({"kubernetes.io/metadata.name", name});
  }
  set.FindOwners();
  return set;
}

TEST(MovedNamespacesTest, ThoseWhoseQuotaIsAnotherOne) {
  const PolicySet before = Set({{"a", {}}, {"b", {}}, {"c", {{"team", "red"}}}});
  const struct {
    const char* what;
    std::map<std::string, Labels> namespaces;
    std::vector<std::string> moved;
  } cases[] = {
      {"nothing", {{"a", {}}, {"b", {}}, {"c", {{"team", "red"}}}}, {}},
      {"a label nobody asks for", {{"a", {{"x", "y"}}}, {"b", {}}, {"c", {{"team", "red"}}}}, {}},
      {"one that nobody owns comes",
       {{"a", {}}, {"b", {}}, {"c", {{"team", "red"}}}, {"d", {}}},
       {}},
      {"one known by its name alone goes", {{"b", {}}, {"c", {{"team", "red"}}}}, {}},
      {"one comes to a team",
       {{"a", {}}, {"b", {}}, {"bb", {{"team", "red"}}}, {"c", {{"team", "red"}}}},
       {"bb"}},
      {"one leaves its team and one changes", {{"a", {{"team", "red"}}}, {"b", {}}}, {"a", "c"}},
  };
  for (const auto& row : cases) {
    EXPECT_THAT(MovedNamespaces(before, Set(row.namespaces)),
                Optional(testing::ElementsAreArray(row.moved)))
        << row.what;
  }
}

TEST(MovedNamespacesTest, AnEditOfAnythingElseIsMore) {
  const PolicySet before = Set({{"a", {}}});
  PolicySet after = before;
  after.quotas.back().weight = 2;
  EXPECT_EQ(MovedNamespaces(before, after), std::nullopt);
  after = before;
  after.classes.push_back(test::Class("top", 3));
  EXPECT_EQ(MovedNamespaces(before, after), std::nullopt);
}

}  // namespace THIS_FILE
}  // namespace tranche
