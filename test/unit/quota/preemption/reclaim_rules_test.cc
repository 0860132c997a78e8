#include "quota/preemption/reclaim_rules.h"

#include "test/unit/quota/preemption/reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using ReclaimRulesTest = ReclaimTest;

// The quota model's tree of 24 H200.
std::vector<QuotaNode> Org() {
  return {Quota("org", "", 2), Quota("research", "org", 0, 4), Quota("a", "research", 8, 4, 4),
          Quota("b", "research", 4), Quota("prod", "org", 10, 0, 6)};
}

TEST_F(ReclaimRulesTest, ProdTakesBackExactlyTwoAndFromBAlone) {
  Cluster(Org(), {{"a-1", "a", 4, 2, 0},
                  {"a-2", "a", 4, 2, 0},
                  {"b-1", "b", 4, 2, 0},
                  {"b-2", "b", 2, 2, 1},
                  {"b-3", "b", 2, 2, 9}});
  Wants("prod", 10, 3, {10});
  EXPECT_EQ(Planned(), "R1 n0: b-2");  // what a uses is its nominal
  EXPECT_EQ(Plan().plan->cost.pods, 1);
}

TEST_F(ReclaimRulesTest, GangsLargerThanNominalAreNotSwapped) {
  Cluster({Quota("org", "", 0), Quota("a", "org", 3), Quota("b", "org", 3)}, {{"a-1", "a", 4}});
  Wants("b", 4, 2, {4});
  EXPECT_EQ(Planned(), "impossible");
  Wants("b", 3, 2, {4});
  EXPECT_EQ(Planned(), "R1 n0: a-1");
}

TEST_F(ReclaimRulesTest, WhoeverIsMarkedInQuotaElsewhereStays) {
  Cluster({Quota("org", "", 0), Quota("a", "org", 4), Quota("b", "org", 4)},
          {{"a-1", "a", 4, 2, 0}, {"a-2", "a", 1, 2, 9}, {"b-1", "b", 3}});
  Wants("b", 1, 2, {4});
  EXPECT_EQ(Planned(), "R1 n0: a-2");
}

TEST_F(ReclaimRulesTest, DevicesThatBorrowersHoldAreReclaimedThoughQuotaHasRoom) {
  const std::vector<QuotaNode> quotas = {Quota("org", "", 10), Quota("a", "org", 2),
                                         Quota("b", "org", 4)};
  Cluster(quotas, {{"a-1", "a", 2, 2, 1, {0}}, {"a-2", "a", 2, 2, 1, {1}}, {"a-3", "a", 2}});
  Wants("b", 4, 2, {2, 2});
  EXPECT_EQ(Planned(), "R1 n1: a-2");  // a-1 is a's nominal
}

TEST_F(ReclaimRulesTest, ABranchGivesOnlyWhileItIsOverNominal) {
  Cluster({Quota("org", "", 2), Quota("a", "org", 2), Quota("b", "org", 4)},
          {{"a-1", "a", 1, 2, 1, {0}}, {"a-2", "a", 1, 2, 1, {0}}, {"a-3", "a", 1, 2, 1, {0}}});
  Wants("b", 4, 2, {2});
  // As a demoted leaf is marked: all of it is borrowed, one GPU is over nominal.
  for (VictimUnit& unit : problem_.units) unit.marks = {QuotaState::kBorrowed, false, false};
  EXPECT_EQ(Planned(), "impossible");
  Wants("b", 4, 2, {3});
  EXPECT_EQ(Planned(), "R1 n0: a-3");  // the newest
}

TEST_F(ReclaimRulesTest, ScavengersAlwaysCountAsOverNominal) {
  Cluster({Quota("org", "", 0), Quota("a", "org", 4), Quota("b", "org", 4)},
          {{"a-1", "a", 1, 0, 1, {0}}, {"a-2", "a", 1, 1, 1, {0}}});
  Wants("b", 1, 1, {0});
  EXPECT_EQ(Planned(), "R1 n0: a-1");
  Wants("b", 1, 0, {0});
  EXPECT_EQ(Planned(), "impossible");  // who scavenges is entitled to nothing
}

TEST_F(ReclaimRulesTest, NearestCommonAncestorGoesBeforeCost) {
  const std::vector<QuotaNode> quotas = {Quota("org", "", 0), Quota("research", "org", 0),
                                         Quota("a", "research", 4), Quota("b", "research", 2),
                                         Quota("prod", "org", 2)};
  Cluster(quotas, {{"b-1", "b", 2},
                   {"b-2", "b", 2, 2, 90},
                   {"prod-1", "prod", 2},
                   {"prod-2", "prod", 2, 1, 1}});
  Wants("a", 2, 2, {8});
  EXPECT_EQ(Planned(), "R1 n0: b-2");
  Wants("a", 4, 2, {8});
  EXPECT_EQ(Planned(), "R1 n0: b-2 prod-2");  // research is at nominal once b-2 is gone
}

TEST_F(ReclaimRulesTest, FartherVictimsWaitUntilTheWholeBranchIsAtNominal) {
  const std::vector<QuotaNode> quotas = {Quota("org", "", 0), Quota("research", "org", 0),
                                         Quota("a", "research", 4), Quota("b", "research", 2),
                                         Quota("prod", "org", 4)};
  Cluster(quotas,
          {{"b-1", "b", 2}, {"b-2", "b", 2}, {"prod-1", "prod", 4}, {"prod-2", "prod", 2, 2, 1}});
  Wants("a", 4, 2, {8});
  ReclaimRules rules(problem_, nodes_);
  const int b_2 = Position("b-2");
  const int prod_2 = Position("prod-2");
  const std::vector<int> both = {std::min(b_2, prod_2), std::max(b_2, prod_2)};
  const ReclaimRules::Step far{ReclaimRule::kR1, false, 2};
  EXPECT_FALSE(rules.Permits(far, 0, std::vector<int>{prod_2}));
  EXPECT_TRUE(rules.Permits(far, 0, both));
  EXPECT_FALSE(rules.Permits({ReclaimRule::kR1, false, 1}, 0, both));
  EXPECT_TRUE(rules.Admits(0, both));
  EXPECT_FALSE(rules.Admits(0, std::vector<int>{b_2}));
}

TEST_F(ReclaimRulesTest, WithinATeamRankDecides) {
  const std::vector<QuotaNode> quotas = {Quota("org", "", 2), Quota("a", "org", 4)};
  const std::vector<Work> works = {
      {"a-1", "a", 2, 1, 1, {0}}, {"a-2", "a", 2, 2, 1, {0}}, {"a-3", "a", 2, 1, 1, {0}}};
  Cluster(quotas, works);
  Wants("a", 2, 3, {0});
  EXPECT_EQ(Planned(), "R2a n0: a-3");  // of the lowest rank, borrowed rather than in quota
  Unit("a-3").own_rank_protected = true;
  EXPECT_EQ(Planned(), "R2a n0: a-1");
  Unit("a-1").own_rank_protected = true;
  EXPECT_EQ(Planned(), "R2a n0: a-2");
  problem_.evictions_left.assign(tree_.size(), 0);
  EXPECT_EQ(Planned(), "impossible");
}

TEST_F(ReclaimRulesTest, BorrowingWorkTakesOnlyFromBorrowersOfItsTeam) {
  const std::vector<QuotaNode> quotas = {Quota("org", "", 8), Quota("a", "org", 2)};
  Cluster(quotas, {{"a-1", "a", 2, 1, 0, {0}}, {"a-2", "a", 2, 1, 9, {0}}, {"a-3", "a", 2, 2}});
  Wants("a", 4, 3, {2});
  // a-3 ranks above the others and is what fills nominal.
  EXPECT_EQ(Planned(), "R2b n0: a-1");
  Unit("a-1").marks = {};
  EXPECT_EQ(Planned(), "R2b n0: a-2");
  Unit("a-2").own_rank_protected = true;  // only from its own team's work in quota
  EXPECT_EQ(Planned(), "R2b n0: a-2");
  Unit("a-2").rank = 3;
  EXPECT_EQ(Planned(), "impossible");
}

TEST_F(ReclaimRulesTest, ForeignBorrowersAndOwnLowerRanksTogether) {
  Cluster({Quota("org", "", 0), Quota("a", "org", 4), Quota("b", "org", 2)},
          {{"a-1", "a", 2, 1, 1, {0}},
           {"a-2", "a", 1, 2},
           {"b-1", "b", 2, 3},
           {"b-2", "b", 1, 3, 1, {0}}});
  Wants("a", 2, 3, {0});
  EXPECT_EQ(Planned(), "R2a n0: a-1");
  // Without a-1 it is entitled, and without b-2 neither quota nor the node has room.
  Wants("a", 3, 3, {0});
  EXPECT_EQ(Planned(), "R1 n0: a-1 b-2");
  problem_.evictions_left.assign(tree_.size(), 0);  // a-1 counts, b-2 would not
  EXPECT_EQ(Planned(), "impossible");
}

TEST_F(ReclaimRulesTest, AcrossTeamsOnlyWhereAnAncestorAllowsIt) {
  Cluster({Quota("org", "", 4), Quota("a", "org", 0), Quota("b", "org", 0)},
          {{"b-1", "b", 2, 1, 1, {0}}, {"b-2", "b", 2, 3, 1, {0}}});
  const struct {
    std::optional<int> min_rank;
    int rank;
    const char* planned;
  } kRows[] = {
      {std::nullopt, 3, "impossible"},
      {4, 3, "impossible"},
      {3, 3, "R3 n0: b-1"},
      {1, 1, "impossible"},
      {0, 2, "R3 n0: b-1"},
  };
  for (const auto& row : kRows) {
    Wants("a", 2, row.rank, {0});
    problem_.cross_leaf_min_rank.assign(tree_.size(), row.min_rank);
    EXPECT_EQ(Planned(), row.planned) << row.rank;
  }
}

TEST_F(ReclaimRulesTest, FairShareStopsShortOfAnotherSwap) {
  const struct {
    int64_t a, b;  // borrowed, in pods of one GPU
    int64_t weight_a;
    const char* planned;
  } kRows[] = {
      {0, 4, 1, "R5 n0: b-4"}, {1, 4, 1, "R5 n0: b-4"},  // 2 <= 10/11 of 3
      {1, 3, 1, "impossible"},                           // 2 would equal 2
      {2, 4, 1, "impossible"}, {2, 4, 2, "R5 n0: b-4"},
  };
  for (const auto& row : kRows) {
    std::vector<Work> works;
    for (int64_t i = 1; i <= row.a; ++i) works.push_back({"a-" + std::to_string(i), "a", 1, 1});
    for (int64_t i = 1; i <= row.b; ++i) {
      works.push_back({"b-" + std::to_string(i), "b", 1, 1, 1, {0}});
    }
    Cluster({Quota("org", "", 20), Quota("a", "org", 0), Quota("b", "org", 0)}, works);
    Wants("a", 1, 1, {0});
    problem_.fair_share.assign(tree_.size(), 1);
    problem_.weights.assign(tree_.size(), 1);
    problem_.weights[static_cast<std::size_t>(tree_.Find("a"))] = row.weight_a;
    EXPECT_EQ(Planned(), row.planned) << row.a << " and " << row.b;
  }
}

TEST_F(ReclaimRulesTest, EntitledThroughAnyAloneItLeavesModelQuotaInPeace) {
  const LineLimits four{.nominal = Gpus(4)};
  Cluster(
      {{"org", "", {}}, {"a", "org", {{"any", four}}}, {"b", "org", {{"any", {}}, {"h200", four}}}},
      {{"b-1", "b", 4, 2, 0}, {"b-2", "b", 2, 2, 9}});
  Wants("a", 4, 2, {8});
  // By h200 both of b's are over; nothing of a's is promised as h200.
  EXPECT_FALSE(Unit("b-1").marks.in_any);
  EXPECT_TRUE(Unit("b-1").marks.in_model);
  ReclaimRules rules(problem_, nodes_);
  const ReclaimRules::Step step{ReclaimRule::kR1, false, 1};
  EXPECT_FALSE(rules.Permits(step, 0, std::vector<int>{Position("b-1")}));
  EXPECT_TRUE(rules.Permits(step, 0, std::vector<int>{Position("b-2")}));
}

TEST_F(ReclaimRulesTest, SparePodsAndTheWholeGangDoNotGoTogether) {
  Cluster({Quota("org", "", 0), Quota("a", "org", 0), Quota("b", "org", 9)},
          {{"spare-1", "a", 1}, {"spare-2", "a", 1}, {"whole", "a", 4}});
  Wants("b", 3, 2, {8});
  problem_.spare_left = {1};
  Unit("spare-1").spare_of = Unit("spare-2").spare_of = Unit("whole").whole_of = 0;
  ReclaimRules rules(problem_, nodes_);
  const ReclaimRules::Step step{ReclaimRule::kR1, false, 1};
  const struct {
    std::vector<int> victims;
    bool permitted;
  } kRows[] = {{{0}, true}, {{1}, true}, {{2}, true}, {{0, 1}, false}, {{0, 2}, false}};
  Wants("b", 9, 2, {9});
  for (const auto& row : kRows) {
    EXPECT_EQ(rules.Permits(step, 0, row.victims), row.permitted) << row.victims.front();
  }
}

// Two nodes of eight: b owns eight, uses sixteen, and has four of its own and four borrowed on
// each.
std::vector<Work> Interleaved(int rank_of_the_old) {
  return {{"b-old-0", "b", 4, rank_of_the_old, 1, {0}},
          {"b-old-1", "b", 4, rank_of_the_old, 1, {1}},
          {"b-new-0", "b", 4, 2, 1, {0}},
          {"b-new-1", "b", 4, 2, 1, {1}}};
}

TEST_F(ReclaimRulesTest, WhichOfABorrowersWorkIsBorrowedIsChosenSoThatGeometryIsMade) {
  Cluster({Quota("org", "", 0), Quota("a", "org", 8), Quota("b", "org", 8)}, Interleaved(2));
  Wants("a", 8, 2, {0, 0});
  EXPECT_EQ(Planned(), "impossible");
  MayChoose();
  EXPECT_EQ(Planned(), "R1 n1: b-new-1 b-old-1");
  EXPECT_TRUE(Plan().plan->optimal);
  // Where borrowed work alone makes room, nobody chooses.
  Wants("a", 4, 2, {0, 0});
  EXPECT_EQ(Planned(), "R1 n1: b-new-1");
}

TEST_F(ReclaimRulesTest, AHigherClassInQuotaIsNotChosenForALowerOne) {
  Cluster({Quota("org", "", 0), Quota("a", "org", 8), Quota("b", "org", 8)}, Interleaved(3));
  Wants("a", 8, 2, {0, 0});
  MayChoose();
  EXPECT_EQ(Planned(), "impossible");
  Wants("a", 8, 3, {0, 0});
  EXPECT_EQ(Planned(), "R1 n1: b-new-1 b-old-1");
}

TEST_F(ReclaimRulesTest, WhoIsChosenFromKeepsAsMuchInQuotaAsItHad) {
  // Of ten GPUs two are borrowed: without one of the fours six would be left of eight.
  Cluster({Quota("org", "", 0), Quota("a", "org", 8), Quota("b", "org", 8)},
          {{"b-1", "b", 4, 2, 1, {0}}, {"b-2", "b", 4, 2, 1, {1}}, {"b-3", "b", 2}});
  Wants("a", 4, 2, {0, 0});
  MayChoose();
  EXPECT_EQ(Planned(), "impossible");
  // A four more that is borrowed takes its place.
  Cluster({Quota("org", "", 0), Quota("a", "org", 8), Quota("b", "org", 8)},
          {{"b-1", "b", 4, 2, 1, {0}}, {"b-2", "b", 4, 2, 1, {1}}, {"b-3", "b", 4}});
  Wants("a", 4, 2, {0, 0});
  MayChoose();
  EXPECT_EQ(Planned(), "R1 n1: b-2");
}

// Of ten, "old" and "small" fill seven, and "low" finds no room beside them. Without "old" it does,
// unless "mid" stays, which another plan is still to evict.
TEST_F(ReclaimRulesTest, NobodyIsChosenOnTheWordThatAnotherWillGo) {
  const auto is_chosen_with = [this](int64_t mid, int64_t promised) {
    Cluster({Quota("org", "", 0), Quota("a", "org", 10), Quota("b", "org", 10)},
            {{"b-old", "b", 5, 2, 1, {0}}, {"b-small", "b", 2}, {"b-low", "b", 5, 1}});
    Wants("a", 5, 2, {0});
    MayChoose();
    const LineId line = LineOfWork();
    const MarkUnit unit{"b-mid", true, 2, Instant(Millis(9)), {{line, Gpus(mid)}}};
    problem_.held.push_back({tree_.Find("b"), unit, {Gpus(promised)}});
    return Planned() == "R1 n0: b-old";
  };
  EXPECT_TRUE(is_chosen_with(0, 0));
  EXPECT_FALSE(is_chosen_with(4, 4));
  EXPECT_FALSE(is_chosen_with(4, 0));
  EXPECT_TRUE(is_chosen_with(5, 5)) << "where it stays it takes the place of the one that goes";
}

TEST_F(ReclaimRulesTest, BorrowedWorkAndWorkOfNoTeamMakeRoomTogether) {
  Cluster({Quota("org", "", 0), Quota("a", "org", 8), Quota("b", "org", 0)},
          {{"b-1", "b", 4, 2, 1, {0}}, {"x-1", "", 4, 1, 1, {0}}, {"x-2", "", 2, 2, 1, {0}}});
  Wants("a", 8, 2, {0});
  EXPECT_EQ(Planned(), "R1 n0: b-1 x-1");
  // Of the same rank, what has no team stays.
  Wants("a", 8, 2, {-1});
  EXPECT_EQ(Planned(), "impossible");
  // As its own lower rank does.
  Cluster({Quota("org", "", 8), Quota("a", "org", 8)},
          {{"a-1", "a", 4, 1, 1, {0}}, {"x-1", "", 4, 1, 1, {0}}});
  Wants("a", 8, 2, {0});
  EXPECT_EQ(Planned(), "R2a n0: a-1 x-1");
}

}  // namespace THIS_FILE
}  // namespace tranche
