// What is advised for small fleets, written as what is where.
#include "scheduler/advice/defragment.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/builders/cluster.h"
#include "test/builders/defrag_case.h"

namespace tranche {
namespace THIS_FILE {

using test::DefragCase;
using test::FractionPod;
using test::MigPod;
using test::StockNode;
using test::WholePod;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// "a [0,1]: p->b q->b", "a 0 3g.40gb: p->c"; with what is freed and lost.
std::string Text(const DefragEntry& entry) {
  std::string text = entry.profile.empty()
                         ? fmt::format("{} [{}]:", entry.node.str(), fmt::join(entry.gpus, ","))
                         : fmt::format("{} {} {}:", entry.node.str(), entry.gpu, entry.profile);
  for (const DefragMove& move : entry.moves) {
    text += fmt::format(" {}->{}", move.pod.name, move.to.str());
  }
  return text + fmt::format(" ({} for {})", entry.freed_milli, entry.lost_gpu_ms);
}

std::vector<std::string> Texts(const DefragAdvice& advice) {
  std::vector<std::string> texts;
  for (const DefragEntry& entry : advice.entries) texts.push_back(Text(entry));
  return texts;
}

std::vector<std::string> Advise(DefragCase& fleet) {
  return Texts(AdviseDefragmentation(fleet.Build(), DefragLimits{}));
}

// A pod alone on a GPU, and a GPU elsewhere that has room for it.
DefragCase TwoHalves() {
  DefragCase fleet;
  fleet.Node(StockNode("a", 1));
  fleet.Node(StockNode("b", 1));
  fleet.Pod(FractionPod("cheap", 300), "a", 10);
  fleet.Pod(FractionPod("dear", 500), "b", 900);
  return fleet;
}

TEST(Defragment, ThePodThatLosesLeastMovesToTheOther) {
  DefragCase fleet = TwoHalves();
  const DefragAdvice advice = AdviseDefragmentation(fleet.Build(), DefragLimits{});
  EXPECT_THAT(Texts(advice), ElementsAre("a [0]: cheap->b (1000 for 10)"));
  EXPECT_EQ(advice.whole_gpus_free, 0);
  EXPECT_EQ(advice.whole_gpus_possible, 1);
  EXPECT_EQ(advice.stranded_milli, 700 + 500);
  EXPECT_THAT(advice.notes, IsEmpty());
}

TEST(Defragment, NothingIsAdvisedWhereAllIsTidy) {
  DefragCase fleet;
  fleet.Node(StockNode("a", 2));
  fleet.Pod(FractionPod("half", 500), "a", 1);
  fleet.Pod(WholePod("whole", 1), "a", 1);
  EXPECT_THAT(Advise(fleet), IsEmpty());
}

TEST(Defragment, AnIdleGpuIsNotTakenToFreeAnother) {
  DefragCase fleet;
  fleet.Node(StockNode("a", 1));
  fleet.Node(StockNode("b", 4));
  fleet.Pod(FractionPod("only", 300), "a", 1);
  EXPECT_THAT(Advise(fleet), IsEmpty());
}

TEST(Defragment, AGpuOfAnotherModelIsNoNewPlace) {
  DefragCase fleet;
  fleet.Node(StockNode("a", 1));
  fleet.Node(StockNode("b", 1, "Tesla-T4", 15109));
  fleet.Pod(FractionPod("cheap", 300), "a", 10);
  fleet.Pod(FractionPod("dear", 300), "b", 900);
  EXPECT_THAT(Advise(fleet), IsEmpty());
}

TEST(Defragment, TheTightestHoleIsTakenAndEntriesBuildOnEachOther) {
  DefragCase fleet;
  for (const char* name : {"a", "b", "c", "d"}) fleet.Node(StockNode(name, 1));
  fleet.Pod(FractionPod("p", 200), "a", 1);
  fleet.Pod(FractionPod("q", 400), "b", 8);
  fleet.Pod(FractionPod("r", 600), "c", 50);
  fleet.Pod(FractionPod("s", 750), "d", 90);
  EXPECT_THAT(Advise(fleet), ElementsAre("a [0]: p->d (1000 for 1)", "b [0]: q->c (1000 for 8)"));
}

TEST(Defragment, OnOneNodePodsMoveBetweenItsGpus) {
  DefragCase fleet;
  fleet.Node(StockNode("a", 2));
  fleet.Pod(FractionPod("p", 200), "a", 1, 0);
  fleet.Pod(FractionPod("q", 400), "a", 8, 1);
  EXPECT_THAT(Advise(fleet), ElementsAre("a [0]: p->a (1000 for 1)"));
}

TEST(Defragment, WhoWouldComeBackToTheSameGpuIsNotMoved) {
  DefragCase fleet;
  fleet.Node(StockNode("a", 2));
  fleet.Pod(FractionPod("p", 500), "a", 1, 0);
  fleet.Pod(FractionPod("q", 300), "a", 2, 0);
  // Once p has gone GPU 0 has 700 free and GPU 1 has 800: the placement rules take the tighter one.
  fleet.Pod(FractionPod("r", 200), "a", 3, 1).evictable = false;
  EXPECT_THAT(Advise(fleet), IsEmpty());
}

TEST(Defragment, PodsThatMayNotMoveHoldTheirGpuAndAreNamed) {
  struct Row {
    const char* sentence;
    void (*hold)(AdvicePod&);
    const char* why;
  };
  const Row rows[] = {
      {"not evictable", [](AdvicePod& pod) { pod.evictable = false; }, "not to be evicted"},
      {"a guess", [](AdvicePod& pod) { pod.known = false; }, "devices are unknown"},
      {"of a gang",
       [](AdvicePod& pod) {
         PodRequest request = *pod.request;
         request.gang = "g1";
         pod.request = std::make_shared<const PodRequest>(request);
       },
       "gang g1"},
  };
  for (const Row& row : rows) {
    DefragCase fleet;
    fleet.Node(StockNode("a", 1));
    fleet.Node(StockNode("b", 1));
    row.hold(fleet.Pod(FractionPod("p", 100), "a", 1));
    fleet.Pod(FractionPod("q", 950), "b", 1);
    const DefragAdvice advice = AdviseDefragmentation(fleet.Build(), DefragLimits{});
    EXPECT_THAT(advice.entries, IsEmpty()) << row.sentence;
    EXPECT_THAT(advice.notes,
                ElementsAre(HasSubstr(fmt::format("a GPU 0: 0.9 of 1 are free, held by team/p: "))))
        << row.sentence;
    EXPECT_THAT(advice.notes, ElementsAre(HasSubstr(row.why))) << row.sentence;
  }
}

TEST(Defragment, TheNewNodeMustBeOpenSuitableAndHaveTheCpu) {
  struct Row {
    const char* sentence;
    void (*change)(AdviceNode&);
    bool advised;
  };
  const Row rows[] = {
      {"as it is", [](AdviceNode&) {}, true},
      {"closed", [](AdviceNode& node) { node.open = false; }, false},
      {"devices unknown", [](AdviceNode& node) { node.load.devices_unknown = true; }, false},
      {"little CPU",
       [](AdviceNode& node) {
         node.cpu_capacity = MilliCpu::Of(64'000);
         node.cpu_free = MilliCpu::Of(3'999);
       },
       false},
      {"CPU enough",
       [](AdviceNode& node) {
         node.cpu_capacity = MilliCpu::Of(64'000);
         node.cpu_free = MilliCpu::Of(4'000);
       },
       true},
  };
  for (const Row& row : rows) {
    DefragCase fleet;
    fleet.Node(StockNode("a", 1));
    fleet.Node(StockNode("b", 1));
    PodRequest cheap = FractionPod("cheap", 300);
    cheap.cpu = MilliCpu::Of(4'000);
    fleet.Pod(cheap, "a", 10);
    fleet.Pod(FractionPod("dear", 500), "b", 900).evictable = false;
    AdviceCase built = fleet.Build();
    row.change(built.nodes[1]);
    const DefragAdvice advice = AdviseDefragmentation(built, DefragLimits{});
    EXPECT_EQ(advice.entries.size(), row.advised ? 1u : 0u) << row.sentence;
  }
}

TEST(Defragment, PodsGoOnlyToNodesTheirSpecSuits) {
  DefragCase fleet;
  fleet.Node(StockNode("a", 1));
  fleet.Node(StockNode("b", 1));
  PodRequest picky = FractionPod("picky", 300);
  NodeConstraints constraints;
  constraints.selector = {{"zone", "east"}};
  picky.constraints = std::make_shared<const NodeConstraints>(constraints);
  fleet.Pod(picky, "a", 1);
  fleet.Pod(FractionPod("other", 600), "b", 9);
  const auto advice = [](const AdviceCase& now) {
    return Texts(AdviseDefragmentation(now, DefragLimits{}));
  };
  // The cheaper one may not go; so the other does.
  EXPECT_THAT(advice(fleet.Build()), ElementsAre(HasSubstr("other->a")));
  AdviceCase labelled = fleet.Build();
  labelled.nodes[1].labels = LabelText(Labels{{"zone", "east"}});
  EXPECT_THAT(advice(labelled), ElementsAre(HasSubstr("picky->b")));
  labelled.nodes[1].taints = {{"dedicated", "db", "NoSchedule"}};
  EXPECT_THAT(advice(labelled), ElementsAre(HasSubstr("other->a")));
}

// Eight GPUs of which two are held by single-GPU pods; a node that is full but for two GPUs.
DefragCase SixOfEight() {
  DefragCase fleet;
  fleet.Node(StockNode("a", 8));
  fleet.Node(StockNode("b", 8));
  fleet.Pod(WholePod("p", 1), "a", 100);
  fleet.Pod(WholePod("q", 1), "a", 50);
  fleet.Pod(WholePod("many", 6), "b", 99999);
  return fleet;
}

TEST(Defragment, RoomForAWaitingPodOfManyGpusIsMadeByMovingWholeGpuPods) {
  DefragCase fleet = SixOfEight();
  fleet.Waits(WholePod("train", 8));
  const DefragAdvice advice = AdviseDefragmentation(fleet.Build(), DefragLimits{});
  EXPECT_THAT(Texts(advice), ElementsAre("a [0,1]: p->b q->b (8000 for 150)"));
  EXPECT_EQ(advice.entries.front().waiting_served, 1);
  EXPECT_EQ(advice.whole_gpus_free, 8);
  EXPECT_EQ(advice.whole_gpus_possible, 8);
}

TEST(Defragment, RoomIsMadeForRecordedDemandButNotForWhomQuotaHolds) {
  DefragCase expected = SixOfEight();
  expected.Wanted(8, 1);
  EXPECT_THAT(Advise(expected), ElementsAre("a [0,1]: p->b q->b (8000 for 150)"));

  DefragCase over_quota = SixOfEight();
  over_quota.Waits(WholePod("train", 8), false);
  EXPECT_THAT(Advise(over_quota), IsEmpty());

  DefragCase has_room = SixOfEight();
  has_room.Node(StockNode("c", 8));
  has_room.Waits(WholePod("train", 8));
  EXPECT_THAT(Advise(has_room), IsEmpty());
}

TEST(Defragment, RoomForManyIsNotMadeByBreakingSuchRoomElsewhere) {
  DefragCase fleet;
  fleet.Node(StockNode("a", 4));
  fleet.Node(StockNode("b", 4));
  fleet.Pod(WholePod("p", 1), "a", 1);
  fleet.Waits(WholePod("train-0", 4));
  fleet.Waits(WholePod("train-1", 4));
  EXPECT_THAT(Advise(fleet), IsEmpty());
}

TEST(Defragment, OfANodesPodsThoseThatLoseLeastMakeTheRoom) {
  DefragCase fleet;
  fleet.Node(StockNode("a", 4));
  fleet.Node(StockNode("b", 4));
  fleet.Pod(WholePod("p", 1), "a", 500);
  fleet.Pod(WholePod("q", 1), "a", 20);
  fleet.Pod(WholePod("r", 1), "a", 30);
  fleet.Pod(WholePod("many", 2), "b", 99999);
  fleet.Waits(WholePod("train", 3));
  EXPECT_THAT(Advise(fleet), ElementsAre("a [1,2]: q->b r->b (3000 for 50)"));
}

TEST(Defragment, ReplicasOfANodeAreFreedAllOrNone) {
  // Which card a replica is on only the device plugin knows.
  DefragCase fleet;
  fleet.Node(test::SharedNode("a", 2, 4, true));
  fleet.Node(test::SharedNode("b", 1, 4, true));
  fleet.Pod(test::SharedPod("p", 1), "a", 5);
  fleet.Pod(test::SharedPod("q", 1), "a", 5);
  fleet.Pod(test::SharedPod("r", 1), "b", 70).evictable = false;
  EXPECT_THAT(Advise(fleet), ElementsAre("a [0,1]: p->b q->b (2000 for 10)"));
}

TEST(Defragment, ReplicasGoWhereNoIdleGpuWouldTakeThem) {
  DefragCase fleet;
  fleet.Node(test::SharedNode("a", 1, 4, true));
  fleet.Node(test::SharedNode("b", 2, 4, true));
  fleet.Pod(test::SharedPod("p", 1), "a", 5);
  fleet.Pod(test::SharedPod("r", 1), "b", 70).evictable = false;
  EXPECT_THAT(Advise(fleet), IsEmpty());
}

TEST(Defragment, WhereMemoryIsScarcerThanComputeMemoryDecides) {
  DefragCase fleet;
  fleet.Node(test::HamiNode("a", 2));
  fleet.Node(test::HamiNode("b", 1));
  fleet.Pod(test::HamiPod("p", 1, 9'000, 10), "a", 5, 0);
  fleet.Pod(test::HamiPod("q", 1, 7'000, 10), "a", 70, 1).evictable = false;
  fleet.Pod(test::HamiPod("r", 1, 5'000, 80), "b", 70).evictable = false;
  EXPECT_THAT(Advise(fleet), ElementsAre("a [0]: p->b (1000 for 5)"));
}

NodeFacts PlannedNode(const std::string& name, int gpus) {
  NodeFacts node = test::MigNode(name, gpus, 0, {{"1g.10gb", 56}, {"3g.40gb", 16}, {"7g.80gb", 8}});
  node.mig_planned = true;
  return node;
}

TEST(Defragment, FewInstancesMoveSoThatALargeProfileFits) {
  DefragCase fleet;
  fleet.Node(PlannedNode("a", 1));
  fleet.Node(PlannedNode("b", 1));
  fleet.Instance(MigPod("p", "1g.10gb", 1), "a", 10, 0, 0);
  fleet.Instance(MigPod("q", "1g.10gb", 1), "a", 20, 0, 4);
  fleet.Instance(MigPod("r", "1g.10gb", 1), "a", 20, 0, 5);
  fleet.Instance(MigPod("s", "1g.10gb", 1), "b", 90, 0, 0).evictable = false;
  fleet.Instance(MigPod("t", "3g.40gb", 1), "b", 90, 0, 4).evictable = false;
  EXPECT_THAT(Advise(fleet), ElementsAre("a 0 3g.40gb: p->b (428 for 10)"));
}

TEST(Defragment, ALargeProfilesRoomElsewhereIsNotUsedUpForIt) {
  DefragCase fleet;
  fleet.Node(PlannedNode("a", 1));
  fleet.Node(PlannedNode("b", 1));
  fleet.Instance(MigPod("p", "1g.10gb", 1), "a", 10, 0, 0);
  fleet.Instance(MigPod("q", "3g.40gb", 1), "a", 20, 0, 4).evictable = false;
  fleet.Instance(MigPod("t", "3g.40gb", 1), "b", 90, 0, 4).evictable = false;
  EXPECT_THAT(Advise(fleet), IsEmpty());
}

TEST(Defragment, AdviceIsCutAtItsLimits) {
  DefragCase fleet;
  for (const char* name : {"a", "b", "c", "d"}) fleet.Node(StockNode(name, 1));
  fleet.Pod(FractionPod("p", 100), "a", 1);
  fleet.Pod(FractionPod("q", 100), "a", 1);
  fleet.Pod(FractionPod("r", 300), "b", 5);
  fleet.Pod(FractionPod("s", 500), "c", 90);
  fleet.Pod(FractionPod("t", 500), "d", 90);
  const AdviceCase built = fleet.Build();
  EXPECT_THAT(Texts(AdviseDefragmentation(built, {.most_entries = 1, .most_moves_per_entry = 8})),
              ElementsAre("a [0]: p->c q->c (1000 for 2)"));
  EXPECT_THAT(Texts(AdviseDefragmentation(built, {.most_entries = 20, .most_moves_per_entry = 1})),
              ElementsAre("b [0]: r->c (1000 for 5)", "d [0]: t->a (1000 for 90)"));
}

TEST(Defragment, AnEmptyFleetNeedsNoAdvice) {
  DefragCase fleet;
  EXPECT_THAT(Advise(fleet), IsEmpty());
}

}  // namespace THIS_FILE
}  // namespace tranche
