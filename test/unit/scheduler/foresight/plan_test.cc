// What an edit would do at once.
#include "scheduler/foresight/plan.h"

#include "test/unit/scheduler/foresight/foresight_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Class;
using test::Minutes;
using test::Quota;
using test::StockNode;
using testing::ElementsAre;
using testing::IsEmpty;

class PlanTest : public ForesightTest {
 protected:
  void SetUp() override { Nodes({StockNode("n1", 8), StockNode("n2", 8)}); }
  static test::Objects Teams(const std::string& a, const std::string& b,
                             OnShrink on_shrink = OnShrink::kKeep) {
    Quota team_a("team-a"), team_b("team-b");
    team_a.Under("org").Owns("a").Line("h100", a, "0");
    team_b.Under("org").Owns("b").Line("h100", b).OnShrunk(on_shrink);
    return {.quotas = {Quota("org"), team_a, team_b}, .classes = {Class("train", 2)}};
  }
  PlanAnswer Edit(test::Objects objects) {
    PlanEdits edits;
    edits.set = test::Declare(std::move(objects));
    edits.defaults = Defaults();
    return PlanEdit(Copy(), edits);
  }
};

TEST_F(PlanTest, ALargerQuotaLetsInWhoWaitsForIt) {
  Declare(Teams("4", "8"));
  Started(Pod("a", "runs", 4, "train"), "n1");
  Wait(Pod("a", "one", 4, "train"));
  Pass(Minutes(1));
  Wait(Pod("a", "two", 4, "train"));
  const PlanAnswer now = Edit(Teams("4", "8"));
  EXPECT_THAT(now.starts, IsEmpty());
  EXPECT_THAT(Names(now.waits), ElementsAre("a/one", "a/two"));
  const PlanAnswer then = Edit(Teams("8", "8"));
  EXPECT_THAT(Names(then.starts), ElementsAre("a/one"));
  EXPECT_THAT(Names(then.waits), ElementsAre("a/two"));
  EXPECT_THAT(then.evicted, IsEmpty());
  EXPECT_THAT(then.borrowed, IsEmpty());
  EXPECT_TRUE(then.complete);
}

TEST_F(PlanTest, PodsStartWhereTheirSpecLetsThem) {
  NodeFacts tainted = StockNode("n2", 8);
  tainted.taints = {{"team", "b", "NoSchedule"}};
  Nodes({tainted});
  PodRequest chosen = Pod("a", "chosen", 1), plain = Pod("a", "plain", 8);
  NodeConstraints zone;
  zone.selector = {{"zone", "z"}};
  chosen.constraints = std::make_shared<const NodeConstraints>(zone);
  Wait(chosen);
  Wait(plain);
  EXPECT_THAT(Names(PlanEdit(Copy(), {}).starts), ElementsAre("a/plain")) << "on n1 alone";
  PlanEdits edits;
  NodeFacts labelled = StockNode("n3", 8);
  labelled.labels = LabelText(Labels{{"zone", "z"}});
  edits.nodes = {labelled};
  EXPECT_THAT(Names(PlanEdit(Copy(), edits).starts), ElementsAre("a/chosen", "a/plain"));
  edits.gone = {NodeName("n1")};
  edits.nodes = {};
  EXPECT_THAT(PlanEdit(Copy(), edits).starts, IsEmpty()) << "n2 is tainted";
}

TEST_F(PlanTest, ASmallerQuotaMakesItsWorkBorrowed) {
  Declare(Teams("8", "8"));
  Started(Pod("b", "runs", 8, "train"), "n1");
  const PlanAnswer then = Edit(Teams("16", "0"));
  EXPECT_THAT(Names(then.borrowed), ElementsAre("b/runs"));
  EXPECT_THAT(then.evicted, IsEmpty());
}

TEST_F(PlanTest, EntitledWorkTakesBackWhatIsBorrowedThen) {
  Declare(Teams("8", "8"));
  Started(Pod("b", "runs", 8, "train"), "n1");
  Started(Pod("a", "own", 8, "train"), "n2");
  Pass(Minutes(60));
  Wait(Pod("a", "wants", 8, "train"));
  const PlanAnswer then = Edit(Teams("16", "0"));
  EXPECT_THAT(Names(then.evicted), ElementsAre("b/runs"));
  EXPECT_THAT(Names(then.starts), ElementsAre("a/wants"));
  EXPECT_THAT(then.borrowed, IsEmpty());
  EXPECT_THAT(then.waits, IsEmpty());
}

TEST_F(PlanTest, NodesComeAndGo) {
  Started(Pod("a", "left", 8), "n1");
  Started(Pod("a", "right", 8), "n2");
  Wait(Pod("b", "wants", 8));
  PlanEdits more;
  more.nodes = {StockNode("n3", 8)};
  EXPECT_THAT(Names(PlanEdit(Copy(), more).starts), ElementsAre("b/wants"));
  PlanEdits less;
  less.gone = {NodeName("n2")};
  const PlanAnswer then = PlanEdit(Copy(), less);
  EXPECT_THAT(Names(then.evicted), ElementsAre("a/right"));
  EXPECT_THAT(Names(then.waits), ElementsAre("b/wants"));
  EXPECT_THAT(then.starts, IsEmpty());
}

TEST_F(PlanTest, WithoutAnyNodeNobodyStarts) {
  Started(Pod("a", "left", 8), "n1");
  Wait(Pod("b", "wants", 4));
  PlanEdits none;
  none.gone = {NodeName("n1"), NodeName("n2")};
  const PlanAnswer then = PlanEdit(Copy(), none);
  EXPECT_THAT(Names(then.evicted), ElementsAre("a/left"));
  EXPECT_THAT(Names(then.waits), ElementsAre("b/wants"));
  EXPECT_THAT(then.starts, IsEmpty());
}

TEST_F(PlanTest, AnAnswerNobodyWantsIsGivenUp) {
  Wait(Pod("b", "wants", 8));
  EXPECT_TRUE(PlanEdit(Copy(), {}).complete);
  EXPECT_FALSE(PlanEdit(Copy(), {}, [] { return false; }).complete);
}

TEST_F(PlanTest, TheEngineItselfIsLeftAsItIs) {
  Declare(Teams("4", "8"));
  Started(Pod("a", "runs", 4, "train"), "n1");
  Wait(Pod("a", "one", 4, "train"));
  const std::string before = engine_.Digest();
  Edit(Teams("8", "8"));
  EXPECT_EQ(engine_.Digest(), before);
  EXPECT_EQ(View(Pod("a", "one", 4, "train")).state, PodState::kPending);
}

}  // namespace THIS_FILE
}  // namespace tranche
