#include "quota/tree/quota_tree.h"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "test/unit/quota/tree/trees.h"

namespace tranche {
namespace THIS_FILE {

using test::Gpus;
using test::Limits;
using test::Tree;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// In GPUs, for reading; both dimensions must agree.
int64_t InGpus(const ChargeLimit& limit) {
  EXPECT_EQ(limit.compute, limit.memory);
  const int64_t quanta = limit.compute.amount().value();
  EXPECT_EQ(quanta % kQuantaPerGpu, 0);
  return quanta / kQuantaPerGpu;
}

using Lines = std::vector<std::pair<std::string, LineLimits>>;

// The quota model's tree of 24 H200.
std::vector<QuotaNode> OrgNodes() {
  return {{"org", "", {{"h200", Limits(2)}}},
          {"research", "org", {{"h200", Limits(0, 4)}}},
          {"a", "research", {{"h200", Limits(8, 4, 4)}}},
          {"b", "research", {{"h200", Limits(4)}}},
          {"prod", "org", {{"h200", Limits(10, 0, 6)}}}};
}

// A group owns nothing itself and lends what its teams do: its limit is over its own nominal.
TEST(QuotaTree, AGroupLendsOfWhatItsTeamsExpose) {
  struct Row {
    int64_t lend;
    int64_t for_c;
  };
  for (const Row& row : {Row{0, 2}, Row{3, 5}, Row{8, 8}}) {
    const QuotaTree tree = Tree({{"org", "", {{"h200", Limits(0)}}},
                                 {"group", "org", {{"h200", Limits(0, 0, row.lend)}}},
                                 {"a", "group", {{"h200", Limits(4)}}},
                                 {"b", "group", {{"h200", Limits(4, std::nullopt, 2)}}},
                                 {"c", "org", {{"h200", Limits(2)}}}});
    EXPECT_EQ(InGpus(tree.Available(tree.Find("c"), tree.FindLine("h200"))), row.for_c) << row.lend;
    EXPECT_EQ(InGpus(tree.Available(tree.Find("b"), tree.FindLine("h200"))), 8) << row.lend;
  }
}

class OrgTest : public testing::Test {
 protected:
  void Use(int64_t a, int64_t b, int64_t prod) {
    for (const auto& [name, gpus] : {std::pair("a", a), {"b", b}, {"prod", prod}}) {
      tree_.Add(tree_.Find(name), h200_, Gpus(gpus));
    }
  }
  int64_t Available(const char* name) const {
    return InGpus(tree_.Available(tree_.Find(name), h200_));
  }
  QuotaLineView Line(const char* name) const { return tree_.View(tree_.Find(name)).front(); }
  QuotaVerdict Check(const char* name, int64_t gpus) const {
    return tree_.Check(tree_.Find(name), h200_, Gpus(gpus));
  }
  std::string NameOf(QuotaId id) const { return id == kNoQuota ? "nobody" : tree_.name(id); }

  QuotaTree tree_ = Tree(OrgNodes());
  LineId h200_ = tree_.FindLine("h200");
};

TEST_F(OrgTest, EveryRowOfTheWorkedTable) {
  const struct {
    int64_t a, b, prod;
    int64_t available_a, available_b, available_prod, available_org;
  } kRows[] = {
      {0, 0, 0, 12, 12, 10, 16}, {8, 4, 0, 4, 4, 10, 8},
      {8, 8, 0, 0, 0, 8, 4},     {8, 8, 10, -2, -2, -2, -2},  // forced: what R1 must take back
      {8, 6, 10, 0, 0, 0, 0},
  };
  for (const auto& row : kRows) {
    tree_ = Tree(OrgNodes());
    Use(row.a, row.b, row.prod);
    EXPECT_EQ(Available("a"), row.available_a) << row.a << row.b << row.prod;
    EXPECT_EQ(Available("b"), row.available_b) << row.a << row.b << row.prod;
    EXPECT_EQ(Available("prod"), row.available_prod) << row.a << row.b << row.prod;
    EXPECT_EQ(Available("org"), row.available_org) << row.a << row.b << row.prod;
  }
}

TEST_F(OrgTest, WhatFitsIsExactlyWhatIsAvailable) {
  const struct {
    int64_t a, b, prod;
    const char* who;
    int64_t wants;
    QuotaRefusal refusal;
    int64_t short_by;
    const char* binding;
    bool borrows;
  } kRows[] = {
      {0, 0, 0, "a", 8, QuotaRefusal::kNone, 0, "nobody", false},
      {0, 0, 0, "a", 12, QuotaRefusal::kNone, 0, "nobody", true},
      {0, 0, 0, "a", 13, QuotaRefusal::kExceedsMax, 1, "nobody", false},
      {0, 0, 0, "b", 12, QuotaRefusal::kNone, 0, "nobody", true},
      {0, 0, 0, "prod", 11, QuotaRefusal::kExceedsMax, 1, "nobody", false},
      {8, 4, 0, "b", 4, QuotaRefusal::kNone, 0, "nobody", true},
      {8, 4, 0, "b", 5, QuotaRefusal::kBorrowLimit, 1, "research", false},
      {8, 8, 0, "b", 1, QuotaRefusal::kBorrowLimit, 1, "research", false},
      {10, 0, 0, "a", 3, QuotaRefusal::kBorrowLimit, 1, "a", false},
      {0, 8, 0, "a", 9, QuotaRefusal::kBorrowLimit, 1, "research", false},
      {8, 8, 0, "prod", 8, QuotaRefusal::kNone, 0, "nobody", false},
      {8, 8, 0, "prod", 10, QuotaRefusal::kWaiting, 2, "nobody", false},
      {8, 6, 10, "b", 1, QuotaRefusal::kWaiting, 1, "nobody", false},
      {0, 0, 0, "a", 0, QuotaRefusal::kNone, 0, "nobody", false},
      {8, 8, 10, "a", 0, QuotaRefusal::kNone, 0, "nobody", false},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(testing::Message() << row.who << " wants " << row.wants);
    tree_ = Tree(OrgNodes());
    Use(row.a, row.b, row.prod);
    const QuotaVerdict verdict = Check(row.who, row.wants);
    EXPECT_EQ(verdict.refusal, row.refusal);
    EXPECT_EQ(verdict.short_by, row.short_by * kQuantaPerGpu);
    EXPECT_EQ(NameOf(verdict.binding), row.binding);
    EXPECT_EQ(verdict.borrows, row.borrows);
  }
}

TEST_F(OrgTest, OneQuantumTooManyIsRefused) {
  Use(8, 4, 0);
  const QuotaId b = tree_.Find("b");
  EXPECT_EQ(tree_.Check(b, h200_, Gpus(4)).refusal, QuotaRefusal::kNone);
  const QuotaVerdict verdict = tree_.Check(b, h200_, {4 * kQuantaPerGpu, 4 * kQuantaPerGpu + 1});
  EXPECT_EQ(verdict.refusal, QuotaRefusal::kBorrowLimit);
  EXPECT_EQ(verdict.dimension, Dimension::kMemory);
  EXPECT_EQ(verdict.line, h200_);
  EXPECT_EQ(verdict.short_by, 1);
}

TEST_F(OrgTest, WhoLendsAndWhoBorrows) {
  const struct {
    int64_t a, b, prod;
    const char* name;
    int64_t used, borrowed, lent;
  } kRows[] = {
      {8, 8, 0, "b", 8, 4, 0},
      {8, 8, 0, "research", 16, 4, 0},
      {8, 8, 0, "prod", 0, 0, 2},  // the pool of org serves the other two
      {8, 8, 0, "org", 16, 0, 0},
      {8, 6, 10, "prod", 10, 0, 0},
      {8, 6, 10, "research", 14, 2, 0},
      {2, 8, 0, "a", 2, 0, 4},  // all it exposes; its own half stays
      {2, 8, 0, "research", 10, 0, 0},
      {10, 2, 0, "b", 2, 0, 2},
      {10, 4, 0, "research", 14, 2, 0},
      {8, 8, 10, "org", 26, 2, 0},  // more than there is
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(testing::Message() << row.name << " at " << row.a << row.b << row.prod);
    tree_ = Tree(OrgNodes());
    Use(row.a, row.b, row.prod);
    const QuotaLineView line = Line(row.name);
    EXPECT_EQ(line.name, "h200");
    EXPECT_EQ(InGpus(line.used), row.used);
    EXPECT_EQ(InGpus(line.borrowed), row.borrowed);
    EXPECT_EQ(InGpus(line.lent), row.lent);
  }
}

TEST_F(OrgTest, AViewHasWhatPeopleAskFor) {
  Use(8, 8, 0);
  const QuotaLineView line = Line("prod");
  EXPECT_EQ(InGpus(line.nominal), 10);
  EXPECT_EQ(InGpus(line.available), 8);
  EXPECT_EQ(InGpus(line.reach), 10);
  EXPECT_EQ(InGpus(Line("b").reach), 12);
  EXPECT_EQ(tree_.View(tree_.Find("org")).size(), 1U) << "nobody has an `any` line";
}

TEST_F(OrgTest, BorrowersComeMostFirst) {
  Use(9, 8, 3);
  EXPECT_THAT(tree_.Borrowers(tree_.Find("org"), h200_),
              ElementsAre(Pair(tree_.Find("b"), Gpus(4)), Pair(tree_.Find("a"), Gpus(1))));
}

TEST_F(OrgTest, RemovingWhatWasAddedRestoresEverything) {
  Use(7, 3, 9);
  const auto numbers = [&] {
    std::vector<ChargeLimit> all;
    for (QuotaId id{0}; id < tree_.size(); ++id) {
      for (const LineId line : {kAnyLine, h200_}) {
        all.push_back(tree_.Used(id, line));
        all.push_back(tree_.Available(id, line));
      }
    }
    return all;
  };
  const std::vector<ChargeLimit> before = numbers();
  const Charge odd{12'345'678'901, 7};
  tree_.Add(tree_.Find("a"), h200_, odd);
  tree_.Add(tree_.Find("b"), kNoLine, odd);
  EXPECT_NE(numbers(), before);
  tree_.Remove(tree_.Find("a"), h200_, odd);
  tree_.Remove(tree_.Find("b"), kNoLine, odd);
  EXPECT_EQ(numbers(), before);
}

TEST(QuotaTreeTest, TheLenderThatHoldsBackIsNamed) {
  QuotaTree tree = Tree({{"root", "", {}},
                         {"small", "root", {{"h200", Limits(2, std::nullopt, 1)}}},
                         {"large", "root", {{"h200", Limits(4, std::nullopt, 1)}}},
                         {"team", "root", {{"h200", Limits(4)}}}});
  const LineId h200 = tree.FindLine("h200");
  tree.Add(tree.Find("team"), h200, Gpus(5));
  const QuotaVerdict verdict = tree.Check(tree.Find("team"), h200, Gpus(2));
  EXPECT_EQ(verdict.refusal, QuotaRefusal::kLenderLimit);
  EXPECT_EQ(verdict.binding, tree.Find("large"));
  EXPECT_EQ(verdict.short_by, kQuantaPerGpu);
  EXPECT_EQ(tree.Check(tree.Find("team"), h200, Gpus(6)).refusal, QuotaRefusal::kWaiting);
}

// What the team's own group keeps for itself is the team's to use, and other trees lend nothing.
TEST(QuotaTreeTest, NeitherItsOwnGroupNorAnotherTreeHoldsBackFromATeam) {
  constexpr int64_t kLendsNothing = 0;
  QuotaTree tree =
      Tree({{"elsewhere", "", {{"h200", Limits(9)}}},
            {"elsewhere-team", "elsewhere", {{"h200", Limits(9, std::nullopt, kLendsNothing)}}},
            {"org", "", {}},
            {"group", "org", {{"h200", Limits(5, std::nullopt, kLendsNothing)}}},
            {"team", "group", {{"h200", Limits(1, std::nullopt, kLendsNothing)}}},
            {"lender", "org", {{"h200", Limits(4, std::nullopt, 1)}}},
            {"borrower", "org", {{"h200", Limits(0)}}}});
  const LineId h200 = tree.FindLine("h200");
  tree.Add(tree.Find("borrower"), h200, Gpus(1));
  EXPECT_EQ(tree.Available(tree.Find("team"), h200), Gpus(6));
  const QuotaVerdict verdict = tree.Check(tree.Find("team"), h200, Gpus(7));
  EXPECT_EQ(verdict.refusal, QuotaRefusal::kLenderLimit);
  EXPECT_EQ(verdict.binding, tree.Find("lender"));
}

TEST(QuotaTreeTest, TenOfAnyKindAndFiveOfEachOfTwoModels) {
  QuotaTree tree = Tree({{"org", "", {}},
                         {"kinds", "org", {{"any", Limits(10, 0)}}},
                         {"models", "org", {{"a100", Limits(5, 0)}, {"v100", Limits(5, 0)}}}});
  const LineId a100 = tree.FindLine("a100");
  const LineId v100 = tree.FindLine("v100");
  const QuotaId kinds = tree.Find("kinds");
  const QuotaId models = tree.Find("models");

  // The team with models has both lines of its own and the sum of them as `any`.
  EXPECT_EQ(tree.Nominal(models, kAnyLine), Gpus(10));
  EXPECT_EQ(tree.Check(models, a100, Gpus(5)).refusal, QuotaRefusal::kNone);
  EXPECT_FALSE(tree.Check(models, a100, Gpus(5)).borrows);
  EXPECT_EQ(tree.Check(models, a100, Gpus(6)).refusal, QuotaRefusal::kExceedsMax);
  EXPECT_EQ(tree.Check(models, a100, Gpus(6)).line, a100);

  // The other team borrows every A100, and it may have no more than ten GPUs.
  const QuotaVerdict five = tree.Check(kinds, a100, Gpus(5));
  EXPECT_EQ(five.refusal, QuotaRefusal::kNone);
  EXPECT_TRUE(five.borrows);
  tree.Add(kinds, a100, Gpus(5));
  EXPECT_EQ(tree.Check(models, a100, Gpus(1)).refusal, QuotaRefusal::kWaiting);
  tree.Add(kinds, v100, Gpus(5));
  const QuotaVerdict eleventh = tree.Check(kinds, tree.FindLine("l4"), Gpus(1));
  EXPECT_EQ(eleventh.refusal, QuotaRefusal::kBorrowLimit);
  EXPECT_EQ(eleventh.line, kAnyLine);
  EXPECT_EQ(eleventh.binding, kinds);

  const std::vector<QuotaLineView> views = tree.View(models);
  ASSERT_EQ(views.size(), 3U);
  EXPECT_EQ(views[0].name, "a100");
  EXPECT_EQ(InGpus(views[0].lent), 5);
  EXPECT_EQ(InGpus(views[0].available), 0);
  EXPECT_EQ(views[1].name, "v100");
  EXPECT_EQ(views[2].name, "any");
  EXPECT_EQ(InGpus(views[2].available), 10);
}

TEST(QuotaTreeTest, GpuMemoryLimitsMemoryOnly) {
  LineLimits limits{{{}, 1000}, {{}, 0}, {{}, 400}};
  QuotaTree tree =
      Tree({{"org", "", {}}, {"a", "org", {{"h200", limits}}}, {"b", "org", {{"h200", limits}}}});
  const LineId h200 = tree.FindLine("h200");
  const QuotaId a = tree.Find("a");
  EXPECT_EQ(tree.Check(a, h200, {kQuantaPerGpu * 1000, 1000}).refusal, QuotaRefusal::kNone);
  EXPECT_FALSE(tree.Check(a, h200, {kQuantaPerGpu * 1000, 1000}).borrows);
  EXPECT_EQ(tree.Check(a, h200, {0, 1001}).refusal, QuotaRefusal::kExceedsMax);
  tree.Add(a, h200, {kQuantaPerGpu * 1000, 600});
  EXPECT_EQ(tree.Available(a, h200), ChargeLimit({}, 400));
  EXPECT_EQ(tree.Available(tree.Find("org"), h200), ChargeLimit({}, 800));
  const QuotaLineView line = tree.View(a).front();
  EXPECT_EQ(line.borrowed, Charge{});
  EXPECT_EQ(line.used, (Charge{kQuantaPerGpu * 1000, 600}));
}

TEST(QuotaTreeTest, ASuspendedLeafMayOnlyBorrowWhatItsParentWasGiven) {
  std::vector<QuotaNode> nodes = OrgNodes();
  nodes[2].suspended = true;  // a: 8, borrow 4, lend 4
  QuotaTree tree = Tree(nodes);
  const LineId h200 = tree.FindLine("h200");
  EXPECT_EQ(tree.Nominal(tree.Find("a"), h200), Gpus(0));
  EXPECT_EQ(tree.Nominal(tree.Find("research"), h200), Gpus(8));
  // Its borrow limit holds, its lend limit has nothing left to hold back.
  EXPECT_EQ(InGpus(tree.Available(tree.Find("a"), h200)), 4);
  EXPECT_TRUE(tree.Check(tree.Find("a"), h200, Gpus(1)).borrows);
  EXPECT_EQ(InGpus(tree.Available(tree.Find("b"), h200)), 16);
}

TEST(QuotaTreeTest, SuspensionTakesImpliedAnyAlongAndClimbsThroughSuspendedParents) {
  const QuotaTree tree = Tree({{"org", "", {{"any", Limits(1)}}},
                               {"mid", "org", {{"h200", Limits(2)}}, true},
                               {"leaf", "mid", {{"h200", Limits(3)}}, true}});
  for (const LineId line : {kAnyLine, tree.FindLine("h200")}) {
    EXPECT_EQ(tree.Nominal(tree.Find("leaf"), line), Gpus(0));
    EXPECT_EQ(tree.Nominal(tree.Find("mid"), line), Gpus(0));
  }
  EXPECT_EQ(tree.Nominal(tree.Find("org"), kAnyLine), Gpus(6));
  ASSERT_EQ(tree.View(tree.Find("org")).size(), 2U) << "the pool shows what it was given";
  EXPECT_EQ(tree.View(tree.Find("org")).front().name, "h200");
  EXPECT_EQ(tree.Nominal(tree.Find("org"), tree.FindLine("h200")), Gpus(5));
}

TEST(QuotaTreeTest, ASuspendedRootKeepsItsCapacity) {
  const QuotaTree tree = Tree({{"org", "", {{"h200", Limits(2)}}, true}});
  EXPECT_EQ(tree.Check(QuotaId{0}, tree.FindLine("h200"), Gpus(2)).refusal, QuotaRefusal::kNone);
  EXPECT_FALSE(tree.Check(QuotaId{0}, tree.FindLine("h200"), Gpus(2)).borrows);
}

TEST(QuotaTreeTest, AnInnerQuotaKeepsChargesFromWhenItWasALeaf) {
  QuotaTree tree =
      Tree({{"org", "", {{"h200", Limits(2)}}}, {"team", "org", {{"h200", Limits(3)}}}});
  const LineId h200 = tree.FindLine("h200");
  tree.Add(tree.Find("org"), h200, Gpus(3));
  EXPECT_EQ(InGpus(tree.Available(tree.Find("team"), h200)), 2);
  EXPECT_EQ(InGpus(tree.View(tree.Find("team")).front().lent), 1);
  EXPECT_EQ(InGpus(tree.Used(tree.Find("org"), h200)), 3);
}

TEST(QuotaTreeTest, LendersShareInProportionToWhatTheyDoNotUse) {
  const auto limits = [](int64_t quanta) { return Lines{{"h200", {.nominal = {quanta, quanta}}}}; };
  QuotaTree tree = Tree({{"org", "", {}},
                         {"team", "org", limits(0)},
                         {"a", "org", limits(3)},
                         {"b", "org", limits(3)},
                         {"c", "org", limits(1)}});
  const LineId h200 = tree.FindLine("h200");
  const auto lent = [&] {
    std::vector<int64_t> amounts;
    for (const char* name : {"a", "b", "c"}) {
      amounts.push_back(tree.View(tree.Find(name)).front().lent.compute);
    }
    return amounts;
  };
  tree.Add(tree.Find("team"), h200, {1, 1});
  EXPECT_THAT(lent(), ElementsAre(1, 0, 0)) << "3/7, 3/7 and 1/7: a tie, by name";
  tree.Add(tree.Find("team"), h200, {3, 3});
  EXPECT_THAT(lent(), ElementsAre(2, 2, 0)) << "12/7, 12/7 and 4/7";
  tree.Add(tree.Find("a"), h200, {3, 3});
  EXPECT_THAT(lent(), ElementsAre(0, 3, 1));
}

TEST(QuotaTreeTest, RefusalsOfSeveralLinesAreToldInTheirOrder) {
  // On the model line the team waits for its neighbour, on `any` it can never have so many.
  QuotaTree tree = Tree({{"org", "", {}},
                         {"team", "org", {{"any", Limits(2, 0)}, {"h200", Limits(1)}}},
                         {"other", "org", {{"any", Limits(9)}, {"h200", Limits(9)}}}});
  const LineId h200 = tree.FindLine("h200");
  tree.Add(tree.Find("other"), h200, Gpus(9));
  EXPECT_EQ(tree.Check(tree.Find("team"), h200, Gpus(2)).refusal, QuotaRefusal::kWaiting);
  const QuotaVerdict verdict = tree.Check(tree.Find("team"), h200, Gpus(3));
  EXPECT_EQ(verdict.refusal, QuotaRefusal::kExceedsMax);
  EXPECT_EQ(verdict.line, kAnyLine);
  EXPECT_EQ(verdict.dimension, Dimension::kCompute);
}

TEST(QuotaTreeTest, TreesThatAreNoneAreRefusedByName) {
  const struct {
    std::vector<QuotaNode> nodes;
    const char* error;
  } kCases[] = {
      {{{"a", "ghost", {}}}, "quota a: expected a parent that exists, found ghost"},
      {{{"a", "", {}}, {"b", "a", {}}, {"a", "b", {}}}, "quota a: expected each name once"},
      {{{"a", "a", {}}}, "quota a: expected parents that lead to a root, found a cycle"},
      {{{"z", "", {}}, {"b", "c", {}}, {"c", "b", {}}}, "quota b: "},
      {{{"a", "", {}}, {"b", "c", {}}, {"c", "b", {}}}, "quota b: "},
  };
  for (const auto& c : kCases) {
    const absl::StatusOr<QuotaTree> tree = QuotaTree::Build(c.nodes);
    ASSERT_FALSE(tree.ok()) << c.error;
    EXPECT_EQ(tree.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(tree.status().message()), HasSubstr(c.error));
  }
}

TEST(QuotaTreeTest, ATreeOfNoQuotasKnowsNobody) {
  const QuotaTree none;
  EXPECT_EQ(none.Find("a"), kNoQuota);
  EXPECT_EQ(none.FindLine("h200"), kNoLine);
  EXPECT_EQ(Tree({}).size(), 0U);
}

TEST(QuotaTreeTest, IdsAscendByNameAndLeadToTheRoot) {
  const QuotaTree tree = Tree(OrgNodes());
  ASSERT_EQ(tree.size(), 5U);
  for (QuotaId id{1}; id < 5; ++id) EXPECT_LT(tree.name(QuotaId(id - 1)), tree.name(id));
  EXPECT_EQ(tree.name(tree.parent(tree.Find("b"))), "research");
  EXPECT_EQ(tree.root(tree.Find("b")), tree.Find("org"));
  EXPECT_EQ(tree.root(tree.Find("org")), tree.Find("org"));
  EXPECT_EQ(tree.line_name(tree.FindLine("h200")), "h200");
  EXPECT_EQ(tree.Find("c"), kNoQuota);
}

TEST(QuotaTreeTest, AllViewsAtOnceAreTheViewsOfEach) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<QuotaNode> nodes;
    const int count = 2 + static_cast<int>(random() % 9);
    for (int i = 0; i < count; ++i) {
      QuotaNode& node = nodes.emplace_back();
      node.name = "q" + std::to_string(i);
      if (i > 0) node.parent = "q" + std::to_string(random() % static_cast<uint64_t>(i));
      LineLimits limits;
      const auto nominal = static_cast<int64_t>(random() % 9);
      limits.nominal = Charge{nominal, nominal};
      node.lines.emplace_back(random() % 3 == 0 ? "any" : "h100", limits);
    }
    absl::StatusOr<QuotaTree> tree = QuotaTree::Build(nodes);
    ASSERT_TRUE(tree.ok());
    for (int i = 0; i < 12; ++i) {
      const auto amount = static_cast<int64_t>(random() % 5);
      tree->Add(QuotaId{random() % static_cast<uint64_t>(count)}, tree->FindLine("h100"),
                {amount, amount / 2});
    }
    const std::vector<std::vector<QuotaLineView>> views = tree->Views();
    for (QuotaId id{0}; id < tree->size(); ++id) {
      const std::vector<QuotaLineView> alone = tree->View(id);
      ASSERT_EQ(views[id].size(), alone.size());
      int64_t borrowed = 0;
      for (std::size_t line = 0; line < alone.size(); ++line) {
        EXPECT_EQ(views[id][line].name, alone[line].name);
        EXPECT_EQ(views[id][line].lent, alone[line].lent);
        borrowed = std::max(borrowed, GpuEquivalents(alone[line].borrowed));
      }
      EXPECT_EQ(tree->MostBorrowed(id), borrowed);
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
