// Groups that kube-scheduler places in one cycle of its own: it asks filter for every pod of the
// group before it binds any, and binds all that passed if they are enough.
#include <utility>

#include "scheduler/engine/gangs/gang_seats.h"
#include "test/unit/scheduler/engine/engine_quota_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Class;
using test::Quota;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class EngineGroupCyclesTest : public EngineQuotaTest {
 protected:
  EngineGroupCyclesTest() {
    for (const char* name : {"n1", "n2"}) Nodes({test::StockNode(name, 8)});
    engine_.FinishRestore(now_);
  }
  void Own(const std::string& gpus) {
    Declare({.quotas = {Quota("team-a").Owns("a").Line("any", gpus, "0")}});
  }
  static PodRequest GroupPod(const std::string& group, int number, int64_t gpus = 1) {
    PodRequest request = Pod("a", fmt::format("{}-{}", group, number), gpus);
    request.gang = "group/" + group;
    request.gang_size = kGangOfAll;
    return request;
  }
  std::vector<PodRequest> See(const std::string& group, int pods, int64_t gpus = 1) {
    std::vector<PodRequest> all;
    for (int i = 0; i < pods; ++i) {
      all.push_back(GroupPod(group, i, gpus));
      engine_.UpsertPod(test::Pending(all.back()), now_);
    }
    return all;
  }
  // What filter says of each, as in kube-scheduler's cycle: the node, or the reason.
  std::vector<std::string> Cycle(const std::vector<PodRequest>& group) {
    std::vector<std::string> said;
    for (const PodRequest& pod : group) {
      const std::vector<std::string> chosen = Filter(pod);
      said.push_back(chosen.empty() ? std::string(Describe(answer_.reason).code) : chosen.front());
    }
    return said;
  }
  int Passed(const std::vector<PodRequest>& group) {
    int passed = 0;
    for (const std::string& said : Cycle(group)) passed += said == "n1" || said == "n2";
    return passed;
  }
};

TEST_F(EngineGroupCyclesTest, OfAGroupBeyondTheQuotaNobodyPasses) {
  struct Row {
    const char* what;
    int told;  // 0: no PodGroup was seen
    std::string quota;
    int pods, passed;
  };
  for (const Row& row : {
           Row{"all within the quota", 4, "4", 4, 4},
           Row{"quota for half of it", 4, "2", 4, 0},
           Row{"quota for half of it, size not told", 0, "2", 4, 0},
           Row{"all within the quota, size not told", 0, "4", 4, 4},
           Row{"enough of it within the quota", 2, "3", 4, 2},
           Row{"fewer than its size are there", 4, "8", 3, 0},
           Row{"one by one, policy basic", 1, "2", 4, 4},
       }) {
    SCOPED_TRACE(row.what);
    Own(row.quota);
    engine_.SetGangSize("a", "group/train", row.told, now_);
    const auto group = See("train", row.pods);
    EXPECT_EQ(Passed(group), row.passed);
    for (const PodRequest& pod : group) engine_.DeletePod(pod.uid, now_);
    EXPECT_THAT(engine_.Audit(), IsEmpty());
  }
}

TEST_F(EngineGroupCyclesTest, WhoPassedIsBoundWhateverOthersAskMeanwhile) {
  for (const int told : {4, 0}) {
    SCOPED_TRACE(told);
    Own("4");
    engine_.SetGangSize("a", "group/train", told, now_);
    const auto group = See("train", 4, 1);
    const std::vector<std::string> nodes = Cycle(group);
    EXPECT_EQ(Try(Pod("a", "other", 1)), "WaitingForQuota");
    EXPECT_FALSE(Place(Pod("a", "pushy", 1), "n1"));
    for (std::size_t i = 0; i < group.size(); ++i) {
      EXPECT_TRUE(Place(group[i], nodes[i])) << group[i].name.name;
    }
    for (const PodRequest& pod : group) engine_.DeletePod(pod.uid, now_);
    engine_.DeletePod(PodUid("uid-other"), now_);
    engine_.DeletePod(PodUid("uid-pushy"), now_);
  }
}

TEST_F(EngineGroupCyclesTest, RoomIsHeldForTheWholeGroup) {
  engine_.SetGangSize("a", "group/train", 3, now_);
  EXPECT_EQ(Passed(See("train", 3, 8)), 0) << "two nodes of eight GPUs";
  engine_.SetGangSize("a", "group/small", 2, now_);
  const auto small = See("small", 2, 8);
  const std::vector<std::string> nodes = Cycle(small);
  EXPECT_EQ(Try(Pod("b", "other", 1)), "NoRoom");
  EXPECT_TRUE(Place(small[0], nodes[0]) && Place(small[1], nodes[1]));
}

// kube-scheduler's watch may be ahead of ours.
TEST_F(EngineGroupCyclesTest, PodsThatAreFirstHeardOfInTheCycle) {
  Own("2");
  std::vector<PodRequest> unseen;
  for (int i = 0; i < 4; ++i) unseen.push_back(GroupPod("train", i));
  EXPECT_THAT(Cycle(unseen), ElementsAre("n1", "n1", "ExceedsMaxQuota", "ExceedsMaxQuota"));
  EXPECT_EQ(Try(Pod("a", "other", 2)), "n1 n2") << "what the first were kept is nobody's any more";
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(EngineGroupCyclesTest, ASizeThatIsToldLaterTakesBackWhatAPartWasKept) {
  Own("8");
  const auto group = See("train", 2, 4);
  EXPECT_EQ(Passed(group), 2);
  engine_.SetGangSize("a", "group/train", 3, now_);
  EXPECT_EQ(Try(Pod("a", "other", 8)), "n1 n2")
      << "neither quota nor room is kept for two of three";
  EXPECT_THAT(Cycle(group), ElementsAre("GangIncomplete", "GangIncomplete"));
}

TEST_F(EngineGroupCyclesTest, WhatIsHeldEndsWhenTheGroupDoesNotCome) {
  Own("2");
  EXPECT_EQ(Passed(See("train", 2)), 2);
  EXPECT_EQ(Try(Pod("a", "other", 1)), "WaitingForQuota");
  Pass(std::chrono::seconds(121));
  EXPECT_EQ(Try(Pod("a", "other", 1)), "n1 n2");
}

TEST_F(EngineGroupCyclesTest, AGroupThatWaitedIsBroughtBackWhole) {
  Own("4");
  const PodRequest other = Pod("a", "other", 2);
  ASSERT_TRUE(Place(other, "n1"));
  engine_.SetGangSize("a", "group/train", 4, now_);
  const auto group = See("train", 4);
  EXPECT_EQ(Passed(group), 0);
  EXPECT_THAT(View(group[0]).detail, HasSubstr("4"));
  std::ignore = Requeued();
  engine_.DeletePod(other.uid, now_);
  Pass(std::chrono::seconds(1));
  EXPECT_THAT(Requeued(), ElementsAre("train-0", "train-1", "train-2", "train-3"));
  EXPECT_EQ(Passed(group), 4);
}

TEST_F(EngineGroupCyclesTest, ALonePodOfAGroupOfUnknownSizeIsPlaced) {
  Own("2");
  const auto group = See("train", 1);
  const std::vector<std::string> nodes = Cycle(group);
  ASSERT_TRUE(Place(group[0], nodes[0]));
  engine_.UpsertPod(BoundFacts(group[0], nodes[0]), now_);
  const PodRequest later = GroupPod("train", 1);
  EXPECT_EQ(Try(later), "n1 n2") << "it joins those that run";
}

// ---- launcher and workers, replacement

TEST_F(EngineGroupCyclesTest, MembersNeedDifferentModels) {
  Nodes({test::StockNode("small", 2, "NVIDIA-A100-SXM4-80GB")});
  PodRequest launcher = GroupPod("mpi", 0), worker = GroupPod("mpi", 1, 8);
  launcher.models_any = {"a100"};
  worker.models_any = {"h100"};
  PodRequest second = GroupPod("mpi", 2, 8);
  second.models_any = {"h100"};
  engine_.SetGangSize("a", "group/mpi", 3, now_);
  for (const PodRequest* pod : {&launcher, &worker, &second}) {
    engine_.UpsertPod(test::Pending(*pod), now_);
  }
  EXPECT_THAT(Cycle({launcher, worker, second}), ElementsAre("small", "n1", "n2"));
}

TEST_F(EngineGroupCyclesTest, NobodyOfItPassesWhereOneModelIsShort) {
  Nodes({test::StockNode("small", 2, "NVIDIA-A100-SXM4-80GB")});
  ASSERT_TRUE(Place(Pod("b", "holder", 2), "small"));
  PodRequest launcher = GroupPod("mpi", 0), worker = GroupPod("mpi", 1, 8);
  launcher.models_any = {"a100"};
  worker.models_any = {"h100"};
  engine_.SetGangSize("a", "group/mpi", 2, now_);
  engine_.UpsertPod(test::Pending(launcher), now_);
  engine_.UpsertPod(test::Pending(worker), now_);
  EXPECT_THAT(Cycle({worker, launcher}), ElementsAre("GangNoRoom", "GangNoRoom"));
}

TEST_F(EngineGroupCyclesTest, AMemberThatFailedIsReplacedNearTheOthers) {
  for (const char* name : {"r1-a", "r1-b", "r2-a"}) {
    NodeFacts node = test::StockNode(name, 8);
    node.labels =
        LabelText(Labels{{"topology.kubernetes.io/rack", std::string(name).substr(0, 2)}});
    Nodes({node});
  }
  engine_.SetGangSize("a", "group/train", 2, now_);
  auto group = See("train", 2, 8);
  const std::vector<std::string> nodes = Cycle(group);
  ASSERT_THAT(nodes, ElementsAre("r1-a", "r1-b"));
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(Place(group[i], nodes[i]));
    engine_.UpsertPod(BoundFacts(group[i], nodes[i]), now_);
  }
  PodFacts failed = BoundFacts(group[1], "r1-b");
  failed.phase = PodPhase::kFailed;
  engine_.UpsertPod(failed, now_);
  EXPECT_EQ(Try(GroupPod("train", 2, 8)).substr(0, 4), "r1-b");
}

}  // namespace THIS_FILE
}  // namespace tranche
