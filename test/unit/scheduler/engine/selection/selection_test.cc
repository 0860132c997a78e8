// Choosing nodes, from state, rules and held nodes alone.
#include "scheduler/engine/selection/selection.h"

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Quota;
using test::StockNode;
using test::TeamPod;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class SelectionTest : public testing::Test, protected test::TeamsRoom {
 protected:
  // The nodes, best first; refusals go to refused_.
  std::vector<std::string> Select(const PodRequest& request, std::vector<std::string> nodes,
                                  std::size_t width = 11) {
    return SelectAs(rules.ContextOf(request), std::move(nodes), width);
  }
  std::vector<std::string> SelectAs(const RequestContext& context, std::vector<std::string> nodes,
                                    std::size_t width = 11) {
    std::vector<NodeId> ids;
    for (const std::string& node : nodes) ids.push_back(IdOf(node));
    std::vector<std::pair<uint32_t, Reason>> refused;
    selection_.Select(context, ids, width, now, &refused);
    refused_.clear();
    for (const auto& [position, reason] : refused) refused_.emplace_back(nodes[position], reason);
    std::vector<std::string> best;
    for (const Candidate& candidate : selection_.best()) best.push_back(nodes[candidate.position]);
    return best;
  }
  // Filter's answer for the pod was that node, a moment ago.
  void Tentatively(const PodRequest& request, const std::string& node) {
    PodRecord& record = Wait(request);
    const RequestContext context = rules.ContextOf(*record.request);
    SelectAs(context, {node});
    selection_.PlaceTentatively(context, record, IdOf(node), now);
  }

  HeldNodes held_nodes_{cluster};
  Selection selection_{cluster, rules, namespaces, held_nodes_};
  std::vector<std::pair<std::string, Reason>> refused_;
};

TEST_F(SelectionTest, OfNodesThatAreAlikeTheNameDecidesAndTheWidthIsKept) {
  for (const char* name : {"n3", "n1", "n2"}) Node(StockNode(name, 8));
  EXPECT_THAT(Select(TeamPod("a", "p", 8), {"n3", "n2", "n1"}), ElementsAre("n1", "n2", "n3"));
  EXPECT_THAT(Select(TeamPod("a", "p", 8), {"n2", "n3", "n1"}, 2), ElementsAre("n1", "n2"));
  EXPECT_EQ(selection_.NearestReason(), Reason::kNone);
}

TEST_F(SelectionTest, TheReasonNearestToFittingIsTold) {
  Node(StockNode("full", 2));
  Node(StockNode("small", 1));
  NodeFacts away = StockNode("away", 8);
  away.cordoned = true;
  Node(away);
  Runs(TeamPod("a", "runs", 2), "full");
  EXPECT_THAT(Select(TeamPod("a", "p", 2), {"full", "small", "away", "gone"}), IsEmpty());
  EXPECT_THAT(refused_,
              ElementsAre(Pair("full", Reason::kNoRoom), Pair("small", Reason::kTooManyPerNode),
                          Pair("away", Reason::kNodeCordoned), Pair("gone", Reason::kUnknownNode)));
  EXPECT_EQ(selection_.NearestReason(), Reason::kNoRoom);
  selection_.NoteReason(Reason::kWaitingForQuota);
  EXPECT_EQ(selection_.NearestReason(), Reason::kWaitingForQuota) << "quota comes before room";
  selection_.NoteReason(Reason::kPreemptionInProgress);
  EXPECT_EQ(selection_.NearestReason(), Reason::kPreemptionInProgress);
}

TEST_F(SelectionTest, QuotaRefusesWhereItIsEnforcedAndOnlyNodesThatCouldServe) {
  Node(StockNode("n1", 8));
  Node(StockNode("small", 1));
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "4"),
                      Quota("watched").Owns("w").Line("h100", "4").Mode(QuotaMode::kObserve)}});
  EXPECT_THAT(Select(TeamPod("a", "p", 5), {"n1", "small"}), IsEmpty());
  EXPECT_THAT(refused_, ElementsAre(Pair("n1", Reason::kExceedsMaxQuota),
                                    Pair("small", Reason::kTooManyPerNode)));
  EXPECT_THAT(Select(TeamPod("w", "p", 5), {"n1"}), ElementsAre("n1"));
  EXPECT_FALSE(selection_.quota_allows_one());
  Select(TeamPod("w", "p", 4), {"n1"});
  EXPECT_TRUE(selection_.quota_allows_one());
}

TEST_F(SelectionTest, ANodeThatFitsOnlyOverATentativePlacementIsTheLastResort) {
  Node(StockNode("n1", 2));
  Node(StockNode("n2", 2));
  const PodRequest pod = TeamPod("a", "p", 2);
  Tentatively(TeamPod("a", "first", 2), "n1");
  EXPECT_EQ(cluster.Find(PodUid("uid-first"))->tentative, IdOf("n1"));
  EXPECT_THAT(Select(pod, {"n1", "n2"}), ElementsAre("n2"));
  EXPECT_THAT(Select(pod, {"n1"}), ElementsAre("n1")) << "it refuses nobody";
  EXPECT_EQ(selection_.Fits(rules.ContextOf(pod), IdOf("n1")), Reason::kNone);
  Runs(TeamPod("a", "runs", 2), "n2");
  EXPECT_THAT(Select(pod, {"n1", "n2"}), ElementsAre("n1"));
  EXPECT_NE(selection_.Fits(rules.ContextOf(pod), IdOf("n2")), Reason::kNone);
}

TEST_F(SelectionTest, RememberedVerdictsFollowTheNode) {
  Node(StockNode("n1", 2));
  const PodRequest pod = TeamPod("a", "p", 1), other = TeamPod("a", "other", 2);
  const RequestContext context = rules.ContextOf(pod);
  EXPECT_EQ(selection_.Fits(context, IdOf("n1")), Reason::kNone);
  Runs(other, "n1");
  EXPECT_EQ(selection_.Fits(context, IdOf("n1")), Reason::kNoRoom);
  End(other);
  EXPECT_EQ(selection_.Fits(context, IdOf("n1")), Reason::kNone);
  Node(StockNode("n1", 0));
  EXPECT_NE(selection_.Fits(context, IdOf("n1")), Reason::kNone);
}

TEST_F(SelectionTest, AGangsPlaceAndItsNeighboursNarrowTheChoice) {
  for (const char* name : {"c0-n0", "c0-n1", "c1-n0"}) {
    NodeFacts facts = StockNode(name, 8);
    facts.labels = LabelText(Labels{{"nvidia.com/gpu.clique", std::string(name, 2)}});
    Node(facts);
  }
  const PodRequest pod = TeamPod("a", "p", 8);
  const std::vector<std::string> all = {"c0-n0", "c0-n1", "c1-n0"};
  RequestContext context = rules.ContextOf(pod);
  Neighbours near;
  near.labels = &context.policy->domains;
  near.domain[0] = "c1";
  context.near = &near;
  EXPECT_THAT(SelectAs(context, all), ElementsAre("c1-n0", "c0-n0", "c0-n1"));
  near.within = static_cast<int>(GangLevel::kClique);
  EXPECT_THAT(SelectAs(context, all), ElementsAre("c1-n0"));
  EXPECT_THAT(refused_, ElementsAre(Pair("c0-n0", Reason::kGangElsewhere),
                                    Pair("c0-n1", Reason::kGangElsewhere)));
  context.near = nullptr;
  context.only = IdOf("c0-n1");
  EXPECT_THAT(SelectAs(context, all), ElementsAre("c0-n1"));
}

TEST_F(SelectionTest, NodesHeldForAGangAreNotForOthersButForThoseWithDevicesKept) {
  Node(StockNode("n1", 8));
  held_nodes_.hold = {"a/train", now + Millis(60'000), {NodeName("n1")}, now, kRankWithoutClass};
  const PodRequest pod = TeamPod("a", "p", 1);
  EXPECT_THAT(Select(pod, {"n1"}), IsEmpty());
  EXPECT_THAT(refused_, ElementsAre(Pair("n1", Reason::kHeldForGang)));
  RequestContext context = rules.ContextOf(pod);
  context.kept = true;
  EXPECT_THAT(SelectAs(context, {"n1"}), ElementsAre("n1"));
}

}  // namespace THIS_FILE
}  // namespace tranche
