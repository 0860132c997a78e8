// Nodes kept for a gang that has waited long, from the parts left of it alone.
#include "scheduler/engine/gangs/gang_backfill.h"

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Member;
using test::TeamPod;
using testing::ElementsAre;
using testing::IsEmpty;

// Three nodes of 8, each with work that lasts 20, 40 and 60 minutes.
class GangBackfillTest : public testing::Test, protected test::GangsRoom {
 protected:
  GangBackfillTest() {
    for (int i = 1; i <= 3; ++i) {
      const std::string node = fmt::format("n{}", i);
      Node(test::StockNode(node, 8));
      PodRequest work = TeamPod("b", "work-" + node, 8);
      work.expected_runtime = test::Minutes(20 * i);
      Runs(work, node);
    }
    cluster.cluster_complete = true;
  }
  // Two pods of 8 come and find no room.
  void GangWaits(const std::string& gang, const std::string& priority_class = "") {
    for (int i = 0; i < 2; ++i) {
      PodRequest member = Member("a", gang, i, 2);
      member.priority_class = priority_class;
      Joins(member);
    }
    const PodUid uid(fmt::format("uid-{}-0", gang));
    EXPECT_EQ(gangs.TakeTurn(uid, *cluster.Find(uid), now).reason, Reason::kGangNoRoom);
  }

  GangBackfill backfill_{gang_parts, held_nodes, gangs};
};

TEST_F(GangBackfillTest, AGangThatHasWaitedFiveMinutesGetsTheNodesThatAreFreeFirst) {
  GangWaits("train");
  backfill_.Tend(At(299));
  EXPECT_THAT(held_nodes.hold.nodes, IsEmpty());
  backfill_.Tend(At(300));
  EXPECT_EQ(held_nodes.hold.gang, "a/train");
  EXPECT_EQ(held_nodes.hold.start, At(2'400));
  EXPECT_THAT(held_nodes.hold.nodes, ElementsAre(NodeName("n1"), NodeName("n2")));
}

TEST_F(GangBackfillTest, WorkThatDoesNotSayHowLongItRunsIsNotWaitedFor) {
  End(TeamPod("b", "work-n1", 8));
  Runs(TeamPod("b", "silent", 8), "n1");
  GangWaits("train");
  backfill_.Tend(At(300));
  EXPECT_EQ(held_nodes.hold.start, At(3'600));
  EXPECT_THAT(held_nodes.hold.nodes, ElementsAre(NodeName("n2"), NodeName("n3")));
}

TEST_F(GangBackfillTest, TheHighestClassIsHeldForThenTheLongestWait) {
  Declare({.classes = {test::Class("top", 3)}});
  GangWaits("first");
  now = At(10);
  GangWaits("second");
  now = At(20);
  GangWaits("top", "top");
  const std::pair<Instant, const char*> cases[] = {
      {At(300), "a/first"}, {At(315), "a/first"}, {At(330), "a/top"}};
  for (const auto& [at, gang] : cases) {
    backfill_.Tend(at);
    EXPECT_EQ(held_nodes.hold.gang, gang) << (at - At(0)).count();
  }
}

TEST_F(GangBackfillTest, NodesAreFreeAgainWhenTheGangIsNoMore) {
  GangWaits("train");
  backfill_.Tend(At(300));
  const uint64_t before = cluster.version();
  for (int i = 0; i < 2; ++i) {
    const PodUid uid(fmt::format("uid-train-{}", i));
    gangs.Leave(uid, *cluster.Find(uid), now);
  }
  backfill_.Tend(At(301));
  EXPECT_THAT(held_nodes.hold.nodes, IsEmpty());
  EXPECT_GT(cluster.version(), before) << "others are to be asked again";
}

TEST_F(GangBackfillTest, NodesAreKeptOnlyForWhatTheTeamMayClaim) {
  const struct {
    const char* what;
    const char* nominal;
    bool held;
  } cases[] = {{"its own", "16", true}, {"one GPU of it borrowed", "15", false}};
  GangWaits("train");
  for (const auto& row : cases) {
    Declare({.quotas = {test::Quota("org"),
                        test::Quota("team-a").Under("org").Owns("a").Line("h100", row.nominal),
                        test::Quota("team-b").Under("org").Owns("b").Line("h100", "24")}});
    rules.ForgetPolicies();
    held_nodes.hold = {};
    backfill_.Tend(At(300));
    EXPECT_EQ(!held_nodes.hold.nodes.empty(), row.held) << row.what;
  }
}

TEST_F(GangBackfillTest, ADayAheadIsTheMost) {
  for (int i = 1; i <= 3; ++i) {
    const std::string node = fmt::format("n{}", i);
    End(TeamPod("b", "work-" + node, 8));
    PodRequest work = TeamPod("b", "weeks-" + node, 8);
    work.expected_runtime = test::Hours(i == 1 ? 23 : 700);
    Runs(work, node);
  }
  GangWaits("train");
  backfill_.Tend(At(300));
  EXPECT_THAT(held_nodes.hold.nodes, IsEmpty());
}

TEST_F(GangBackfillTest, AHoldEndsWhenTheGangShouldHaveStarted) {
  GangWaits("train");
  backfill_.Tend(At(300));
  ASSERT_EQ(held_nodes.hold.start, At(2'400));
  // Someone says again and again that it ends a little later.
  PodRequest longer = TeamPod("b", "longer", 8);
  longer.expected_runtime = test::Minutes(50);
  End(TeamPod("b", "work-n2", 8));
  Runs(longer, "n2");
  backfill_.Tend(At(1'000));
  EXPECT_EQ(held_nodes.hold.start, At(3'000));
  EXPECT_THAT(held_nodes.hold.nodes, testing::SizeIs(2));
  backfill_.Tend(At(2'400));
  EXPECT_THAT(held_nodes.hold.nodes, IsEmpty()) << "the first promise counts";
  backfill_.Tend(At(2'500));
  EXPECT_THAT(held_nodes.hold.nodes, IsEmpty()) << "others have their turn first";
  backfill_.Tend(At(2'700));
  EXPECT_THAT(held_nodes.hold.nodes, testing::SizeIs(2)) << "then it may hope again";
}

}  // namespace THIS_FILE
}  // namespace tranche
