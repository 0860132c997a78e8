#include "test/unit/quota/preemption/reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

class ReclaimShrinkTest : public ReclaimTest {
 protected:
  std::string Shrunk(ShrinkTarget target) {
    plan_ = PlanShrink(problem_, tree_.Find("a"), target);
    std::set<std::string> keys;
    for (const int victim : plan_.victims) {
      keys.insert(problem_.units[static_cast<std::size_t>(victim)].key);
    }
    std::string told;
    for (const std::string& key : keys) told += (told.empty() ? "" : " ") + key;
    return told;
  }
  ShrinkPlan plan_;
};

TEST_F(ReclaimShrinkTest, TheCheapestSetThatMeetsTheTargetGoes) {
  const struct {
    int64_t nominal, borrow;
    const char* reach;
    const char* to_nominal;
  } kRows[] = {
      {9, 9, "", ""},
      {4, 3, "", "t2 t3"},
      {4, 0, "t2 t3", "t2 t3"},
      {2, 3, "t3", "t1 t3"},
      {0, 0, "t1 t2 t3", "t1 t2 t3"},
  };
  for (const auto& row : kRows) {
    Cluster({Quota("org", "", 9), Quota("a", "org", row.nominal, row.borrow)},
            {{"t1", "a", 3, 2, 5}, {"t2", "a", 2, 2, 4}, {"t3", "a", 2, 2, 4}});
    EXPECT_EQ(Shrunk(ShrinkTarget::kReach), row.reach) << row.nominal;
    EXPECT_TRUE(plan_.meets_target && plan_.optimal);
    EXPECT_EQ(Shrunk(ShrinkTarget::kNominal), row.to_nominal) << row.nominal;
    EXPECT_TRUE(plan_.meets_target && plan_.optimal);
  }
}

TEST_F(ReclaimShrinkTest, WhereItIsNotEnoughEverythingThatHelpsGoes) {
  Cluster({Quota("org", "", 0), Quota("a", "org", 2, 0)}, {{"t1", "a", 3}, {"t2", "a", 2}});
  tree_.Add(tree_.Find("a"), LineOfWork(), Gpus(4));  // nobody may evict this
  EXPECT_EQ(Shrunk(ShrinkTarget::kReach), "t1 t2");
  EXPECT_FALSE(plan_.meets_target);
}

TEST_F(ReclaimShrinkTest, SparePodsGoBeforeAGangIsBroken) {
  Cluster({Quota("org", "", 0), Quota("a", "org", 5, 0)},
          {{"whole", "a", 4}, {"spare-1", "a", 1}, {"spare-2", "a", 1}});
  problem_.spare_left = {1};
  for (const char* spare : {"spare-1", "spare-2"}) {
    Unit(spare).spare_of = 0;
    Unit(spare).breaks = false;
  }
  Unit("whole").whole_of = 0;
  EXPECT_EQ(Shrunk(ShrinkTarget::kReach), "spare-2");
  problem_.spare_left = {0};
  EXPECT_EQ(Shrunk(ShrinkTarget::kReach), "whole");
}

TEST_F(ReclaimShrinkTest, ManyAreShrunkWithoutSuperfluousVictims) {
  std::vector<Work> works;
  for (int i = 0; i < 50; ++i) works.push_back({"w" + std::to_string(100 + i), "a", 1, 2, i});
  Cluster({Quota("org", "", 50), Quota("a", "org", 0, 47)}, works);
  EXPECT_EQ(Shrunk(ShrinkTarget::kReach), "w100 w101 w102");
  EXPECT_FALSE(plan_.optimal);
}

}  // namespace THIS_FILE
}  // namespace tranche
