// Scheduling gates of ours: which pods should have one, and when it goes.
#include "test/unit/scheduler/engine/engine_quota_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Class;
using test::DayBudget;
using test::Quota;
using test::StockNode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class EngineGatesTest : public EngineQuotaTest {
 protected:
  // team-a owns 8 of 24 H100, team-b 8.
  void SetUp() override {
    Nodes({StockNode("n1", 8), StockNode("n2", 8), StockNode("n3", 8)});
    Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "8"),
                        Quota("team-b").Owns("b").Line("h100", "8")}});
    engine_.FinishRestore(now_);
  }

  static PodRequest Member(const std::string& ns, int number, int size, int64_t gpus) {
    PodRequest request = Pod(ns, "m" + std::to_string(number), gpus);
    request.gang = "g";
    request.gang_size = size;
    return request;
  }
  // "", "quota", "gang" or "quota gang".
  std::string Wanted(const PodRequest& request) {
    const GateSet gates = engine_.GatesFor(request, now_);
    return std::string(gates.quota ? "quota" : "") + (gates.quota && gates.gang ? " " : "") +
           (gates.gang ? "gang" : "");
  }
  void See(const PodRequest& request, GateSet gates, bool foreign = false) {
    PodFacts pod = test::Pending(request);
    pod.our_gates = gates;
    pod.foreign_gates = foreign;
    pod.gated = foreign || !gates.empty();
    engine_.UpsertPod(pod, now_);
  }
  // What a tick takes away: "pod/quota".
  std::vector<std::string> Removed(Millis after = Millis(0)) {
    Pass(after);
    std::vector<std::string> removed;
    for (const GateRemoval& removal : std::exchange(engine_.effects().ungate, {})) {
      removed.push_back(removal.pod.name + (removal.gate == Gate::kQuota ? "/quota" : "/gang"));
    }
    return removed;
  }

  static constexpr GateSet kQuotaGate{true, false};
  static constexpr GateSet kGangGate{false, true};
};

TEST_F(EngineGatesTest, PodsThatQuotaWouldNotLetInNowShouldHaveOne) {
  EXPECT_EQ(Wanted(Pod("a", "first", 8)), "");
  EXPECT_TRUE(Place(Pod("a", "a1", 6), "n1"));
  PodRequest no_gpu;
  no_gpu.name = {"a", "p"};
  const struct {
    const char* what;
    PodRequest request;
    const char* gates;
  } cases[] = {
      {"within quota", Pod("a", "p", 2), ""},
      {"more than is left", Pod("a", "p", 4), "quota"},
      {"as much as the team owns, but not now", In("a", test::WholePod("p", 8)), "quota"},
      {"another team", Pod("b", "p", 8), ""},
      {"nobody's namespace", Pod("c", "p", 8), ""},
      {"no GPU", no_gpu, ""},
  };
  for (const auto& [what, request, gates] : cases) EXPECT_EQ(Wanted(request), gates) << what;
  // No node has it: that is not quota's to tell, and an autoscaler may bring one.
  PodRequest other = Pod("a", "p", 4);
  other.models_any = {"a100"};
  EXPECT_EQ(Wanted(other), "");
  // There is quota and no room: an autoscaler is to see the pod.
  EXPECT_TRUE(Place(Pod("c", "c1", 8), "n2"));
  EXPECT_TRUE(Place(Pod("c", "c2", 8), "n3"));
  EXPECT_TRUE(Place(Pod("c", "c3", 2), "n1"));
  EXPECT_EQ(Wanted(Pod("b", "p", 1)), "");
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

// A flood comes while the quota is free: machines are to be raised for what the quota gives.
TEST_F(EngineGatesTest, ThoseLetInWhoWaitForRoomCountForAWhile) {
  for (const char* const node : {"n1", "n2", "n3"}) engine_.DeleteNode(NodeName(node), now_);
  for (int i = 0; i < 8; ++i) {
    const PodRequest pod = Pod("a", "p" + std::to_string(i), 1);
    EXPECT_EQ(Wanted(pod), "") << i;
    See(pod, {});
  }
  EXPECT_EQ(Wanted(Pod("a", "p8", 1)), "quota");
  EXPECT_EQ(Wanted(Pod("b", "p8", 1)), "") << "another team";
  PodRequest other = Pod("a", "other", 1);
  other.models_any = {"a100"};
  EXPECT_EQ(Wanted(other), "") << "another kind";
  See(Pod("a", "p8", 1), kQuotaGate);
  See(Pod("a", "p9", 1), kQuotaGate);
  EXPECT_THAT(Removed(), IsEmpty());
  engine_.DeletePod(Pod("a", "p0", 1).uid, now_);
  EXPECT_THAT(Removed(), ElementsAre("p8/quota"));
  EXPECT_THAT(Removed(std::chrono::seconds(1)), IsEmpty());
  // A machine comes, and all have a place.
  See(Pod("a", "p8", 1), {});
  Nodes({StockNode("n4", 8)});
  for (const int i : {1, 2, 3, 4, 5, 6, 7, 8}) {
    EXPECT_TRUE(Place(Pod("a", "p" + std::to_string(i), 1), "n4")) << i;
  }
  EXPECT_THAT(Removed(std::chrono::seconds(1)), IsEmpty());
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

// Perhaps no machine comes for them, and others would find room.
TEST_F(EngineGatesTest, WhoFindsNoRoomKeepsOthersOutForSomeMinutesAtMost) {
  EXPECT_TRUE(Place(Pod("c", "c1", 8), "n1"));
  EXPECT_TRUE(Place(Pod("c", "c2", 8), "n2"));
  EXPECT_TRUE(Place(Pod("c", "c3", 7), "n3"));
  See(Pod("a", "large", 8), {});
  See(Pod("a", "small", 1), kQuotaGate);
  EXPECT_EQ(Wanted(Pod("a", "next", 1)), "quota");
  EXPECT_THAT(Removed(test::Minutes(5) - Millis(1)), IsEmpty());
  EXPECT_THAT(Removed(Millis(1'001)), ElementsAre("small/quota"));
}

// An autoscaler is to see no pod that quota would refuse on what it brings.
TEST_F(EngineGatesTest, WithoutAnyGpuTheLinesOfTheQuotaSay) {
  for (const char* const node : {"n1", "n2", "n3"}) engine_.DeleteNode(NodeName(node), now_);
  const auto of_model = [](PodRequest request, const char* model) {
    request.models_any = {model};
    return request;
  };
  const PodRequest half = In("a", test::FractionPod("half", 500));
  EXPECT_EQ(Wanted(Pod("a", "p", 8)), "");
  EXPECT_EQ(Wanted(Pod("a", "p", 9)), "quota");
  EXPECT_EQ(Wanted(Member("a", 1, 2, 5)), "quota gang") << "the gang as a whole";
  EXPECT_EQ(Wanted(Pod("a", "p", INT64_MAX)), "quota") << "any number may be asked for";
  EXPECT_EQ(Wanted(of_model(Pod("a", "p", 9), "h100")), "quota");
  EXPECT_EQ(Wanted(of_model(Pod("a", "p", 9), "a100")), "") << "no line is about it";
  EXPECT_EQ(Wanted(half), "");
  Declare({.quotas = {Quota("org").Line("any", "4"), Quota("team-a").Under("org").Owns("a")}});
  EXPECT_EQ(Wanted(Pod("a", "p", 4)), "");
  EXPECT_EQ(Wanted(of_model(Pod("a", "p", 5), "a100")), "quota") << "the line of the org";
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "0")}});
  EXPECT_EQ(Wanted(half), "quota");
  // A node with GPUs is there, though none for the pod: it may want another kind.
  Nodes({StockNode("n4", 8)});
  EXPECT_EQ(Wanted(of_model(Pod("a", "p", 9), "a100")), "");
}

TEST_F(EngineGatesTest, NodesThatThePodDoesNotSelectLetNobodyIn) {
  NodeFacts other = StockNode("n4", 8);
  other.product = "NVIDIA-A100-SXM4-80GB";
  Nodes({other});
  EXPECT_TRUE(Place(Pod("a", "a1", 8), "n1"));
  PodRequest request = Pod("a", "p", 4);
  EXPECT_EQ(Wanted(request), "") << "of an A100 no line says anything";
  NodeConstraints demands;
  demands.has_affinity = true;
  demands.affinity = {{{"metadata.name", true, NodeTerm::Operator::kNotIn, {"n4"}}}};
  request.constraints = std::make_shared<const NodeConstraints>(demands);
  EXPECT_EQ(Wanted(request), "quota");
}

TEST_F(EngineGatesTest, BudgetsThatAreUsedUpCountAndThoseThatOnlyLookDoNot) {
  EXPECT_TRUE(Place(Pod("a", "a1", 8), "n1"));
  std::vector<GpuQuota> quotas = {Quota("team-a").Owns("a").Line("h100", "8")};
  quotas[0].mode = QuotaMode::kObserve;
  Declare({.quotas = quotas});
  EXPECT_EQ(Wanted(Pod("a", "p", 4)), "");
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "16")},
           .budgets = {DayBudget("team-a", 8)}});
  EXPECT_EQ(Wanted(Pod("a", "p", 4)), "");
  Pass(std::chrono::hours(1));  // the day ends half an hour later
  EXPECT_EQ(Wanted(Pod("a", "p", 4)), "quota");
}

TEST_F(EngineGatesTest, NobodyIsHeldBeforeTheClusterIsKnown) {
  Engine fresh{EngineOptions{}};
  fresh.SetPolicies(test::Declare({.quotas = {Quota("q").Owns("a").Line("h100", "0")}}), Defaults(),
                    now_);
  fresh.UpsertNode(StockNode("n1", 8), now_);
  EXPECT_TRUE(fresh.GatesFor(Pod("a", "p", 1), now_).empty());
  fresh.FinishRestore(now_);
  EXPECT_TRUE(fresh.GatesFor(Pod("a", "p", 1), now_).quota);
}

TEST_F(EngineGatesTest, TheGateGoesWhenThereIsQuotaInTheOrderOfWaiting) {
  const PodRequest running = Pod("a", "running", 8);
  ASSERT_TRUE(Place(running, "n1"));
  for (const char* name : {"w1", "w2", "w3"}) {
    now_ += Millis(1'000);
    See(Pod("a", name, 4), kQuotaGate);
  }
  EXPECT_THAT(Removed(), IsEmpty());
  EXPECT_EQ(Why(Pod("a", "w1", 4)), "WaitingForQuota") << "people are told as of any other pod";
  EXPECT_THAT(Removed(Millis(5'000)), IsEmpty());
  engine_.DeletePod(running.uid, now_);
  EXPECT_THAT(Removed(), ElementsAre("w1/quota", "w2/quota")) << "8 of 8, and no more than that";
  EXPECT_THAT(Removed(Millis(2'000)), IsEmpty()) << "they are on their way";
  See(Pod("a", "w1", 4), {});
  See(Pod("a", "w2", 4), {});
  EXPECT_EQ(Try(Pod("a", "w1", 4)), "n1 n2 n3");
  ASSERT_TRUE(Place(Pod("a", "w1", 4), "n1"));
  ASSERT_TRUE(Place(Pod("a", "w2", 4), "n1"));
  EXPECT_THAT(Removed(Millis(20'000)), IsEmpty()) << "the team has what it may have";
  engine_.DeletePod(Pod("a", "w2", 4).uid, now_);
  EXPECT_THAT(Removed(), ElementsAre("w3/quota"));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(EngineGatesTest, ARemovalThatDidNotWorkIsTriedAgain) {
  See(Pod("a", "w", 4), kQuotaGate);
  EXPECT_THAT(Removed(), ElementsAre("w/quota"));
  EXPECT_THAT(Removed(Millis(9'000)), IsEmpty());
  EXPECT_THAT(Removed(Millis(2'000)), ElementsAre("w/quota"));
  See(Pod("a", "w", 4), {});
  EXPECT_THAT(Removed(Millis(20'000)), IsEmpty());
}

TEST_F(EngineGatesTest, AQuotaThatIsRaisedOrTakenAwayOpensTheGate) {
  ASSERT_TRUE(Place(Pod("a", "a1", 8), "n1"));
  See(Pod("a", "w", 4), kQuotaGate);
  EXPECT_THAT(Removed(), IsEmpty());
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "12")}});
  EXPECT_THAT(Removed(), ElementsAre("w/quota"));
}

TEST_F(EngineGatesTest, ABudgetThatComesBackOpensTheGate) {
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "16")},
           .budgets = {DayBudget("team-a", 8)}});
  ASSERT_TRUE(Place(Pod("a", "a1", 8), "n1"));
  Pass(std::chrono::hours(1));  // the day ends half an hour later
  engine_.DeletePod(Pod("a", "a1", 8).uid, now_);
  See(Pod("a", "w", 4), kQuotaGate);
  EXPECT_THAT(Removed(), IsEmpty());
  EXPECT_EQ(Why(Pod("a", "w", 4)), "BudgetExhausted");
  EXPECT_THAT(Removed(std::chrono::hours(24)), ElementsAre("w/quota"));
}

TEST_F(EngineGatesTest, PodsThatEndOrAreDeletedLeaveTheLine) {
  ASSERT_TRUE(Place(Pod("a", "a1", 8), "n1"));
  for (const char* name : {"w1", "w2", "w3"}) See(Pod("a", name, 8), kQuotaGate);
  PodFacts failed = test::Pending(Pod("a", "w1", 8));
  failed.phase = PodPhase::kFailed;
  engine_.UpsertPod(failed, now_);
  engine_.DeletePod(Pod("a", "w2", 8).uid, now_);
  engine_.DeletePod(Pod("a", "a1", 8).uid, now_);
  EXPECT_THAT(Removed(), ElementsAre("w3/quota"));
}

TEST_F(EngineGatesTest, MembersOfAGangAreHeldUntilTheLastOneComes) {
  EXPECT_EQ(Wanted(Member("b", 0, 3, 2)), "gang");
  EXPECT_EQ(Wanted(Member("b", 0, 1, 2)), "") << "a gang of one";
  See(Member("b", 0, 3, 2), kGangGate);
  See(Member("b", 1, 3, 2), kGangGate);
  EXPECT_THAT(Removed(Millis(1'000)), IsEmpty());
  EXPECT_EQ(Wanted(Member("b", 2, 3, 2)), "") << "with it they are all there";
  See(Member("b", 2, 3, 2), {});
  EXPECT_THAT(Removed(), UnorderedElementsAre("m0/gang", "m1/gang"));
  // Nobody is placed before all can be.
  EXPECT_EQ(Try(Member("b", 2, 3, 2)), "GangIncomplete");
  EXPECT_THAT(engine_.Explain(Member("b", 2, 3, 2).name, now_)->pod.detail,
              HasSubstr("expected the scheduling gates of gang g to be gone, found 2 pods"));
  See(Member("b", 0, 3, 2), {});
  See(Member("b", 1, 3, 2), {});
  Pass(Millis(1'000));
  EXPECT_NE(Try(Member("b", 2, 3, 2)), "GangIncomplete");
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(EngineGatesTest, AMemberHeldBySomebodyElseIsNotThereYet) {
  See(Member("b", 0, 2, 2), kGangGate);
  See(Member("b", 1, 2, 2), {}, /*foreign=*/true);
  EXPECT_THAT(Removed(Millis(1'000)), IsEmpty());
  See(Member("b", 1, 2, 2), {});
  EXPECT_THAT(Removed(), ElementsAre("m0/gang"));
}

TEST_F(EngineGatesTest, AGangNeedsQuotaForAllOfItsPods) {
  ASSERT_TRUE(Place(Pod("a", "a1", 4), "n1"));
  EXPECT_EQ(Wanted(Member("a", 0, 2, 2)), "gang");
  EXPECT_EQ(Wanted(Member("a", 0, 4, 2)), "quota gang");
  for (int i = 0; i < 4; ++i) See(Member("a", i, 4, 2), {true, i < 3});
  EXPECT_THAT(Removed(), UnorderedElementsAre("m0/gang", "m1/gang", "m2/gang"));
  for (int i = 0; i < 3; ++i) See(Member("a", i, 4, 2), kQuotaGate);
  EXPECT_THAT(Removed(), IsEmpty());
  engine_.DeletePod(Pod("a", "a1", 4).uid, now_);
  EXPECT_THAT(Removed(), UnorderedElementsAre("m0/quota", "m1/quota", "m2/quota", "m3/quota"));
}

TEST_F(EngineGatesTest, AGateWithoutAReasonGoes) {
  See(Pod("c", "free", 1), {true, true});
  EXPECT_THAT(Removed(), ElementsAre("free/gang"));
  See(Pod("c", "free", 1), kQuotaGate);
  EXPECT_THAT(Removed(), ElementsAre("free/quota"));
}

TEST_F(EngineGatesTest, ThousandsOfGatedPodsCostATickLittle) {
  ASSERT_TRUE(Place(Pod("a", "a1", 8), "n1"));
  for (int i = 0; i < 5'000; ++i) See(Pod("a", fmt::format("w{}", i), 4), kQuotaGate);
  EXPECT_THAT(Removed(), IsEmpty());
  engine_.DeletePod(Pod("a", "a1", 8).uid, now_);
  // What is told is looked at in turns, not all at once.
  EXPECT_EQ(Removed().size(), 2U);
}

}  // namespace THIS_FILE
}  // namespace tranche
