#include "policy/selector.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tranche {
namespace THIS_FILE {

using Operator = SelectorTerm::Operator;

TEST(LabelSelectorTest, MatchesAsKubernetesDoes) {
  const Labels team_a = {{"team", "a"}, {"stage", "prod"}, {"empty", ""}};
  const struct {
    std::string what;
    LabelSelector selector;
    bool matches;
  } kCases[] = {
      {"an empty selector takes everything", {}, true},
      {"a label that is there", {{{"team", "a"}}, {}}, true},
      {"another value", {{{"team", "b"}}, {}}, false},
      {"a label that is not there", {{{"owner", "a"}}, {}}, false},
      {"all labels must match", {{{"team", "a"}, {"stage", "dev"}}, {}}, false},
      {"no label is not an empty one", {{{"owner", ""}}, {}}, false},
      {"an empty label", {{{"empty", ""}}, {}}, true},
      {"in", {{}, {{"team", Operator::kIn, {"b", "a"}}}}, true},
      {"in others", {{}, {{"team", Operator::kIn, {"b", "c"}}}}, false},
      {"in, without the label", {{}, {{"owner", Operator::kIn, {"a"}}}}, false},
      {"not in", {{}, {{"team", Operator::kNotIn, {"b"}}}}, true},
      {"not in, but is", {{}, {{"team", Operator::kNotIn, {"b", "a"}}}}, false},
      {"not in, without the label", {{}, {{"owner", Operator::kNotIn, {"a"}}}}, true},
      {"exists", {{}, {{"empty", Operator::kExists, {}}}}, true},
      {"exists, without the label", {{}, {{"owner", Operator::kExists, {}}}}, false},
      {"does not exist", {{}, {{"owner", Operator::kDoesNotExist, {}}}}, true},
      {"does not exist, but does", {{}, {{"empty", Operator::kDoesNotExist, {}}}}, false},
      {"labels and terms must hold", {{{"team", "a"}}, {{"stage", Operator::kIn, {"dev"}}}}, false},
      {"all terms must hold",
       {{}, {{"team", Operator::kExists, {}}, {"stage", Operator::kDoesNotExist, {}}}},
       false},
  };
  for (const auto& c : kCases) EXPECT_EQ(c.selector.Matches(team_a), c.matches) << c.what;
}

}  // namespace THIS_FILE
}  // namespace tranche
