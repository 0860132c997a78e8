// The nodes as a gang's planner sees them, from state, rules and selection alone.
#include "scheduler/engine/gangs/gang_sites.h"

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Member;
using test::TeamPod;

// Two cliques of two nodes of 8: c0-n0, c0-n1, c1-n0, c1-n1.
class GangSitesTest : public testing::Test, protected test::SelectionRoom {
 protected:
  GangSitesTest() {
    for (const char* name : {"c0-n0", "c0-n1", "c1-n0", "c1-n1"}) {
      NodeFacts facts = test::StockNode(name, 8);
      facts.labels = LabelText(Labels{{"nvidia.com/gpu.clique", std::string(name, 2)}});
      Node(facts);
    }
  }
  static std::vector<std::shared_ptr<const PodRequest>> Gang(int size, int64_t gpus) {
    std::vector<std::shared_ptr<const PodRequest>> members;
    for (int i = 0; i < size; ++i) {
      members.push_back(std::make_shared<const PodRequest>(Member("a", "train", i, size, gpus)));
    }
    return members;
  }
  GangSites Sites(int size, int64_t gpus, std::optional<Instant> by = std::nullopt) {
    return {parts_, Gang(size, gpus), avoided_, now, by};
  }

  const GangParts parts_{cluster, rules, selection, held_nodes};
  std::map<NodeName, Instant> avoided_;
};

TEST_F(GangSitesTest, WhatWasTakenOfANodeIsGoneUntilReset) {
  GangSites sites = Sites(4, 3);
  EXPECT_EQ(sites.Seats(0, 0, 10), 2);
  EXPECT_EQ(sites.Seats(0, 0, 1), 1) << "no more than asked";
  sites.Take(0, 0, 1);
  EXPECT_EQ(sites.Seats(0, 0, 10), 1);
  EXPECT_EQ(sites.Seats(1, 0, 10), 2) << "a node of the same state, not taken of";
  sites.Reset();
  EXPECT_EQ(sites.Seats(0, 0, 10), 2);
}

TEST_F(GangSitesTest, APlanGivesEveryMemberItsOwnDevices) {
  GangSites sites = Sites(4, 4);
  const std::optional<GangPlan> plan = PlanGang(sites.Ask({}), sites);
  ASSERT_TRUE(plan);
  std::map<NodeId, std::set<int>> cards;
  for (const GangSites::Seat& seat : sites.SeatsOf(*plan)) {
    for (const Pick& pick : seat.picks) {
      EXPECT_TRUE(cards[seat.node].insert(pick.card).second) << "twice on one node";
    }
  }
  ASSERT_EQ(cards.size(), 2U);
  EXPECT_EQ(cluster.names.name(cards.begin()->first).str().substr(0, 2),
            cluster.names.name(cards.rbegin()->first).str().substr(0, 2))
      << "close together";
}

TEST_F(GangSitesTest, NodesThatAreAvoidedClosedOrRefusedByQuotaAreLeftOut) {
  Declare({.quotas = {test::Quota("team-a").Owns("a").Line("h100", "8")}});
  NodeFacts away = test::StockNode("c0-n1", 8);
  away.cordoned = true;
  Node(away);
  avoided_ = {{NodeName("c0-n0"), At(60)}, {NodeName("c1-n0"), At(0)}};
  GangSites sites = Sites(2, 8);
  const GangQuestion question = sites.Ask({});
  EXPECT_EQ(question.nodes.size(), 2U) << "c1-n0, whose time is over, and c1-n1";
  EXPECT_EQ(sites.Seats(0, 0, 1), 1);
  EXPECT_EQ(sites.quota(), Reason::kNone);
  Runs(TeamPod("a", "runs", 1), "c1-n0");
  GangSites again = Sites(2, 8);
  EXPECT_EQ(again.Seats(1, 0, 1), 0) << "the team has 7 left";
  EXPECT_EQ(again.quota(), Reason::kWaitingForQuota);
}

TEST_F(GangSitesTest, WorkThatWillHaveEndedIsNotInTheWay) {
  PodRequest lasts = TeamPod("b", "lasts", 8);
  lasts.expected_runtime = test::Minutes(10);
  Runs(lasts, "c0-n0");
  Runs(TeamPod("b", "silent", 8), "c0-n1");
  const std::tuple<const char*, std::optional<Instant>, int> cases[] = {
      {"as it is", std::nullopt, 0}, {"a moment too early", At(599), 0}, {"then", At(600), 1}};
  for (const auto& [what, by, seats] : cases) {
    GangSites sites = Sites(1, 8, by);
    EXPECT_EQ(sites.Seats(0, 0, 1), seats) << what;
    EXPECT_EQ(sites.Seats(1, 0, 1), 0) << what;
  }
}

TEST_F(GangSitesTest, MembersThatRunSettleTheirDomainUnlessTheyDisagree) {
  const GangQuestion one = Sites(1, 8).Ask({NodeName("c1-n0")});
  EXPECT_EQ(one.settled[0], one.nodes[2].domain[0]);
  const GangQuestion two = Sites(1, 8).Ask({NodeName("c1-n0"), NodeName("c0-n0")});
  EXPECT_EQ(two.settled[0], kNoDomain);
}

TEST_F(GangSitesTest, TheRoomThatWasFoundIsTold) {
  Runs(TeamPod("b", "runs", 1), "c0-n0");
  EXPECT_EQ(Sites(4, 8).Describe(), "expected room for 4 pods at once, found room for 3");
  std::vector<std::shared_ptr<const PodRequest>> members;
  for (int i = 0; i < 3; ++i) {
    PodRequest member = Member("a", "train", i, 3);
    member.topology = TopologyWish::kRequired;
    members.push_back(std::make_shared<const PodRequest>(member));
  }
  EXPECT_EQ(GangSites(parts_, members, avoided_, now).Describe(),
            "expected room for 3 pods in one NVLink clique, found room for 2 in the best (c1)");
}

}  // namespace THIS_FILE
}  // namespace tranche
