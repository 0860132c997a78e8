// A replica knows what the engine knows that was copied.
#include "scheduler/foresight/replica.h"

#include "test/unit/scheduler/foresight/foresight_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::DayBudget;
using test::FractionPod;
using test::HamiNode;
using test::HamiPod;
using test::Hours;
using test::MigNode;
using test::MigPod;
using test::Minutes;
using test::Quota;
using test::StockNode;
using testing::IsEmpty;

class ReplicaTest : public ForesightTest {
 protected:
  std::vector<std::string> QuotaLines(Engine& engine) {
    std::vector<std::string> lines;
    for (const QuotaView& view : engine.Quotas(now_)) {
      for (const QuotaLineReport& line : view.report.lines) {
        lines.push_back(fmt::format("{} {} {} {}", view.report.name, line.line.name,
                                    line.line.used.compute, line.marked_borrowed.compute));
      }
    }
    return lines;
  }
  std::vector<std::string> BudgetLines(Engine& engine) {
    std::vector<std::string> lines;
    for (const BudgetReport& report : engine.Budgets(now_)) {
      lines.push_back(fmt::format("{} {}", report.spec.name,
                                  static_cast<int64_t>(report.view.used / kQuantaPerGpu)));
    }
    return lines;
  }
  void ExpectEqual(Engine& replica) {
    EXPECT_EQ(replica.Digest(), engine_.Digest());
    EXPECT_EQ(QuotaLines(replica), QuotaLines(engine_));
    EXPECT_EQ(BudgetLines(replica), BudgetLines(engine_));
    EXPECT_EQ(replica.HeldQuanta(), engine_.HeldQuanta());
    EXPECT_THAT(replica.Audit(), IsEmpty());
  }
};

TEST_F(ReplicaTest, HoldsWhatPodsHoldOfEveryKindOfNode) {
  Nodes({StockNode("n1", 8), HamiNode("hami", 4, 3), MigNode("mig", 4, 2, {{"1g.10gb", 5}})});
  Started(Pod("a", "whole", 3), "n1");
  Started(In("a", FractionPod("part", 300)), "n1");
  Started(In("b", HamiPod("share", 2, 3000, 20)), "hami");
  Started(In("b", MigPod("slice", "1g.10gb", 2)), "mig");
  Wait(Pod("a", "waits", 8));
  ExpectEqual(*MakeReplica(Copy()));
}

TEST_F(ReplicaTest, KnowsWhatWasSpentAndWhatRunsIsChargedOn) {
  now_ = test::Utc(2026, 3, 2, 1, 0);
  engine_.Tick(now_);
  Nodes({StockNode("n1", 8)});
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "8")},
           .budgets = {DayBudget("team-a", 100)}});
  Started(Pod("a", "gone", 4), "n1");
  Pass(Hours(2));
  Leave(Pod("a", "gone", 4));
  Started(Pod("a", "runs", 2), "n1");
  Pass(Minutes(30));
  const std::unique_ptr<Engine> replica = MakeReplica(Copy());
  ExpectEqual(*replica);
  Pass(Hours(3));
  replica->Tick(now_);
  EXPECT_EQ(BudgetLines(*replica), BudgetLines(engine_)) << "also after another three hours";
}

TEST_F(ReplicaTest, ABindUnderWayCountsAsDone) {
  Nodes({StockNode("n1", 8)});
  ASSERT_EQ(Bind(Pod("a", "binding", 4), "n1").kind, BindPlan::Kind::kWrite);
  const std::unique_ptr<Engine> replica = MakeReplica(Copy());
  ExpectEqual(*replica);
  EXPECT_EQ(replica->Pod(PodUid("uid-binding"))->state, PodState::kBound);
}

TEST_F(ReplicaTest, GoesOnWithAReclaim) {
  Nodes({StockNode("n1", 8)});
  Declare({.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "8"),
                      Quota("team-b").Under("org").Owns("b").Line("h100", "0")},
           .classes = {test::Class("train", 2)}});
  Started(Pod("b", "borrows", 8, "train"), "n1");
  Pass(Hours(1));
  const PodRequest wants = Pod("a", "wants", 8, "train");
  EXPECT_EQ(Try(wants), "WaitingForQuota");
  EXPECT_EQ(Plan(), "plan");
  EXPECT_EQ(Evict(), "borrows");
  const std::unique_ptr<Engine> replica = MakeReplica(Copy());
  ASSERT_EQ(replica->Reclaims().size(), 1U);
  EXPECT_FALSE(replica->Reclaims()[0].finished());
  replica->DeletePod(PodUid("uid-borrows"), now_);
  const BindPlan plan = replica->Bind(wants.name, wants.uid, NodeName("n1"), now_);
  EXPECT_EQ(plan.kind, BindPlan::Kind::kWrite);
}

TEST_F(ReplicaTest, NodesAreKeptAwayFromAsTheyWere) {
  NodeFacts cordoned = StockNode("n1", 8);
  cordoned.cordoned = true;
  Nodes({cordoned, StockNode("n2", 8), StockNode("n3", 8)});
  engine_.SetHeld(NodeName("n2"), "its layout is changed", now_);
  engine_.SetUnreadable(NodeName("n3"), "no quantity", now_);
  const std::unique_ptr<Engine> replica = MakeReplica(Copy());
  const auto closed = [this](Engine& engine) {
    std::vector<Reason> reasons;
    for (const NodeView& node : engine.Nodes(NodeName(), 10, now_)) reasons.push_back(node.closed);
    return reasons;
  };
  EXPECT_EQ(closed(*replica), closed(engine_));
}

TEST_F(ReplicaTest, ACopyIsTakenInSlicesThatLetOthersIn) {
  for (int i = 0; i < 100; ++i) Nodes({StockNode(fmt::format("n{:03}", i), 8)});
  for (int i = 0; i < 300; ++i) Wait(Pod("a", fmt::format("p{:03}", i), 8));
  ReplicaWalk walk;
  int slices = 0;
  while (!walk.done()) {
    engine_.CopySlice(walk, now_);
    // One that ends between two slices is in the copy or not, and breaks nothing.
    engine_.DeletePod(PodUid(fmt::format("uid-p{:03}", 299 - slices)), now_);
    ++slices;
  }
  EXPECT_GT(slices, 12);
  const ClusterCopy copy = walk.Take();
  EXPECT_EQ(copy.nodes.size(), 100U);
  EXPECT_LT(copy.pods.size(), 300U);
  EXPECT_THAT(MakeReplica(copy)->Audit(), IsEmpty());
}

}  // namespace THIS_FILE
}  // namespace tranche
