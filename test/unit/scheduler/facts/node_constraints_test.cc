// What kube-scheduler's NodeAffinity and TaintToleration filters would say.
#include "scheduler/facts/node_constraints.h"

#include <gtest/gtest.h>

namespace tranche {
namespace THIS_FILE {

using Operator = NodeTerm::Operator;
using Terms = std::vector<NodeTerm>;

const LabelText kLabels(Labels{
    {"disk", "ssd"}, {"empty", ""}, {"gen", "7"}, {"low", "-3"}, {"word", "seven"}, {"zone", "a"}});

NodeTerm Label(std::string key, Operator op, std::vector<std::string> values = {}) {
  return {std::move(key), false, op, std::move(values)};
}
NodeTerm Field(std::string key, Operator op, std::vector<std::string> values) {
  return {std::move(key), true, op, std::move(values)};
}

bool SuitsAffinity(std::vector<Terms> affinity) {
  NodeConstraints constraints;
  constraints.has_affinity = true;
  constraints.affinity = std::move(affinity);
  return Suits(constraints, "n1", kLabels, {});
}

TEST(LabelTextTest, FindsWhatIsThereAndNothingElse) {
  EXPECT_EQ(kLabels.Find("zone"), "a");
  EXPECT_EQ(kLabels.Find("empty"), "");
  EXPECT_NE(kLabels.Find("empty").data(), nullptr) << "an empty value is there";
  for (const std::string_view absent : {"", "a", "ssd", "zon", "zonee", "Zone"}) {
    EXPECT_EQ(kLabels.Find(absent).data(), nullptr) << absent;
  }
  EXPECT_EQ(LabelText().Find("zone").data(), nullptr);
  EXPECT_EQ(LabelText(Labels{}), LabelText());
}

TEST(LabelTextTest, NoValueCanPassItselfOffAsAnotherLabel) {
  const LabelText forged(Labels{{"a", std::string("x\0zone\0b", 8)}, {"b", "y"}});
  EXPECT_EQ(forged.Find("zone").data(), nullptr);
  EXPECT_EQ(forged.Find("b"), "y");
}

TEST(NodeConstraintsTest, EveryLabelOfTheSelectorMustBeThere) {
  const struct {
    Labels selector;
    bool suits;
  } rows[] = {
      {{}, true},
      {{{"zone", "a"}}, true},
      {{{"zone", "a"}, {"disk", "ssd"}}, true},
      {{{"zone", "a"}, {"disk", "hdd"}}, false},
      {{{"rack", "r1"}}, false},
      {{{"empty", ""}}, true},
      {{{"absent", ""}}, false},
  };
  for (const auto& [selector, suits] : rows) {
    NodeConstraints constraints;
    constraints.selector = selector;
    EXPECT_EQ(Suits(constraints, "n1", kLabels, {}), suits)
        << (selector.empty() ? "" : selector.begin()->first);
  }
}

TEST(NodeConstraintsTest, JudgesARequirementAsKubeSchedulerDoes) {
  const struct {
    NodeTerm term;
    bool suits;
  } rows[] = {
      {Label("zone", Operator::kIn, {"b", "a"}), true},
      {Label("zone", Operator::kIn, {"b"}), false},
      {Label("zone", Operator::kIn), false},
      {Label("absent", Operator::kIn, {""}), false},
      {Label("zone", Operator::kNotIn, {"b"}), true},
      {Label("zone", Operator::kNotIn, {"a", "b"}), false},
      {Label("absent", Operator::kNotIn, {"a"}), true},
      {Label("absent", Operator::kNotIn), false},  // malformed
      {Label("empty", Operator::kExists), true},
      {Label("absent", Operator::kExists), false},
      {Label("zone", Operator::kExists, {"a"}), false},  // malformed
      {Label("absent", Operator::kDoesNotExist), true},
      {Label("empty", Operator::kDoesNotExist), false},
      {Label("absent", Operator::kDoesNotExist, {"a"}), false},  // malformed
      {Label("gen", Operator::kGt, {"6"}), true},
      {Label("gen", Operator::kGt, {"7"}), false},
      {Label("gen", Operator::kGt, {"+6"}), true},
      {Label("gen", Operator::kGt, {"+-6"}), false},
      {Label("gen", Operator::kGt, {"06"}), true},
      {Label("gen", Operator::kGt, {"6", "5"}), false},
      {Label("gen", Operator::kGt), false},
      {Label("gen", Operator::kGt, {"six"}), false},
      {Label("gen", Operator::kGt, {"6.5"}), false},
      {Label("gen", Operator::kGt, {"-9223372036854775808"}), true},
      {Label("gen", Operator::kGt, {"-9223372036854775809"}), false},
      {Label("gen", Operator::kLt, {"8"}), true},
      {Label("gen", Operator::kLt, {"7"}), false},
      {Label("low", Operator::kLt, {"-2"}), true},
      {Label("word", Operator::kGt, {"0"}), false},
      {Label("word", Operator::kLt, {"9"}), false},
      {Label("empty", Operator::kLt, {"9"}), false},
      {Label("absent", Operator::kLt, {"9"}), false},
      {Field("metadata.name", Operator::kIn, {"n1"}), true},
      {Field("metadata.name", Operator::kIn, {"n2"}), false},
      {Field("metadata.name", Operator::kIn, {"n1", "n2"}), false},  // one value only
      {Field("metadata.name", Operator::kNotIn, {"n2"}), true},
      {Field("metadata.name", Operator::kNotIn, {"n1"}), false},
      {Field("metadata.name", Operator::kExists, {}), false},
      {Field("metadata.name", Operator::kGt, {"0"}), false},
      {Field("spec.unschedulable", Operator::kIn, {"n1"}), false},
      {Field("zone", Operator::kIn, {"a"}), false},
  };
  for (const auto& [term, suits] : rows) {
    EXPECT_EQ(SuitsAffinity({{term}}), suits) << term.key << " " << static_cast<int>(term.op) << " "
                                              << (term.values.empty() ? "" : term.values[0]);
  }
}

TEST(NodeConstraintsTest, AnyTermWillDoAndAllOfItsRequirementsMustHold) {
  const NodeTerm yes = Label("zone", Operator::kExists);
  const NodeTerm no = Label("rack", Operator::kExists);
  EXPECT_TRUE(SuitsAffinity({{yes, yes}}));
  EXPECT_FALSE(SuitsAffinity({{yes, no}}));
  EXPECT_TRUE(SuitsAffinity({{no}, {yes}}));
  EXPECT_TRUE(SuitsAffinity({{yes}, {no}}));
  EXPECT_FALSE(SuitsAffinity({{no}, {yes, no}}));
  EXPECT_FALSE(SuitsAffinity({})) << "required, and nothing to fulfil it";
  EXPECT_FALSE(SuitsAffinity({{}})) << "a term without requirements matches nothing";
  EXPECT_TRUE(SuitsAffinity({{}, {yes}}));
  NodeConstraints none;
  EXPECT_TRUE(Suits(none, "n1", LabelText(), {}));
}

TEST(NodeConstraintsTest, SelectorAffinityAndTolerationsMustAllHold) {
  NodeConstraints constraints;
  constraints.selector = {{"zone", "a"}};
  constraints.has_affinity = true;
  constraints.affinity = {{Label("disk", Operator::kIn, {"ssd"})}};
  const Taint taint = {"gpu", "", "NoSchedule"};
  EXPECT_TRUE(Suits(constraints, "n1", kLabels, {}));
  EXPECT_FALSE(Suits(constraints, "n1", kLabels, {taint}));
  EXPECT_FALSE(Suits(constraints, "n1", LabelText(Labels{{"zone", "a"}}), {}));
  EXPECT_FALSE(Suits(constraints, "n1", LabelText(Labels{{"disk", "ssd"}}), {}));
  constraints.tolerations = {{"gpu", true, "", ""}};
  EXPECT_TRUE(Suits(constraints, "n1", kLabels, {taint}));
}

TEST(NodeConstraintsTest, ToleratesATaintAsKubeSchedulerDoes) {
  const Taint taint = {"gpu", "h200", "NoSchedule"};
  const struct {
    Toleration toleration;
    bool tolerates;
  } rows[] = {
      {{"gpu", false, "h200", ""}, true},
      {{"gpu", false, "h200", "NoSchedule"}, true},
      {{"gpu", false, "h200", "NoExecute"}, false},
      {{"gpu", false, "a100", ""}, false},
      {{"gpu", false, "", ""}, false},
      {{"gpu", true, "", ""}, true},
      {{"gpu", true, "", "NoSchedule"}, true},
      {{"gpu", true, "", "NoExecute"}, false},
      {{"cpu", true, "", ""}, false},
      {{"", true, "", ""}, true},
      {{"", true, "", "NoSchedule"}, true},
      {{"", true, "", "NoExecute"}, false},
      {{"", false, "h200", ""}, true},
      {{"", false, "", ""}, false},
  };
  for (const auto& [toleration, tolerates] : rows) {
    EXPECT_EQ(Tolerates({toleration}, {taint}), tolerates)
        << toleration.key << " " << toleration.exists << " " << toleration.value << " "
        << toleration.effect;
  }
}

TEST(NodeConstraintsTest, EveryTaintThatBindsNeedsAToleration) {
  const Taint soft = {"a", "", "PreferNoSchedule"};
  const Taint hard = {"b", "", "NoSchedule"};
  const Taint out = {"c", "", "NoExecute"};
  const Toleration of_b = {"b", true, "", ""};
  const Toleration of_c = {"c", true, "", "NoExecute"};
  EXPECT_TRUE(Tolerates({}, {}));
  EXPECT_TRUE(Tolerates({}, {soft}));
  EXPECT_FALSE(Tolerates({}, {hard}));
  EXPECT_FALSE(Tolerates({}, {out}));
  EXPECT_FALSE(Tolerates({of_b}, {hard, out}));
  EXPECT_TRUE(Tolerates({of_b, of_c}, {soft, hard, out}));
}

}  // namespace THIS_FILE
}  // namespace tranche
