// Which lines hold whom: models that nobody names, other trees, one dimension alone.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "quota/tree/quota_tree.h"
#include "test/unit/quota/tree/trees.h"

namespace tranche {
namespace THIS_FILE {

using test::Gpus;
using test::Limits;
using test::Tree;
using testing::ElementsAre;
using testing::Pair;

TEST(QuotaLinesTest, AModelNobodyNamesIsHeldToAnyAlone) {
  const QuotaTree tree = Tree({{"team", "", {{"any", Limits(2)}, {"h200", Limits(1)}}}});
  EXPECT_EQ(tree.FindLine("l4"), kNoLine);
  EXPECT_EQ(tree.Check(QuotaId{0}, kNoLine, Gpus(2)).refusal, QuotaRefusal::kNone);
  EXPECT_EQ(tree.Check(QuotaId{0}, kNoLine, Gpus(3)).refusal, QuotaRefusal::kExceedsMax);
  EXPECT_EQ(tree.Available(QuotaId{0}, kNoLine), Gpus(2));
  EXPECT_EQ(tree.Available(QuotaId{0}, tree.FindLine("h200")), Gpus(1));
}

TEST(QuotaLinesTest, ALineThatNobodyOfTheTreeDefinesIsUnlimited) {
  QuotaTree tree = Tree({{"here", "", {{"h200", Limits(1)}}},
                         {"there", "", {{"l4", Limits(1)}}},
                         {"child", "there", {}}});
  const QuotaId here = tree.Find("here");
  const LineId l4 = tree.FindLine("l4");
  EXPECT_EQ(tree.Check(here, l4, Gpus(1000)).refusal, QuotaRefusal::kNone);
  EXPECT_FALSE(tree.Check(here, l4, Gpus(1000)).borrows);
  EXPECT_EQ(tree.Available(here, l4), ChargeLimit());
  EXPECT_EQ(tree.Nominal(here, l4), ChargeLimit());
  EXPECT_EQ(tree.Nominal(here, kNoLine), ChargeLimit());
  // Nobody can be over what has no bound.
  tree.Add(here, l4, Gpus(7));
  tree.Add(here, kNoLine, Gpus(7));
  for (const LineId line : {l4, kNoLine}) {
    EXPECT_FALSE(tree.Limits(here, line));
    EXPECT_EQ(tree.Borrowed(here, line), Charge{});
    EXPECT_TRUE(tree.Borrowers(here, line).empty());
  }
  EXPECT_EQ(tree.Used(here, l4), Gpus(7));
  EXPECT_EQ(tree.Used(here, kNoLine), Charge{});
  // In the other tree it is limited, also for who has no line of his own.
  EXPECT_EQ(tree.Check(tree.Find("child"), l4, Gpus(2)).refusal, QuotaRefusal::kExceedsMax);
  EXPECT_TRUE(tree.Check(tree.Find("child"), l4, Gpus(1)).borrows);
  EXPECT_TRUE(tree.View(tree.Find("child")).empty());
}

TEST(QuotaLinesTest, GpusOfAPoolCountOnTheMostExactLineOfTheirTree) {
  const QuotaTree tree = Tree({{"model", "", {{"h200", Limits(1)}}},
                               {"pool", "", {{"any@spot", Limits(1)}, {"h200", Limits(1)}}},
                               {"both", "", {{"any@spot", Limits(1)}, {"h200@spot", Limits(1)}}},
                               {"child", "both", {{"h200", Limits(1)}}},
                               {"none", "", {{"any", Limits(1)}}}});
  const struct {
    const char* quota;
    const char* charged;
    const char* line;
  } cases[] = {
      {"model", "h200", "h200"},        {"model", "h200@spot", "h200"},
      {"model", "h200@other", "h200"},  {"pool", "h200@spot", "any@spot"},
      {"pool", "l4@spot", "any@spot"},  {"pool", "h200@other", "h200"},
      {"pool", "h200", "h200"},         {"both", "h200@spot", "h200@spot"},
      {"both", "l4@spot", "any@spot"},  {"child", "h200@spot", "h200@spot"},
      {"child", "l4@spot", "any@spot"}, {"child", "h200@other", "h200"},
      {"none", "h200@spot", "h200"},
  };
  for (const auto& each : cases) {
    const LineId line = tree.LineOf(tree.Find(each.quota), each.charged);
    ASSERT_NE(line, kNoLine) << each.charged;
    EXPECT_EQ(tree.line_name(line), each.line) << each.quota << " " << each.charged;
  }
  EXPECT_EQ(tree.LineOf(tree.Find("model"), "l4@spot"), kNoLine);
  EXPECT_EQ(tree.LineOf(kNoQuota, "h200@spot"), tree.FindLine("h200"));
}

// An `any` line holds wherever the GPUs are, and is implied by all lines.
TEST(QuotaLinesTest, LinesOfPoolsAreWithinAny) {
  QuotaTree tree = Tree({{"org", "", {{"any", Limits(3)}}},
                         {"team", "org", {{"h200", Limits(1)}, {"h200@spot", Limits(2)}}}});
  const QuotaId team = tree.Find("team");
  EXPECT_EQ(tree.Nominal(team, kAnyLine), Gpus(3));
  const LineId spot = tree.LineOf(team, "h200@spot");
  EXPECT_FALSE(tree.Check(team, spot, Gpus(2)).borrows);
  tree.Add(team, spot, Gpus(2));
  EXPECT_EQ(tree.Used(team, spot), Gpus(2));
  EXPECT_EQ(tree.Used(team, tree.FindLine("h200")), Charge{});
  EXPECT_EQ(tree.Used(team, kAnyLine), Gpus(2));
  EXPECT_EQ(tree.Check(team, spot, Gpus(1)).refusal, QuotaRefusal::kWaiting);
  EXPECT_EQ(tree.Check(team, tree.LineOf(team, "h200"), Gpus(1)).refusal, QuotaRefusal::kNone);
}

TEST(QuotaLinesTest, BorrowersAreThoseOfTheirOwnTree) {
  QuotaTree tree = Tree({{"here", "", {{"h200", Limits(4)}}},
                         {"idle", "here", {{"h200", Limits(2)}}},
                         {"over", "here", {{"h200", Limits(1)}}},
                         {"there", "", {{"h200", Limits(4)}}},
                         {"far", "there", {{"h200", Limits(1)}}}});
  const LineId h200 = tree.FindLine("h200");
  tree.Add(tree.Find("over"), h200, Gpus(2));
  tree.Add(tree.Find("far"), h200, Gpus(4));
  EXPECT_THAT(tree.Borrowers(tree.Find("here"), h200),
              ElementsAre(Pair(tree.Find("over"), Gpus(1))));
  EXPECT_THAT(tree.Borrowers(tree.Find("there"), h200),
              ElementsAre(Pair(tree.Find("far"), Gpus(3))));
}

// A pod that names memory alone is charged in one dimension, and its team sees the line all the
// same.
TEST(QuotaLinesTest, MemoryAloneShowsTheLineItIsChargedTo) {
  QuotaTree tree = Tree({{"org", "", {{"h200", Limits(1)}}}, {"team", "org", {}}});
  const QuotaId team = tree.Find("team");
  EXPECT_TRUE(tree.View(team).empty());
  tree.Add(team, tree.FindLine("h200"), {0, 1000});
  ASSERT_EQ(tree.View(team).size(), 1U);
  EXPECT_EQ(tree.View(team)[0].name, "h200");
  EXPECT_EQ(tree.View(team)[0].used, (Charge{0, 1000}));
}

}  // namespace THIS_FILE
}  // namespace tranche
