// The planner's question, from the parts left of it alone.
#include "scheduler/engine/preemption/reclaim_case.h"

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Class;
using test::TeamPod;
using testing::ElementsAre;
using testing::IsEmpty;

// Two machines of 8; each team owns 4 and may borrow all.
class ReclaimCaseTest : public testing::Test, protected test::PreemptionRoom {
 protected:
  ReclaimCaseTest() {
    for (const char* name : {"n1", "n2"}) Node(test::StockNode(name, 8));
    std::vector<GpuQuota> quotas = test::TwoTeams();
    Declare(
        {.quotas = quotas,
         .classes = {Class("serve", 3, Preemptible::kNever), Class("train", 2), Class("low", 1)}});
  }
  // Team b wants 4 of its own.
  ReclaimCase Case(ReclaimCase::Options options = {}) {
    Hungry(wants_);
    preemptor_ = *preemptors.Of(wants_.uid);
    return {plan_parts, preemptor_, now, options};
  }
  // The pods that could go, unit by unit: "p1+p2".
  std::vector<std::string> Units(const ReclaimCase& reclaim_case) {
    std::vector<std::string> units;
    for (std::size_t i = 0; i < reclaim_case.problem().units.size(); ++i) {
      std::string names;
      for (const PodUid& uid : reclaim_case.pods_of(static_cast<int>(i))) {
        names += (names.empty() ? "" : "+") + cluster.Find(uid)->request->name.name;
      }
      units.push_back(names);
    }
    return units;
  }

  const PodRequest wants_ = TeamPod("b", "wants", 4, "train");
  Preemptor preemptor_;
};

TEST_F(ReclaimCaseTest, WhoCouldGo) {
  Runs(TeamPod("a", "own", 2, "train"), "n1");
  Runs(TeamPod("a", "serves", 2, "serve"), "n1");
  now = At(60);
  Runs(TeamPod("a", "lent", 2, "train"), "n1");
  Runs(TeamPod("b", "lower", 1, "low"), "n2");
  Runs(TeamPod("b", "equal", 1, "train"), "n2");
  Runs(TeamPod("x", "nobodys", 1), "n2");
  EXPECT_THAT(Units(Case()), ElementsAre("lent", "lower"))
      << "not what is in quota, never preempted, of equal rank or of no quota";
}

TEST_F(ReclaimCaseTest, ThePodFitsOnceEnoughHasGone) {
  Runs(TeamPod("a", "own", 4, "train"), "n1");
  now = At(60);
  Runs(TeamPod("a", "lent", 4, "train"), "n1");
  Runs(TeamPod("x", "fills", 8), "n2");
  ReclaimCase reclaim_case = Case();
  const std::optional<std::size_t> region = reclaim_case.RegionOf(NodeName("n1"));
  ASSERT_TRUE(region);
  const int lent = 0;
  EXPECT_FALSE(reclaim_case.Fits(*region, {}));
  EXPECT_TRUE(reclaim_case.Fits(*region, {&lent, 1}));
  EXPECT_FALSE(reclaim_case.Fits(*region, {})) << "a question leaves nothing behind";
  const std::vector<ReclaimCase::Seat> seats = reclaim_case.Seats(*region, {&lent, 1});
  ASSERT_EQ(seats.size(), 1U);
  EXPECT_EQ(seats[0].node, IdOf("n1"));
  EXPECT_EQ(seats[0].picks.size(), 4U);
  const std::vector<PodUid> known = {PodUid("uid-lent")}, unknown = {PodUid("uid-own")};
  EXPECT_EQ(reclaim_case.UnitsOf(known), std::vector<int>{0});
  EXPECT_EQ(reclaim_case.UnitsOf(unknown), std::nullopt);
}

TEST_F(ReclaimCaseTest, WhoIsOnTheWayOutCountsAsGone) {
  Runs(TeamPod("a", "own", 4, "train"), "n1");
  now = At(60);
  PodRecord& lent = Runs(TeamPod("a", "lent", 4, "train"), "n1");
  EXPECT_FALSE(Case().any_leaving());
  lent.traits.leaves_at = now + Millis(30'000);
  cluster.terminating.insert(lent.request->uid);
  ReclaimCase reclaim_case = Case();
  EXPECT_TRUE(reclaim_case.any_leaving());
  EXPECT_TRUE(reclaim_case.Fits(*reclaim_case.RegionOf(NodeName("n1")), {}));
  EXPECT_THAT(Units(reclaim_case), IsEmpty());
}

TEST_F(ReclaimCaseTest, AGangGoesWholeAndItsSparePodsAloneToo) {
  Runs(TeamPod("a", "own", 4, "train"), "n1");
  now = At(60);
  for (int i = 0; i < 3; ++i) {
    PodRequest member = test::Member("a", "g", i, 2, 1);
    member.priority_class = "train";
    Runs(member, i == 0 ? "n1" : "n2");
  }
  EXPECT_THAT(Units(Case()), ElementsAre("g-0+g-1+g-2", "g-0", "g-1", "g-2"));
  EXPECT_THAT(Units(Case({.one_node_units = true})), ElementsAre("g-0", "g-1", "g-2"))
      << "kube-scheduler evicts on one node";
}

TEST_F(ReclaimCaseTest, GuardedWorkIsAVictimOnlyWhereGuardsAreIgnored) {
  Runs(TeamPod("a", "own", 4, "train"), "n1");
  now = At(60);
  Runs(TeamPod("a", "lent", 4, "train"), "n1").traits.settled_until = At(900);
  const ReclaimCase strict = Case(), relaxed = Case({.ignore_guards = true});
  EXPECT_THAT(Units(strict), IsEmpty());
  EXPECT_TRUE(strict.any_guarded());
  EXPECT_THAT(Units(relaxed), ElementsAre("lent"));
  EXPECT_EQ(relaxed.guard_of(0).guard, Guard::kSettled);
  EXPECT_EQ(relaxed.guard_of(0).until, At(900));
}

TEST_F(ReclaimCaseTest, NodesThatAreClosedTaintedOrAvoidedAreNoRegions) {
  NodeFacts tainted = test::StockNode("tainted", 8), cordoned = test::StockNode("cordoned", 8);
  tainted.taints.push_back({"dedicated", "others", "NoSchedule"});
  cordoned.cordoned = true;
  Node(tainted);
  Node(cordoned);
  Node(test::StockNode("small", 2));
  reclaims.avoided[wants_.uid][NodeName("n2")] = {.until = At(100)};
  const std::pair<const char*, bool> cases[] = {
      {"n1", true}, {"n2", false}, {"tainted", false}, {"cordoned", false}, {"small", false}};
  for (const auto& [node, region] : cases) {
    EXPECT_EQ(Case().RegionOf(NodeName(node)).has_value(), region) << node;
  }
  now = At(100);
  EXPECT_TRUE(Case().RegionOf(NodeName("n2"))) << "its time is over";
}

}  // namespace THIS_FILE
}  // namespace tranche
