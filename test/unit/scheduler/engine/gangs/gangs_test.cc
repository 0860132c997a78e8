// Gangs, placed all or none: from the parts left of them alone.
#include "scheduler/engine/gangs/gangs.h"

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Member;
using test::TeamPod;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class GangsTest : public testing::Test, protected test::RequeueRoom {
 protected:
  GangsTest() {
    for (const char* name : {"n1", "n2"}) Node(test::StockNode(name, 8));
    cluster.cluster_complete = true;
  }
  PodRecord& Joins(const PodRequest& request) {
    PodRecord& record = Wait(request);
    gangs_.Join(request.uid, record, now);
    return record;
  }
  // All of a gang that fills both nodes.
  void Gather() {
    for (int i = 0; i < 2; ++i) Joins(Member("a", "train", i, 2));
  }
  // What a member is told: its node, or why it has none.
  std::string Turn(int number) {
    const PodUid uid(fmt::format("uid-train-{}", number));
    const GangTurn turn = gangs_.TakeTurn(uid, *cluster.Find(uid), now);
    return turn.reason != Reason::kNone ? std::string(Describe(turn.reason).code) : turn.only.str();
  }
  // The member is bound to where its devices were kept.
  void Binds(int number) {
    const PodRequest request = Member("a", "train", number, 2);
    PodRecord& record = *cluster.Find(request.uid);
    const std::string node = record.earmark->node.str();
    earmarks.DropEarmark(request.uid, record, now);
    Runs(request, node);
    gangs_.NoteProgress(record, now);
  }
  const Gang& Train() const { return gangs_.books().all.at("a/train"); }

  GangParts parts_{cluster, rules, selection, held_nodes};
  Gangs gangs_{parts_, held_nodes, earmarks, reclaims, requeue, nominations};
};

TEST_F(GangsTest, NobodyIsPlacedBeforeAllAreThereThenEachHasItsOwnNode) {
  Joins(Member("a", "train", 0, 2)).last_reason = Reason::kGangIncomplete;
  EXPECT_EQ(Turn(0), "GangIncomplete");
  EXPECT_THAT(cluster.open_gangs, ElementsAre("a/train"));
  Joins(Member("a", "train", 1, 2));
  EXPECT_EQ(Turn(1), "n2");
  EXPECT_EQ(Turn(0), "n1");
  EXPECT_TRUE(Train().seated);
  EXPECT_THAT(Requeued(), ElementsAre("train-0")) << "the one that was refused comes back";
  EXPECT_THAT(cluster.outbox.reclaims().nominations, SizeIs(2));
  EXPECT_THAT(gangs_.TakeJudged(1), SizeIs(1)) << "so many at most, the rest with the next call";
  EXPECT_EQ(gangs_.Due(now), now);
  EXPECT_THAT(gangs_.TakeJudged(10), SizeIs(1));
  EXPECT_THAT(gangs_.TakeJudged(10), IsEmpty());
}

TEST_F(GangsTest, WithoutRoomForAllNobodyHoldsAnything) {
  const PodRequest runs = TeamPod("b", "runs", 1);
  Runs(runs, "n2");
  Gather();
  EXPECT_EQ(Turn(0), "GangNoRoom");
  EXPECT_EQ(gangs_.Describe(*cluster.Find(PodUid("uid-train-0"))),
            "expected room for 2 pods at once, found room for 1");
  EXPECT_EQ(cluster.Find(PodUid("uid-train-1"))->earmark, nullptr);
  End(runs);
  now = At(1);
  EXPECT_EQ(Turn(0), "n1");
}

TEST_F(GangsTest, AMemberThatGoesGivesTheSeatsOfAllBack) {
  Gather();
  EXPECT_EQ(Turn(0), "n1");
  const PodUid gone("uid-train-1");
  gangs_.Leave(gone, *cluster.Find(gone), now);
  EXPECT_FALSE(Train().seated);
  EXPECT_EQ(cluster.Find(PodUid("uid-train-0"))->earmark, nullptr);
  EXPECT_EQ(Turn(0), "GangIncomplete");
  const PodUid last("uid-train-0");
  gangs_.Leave(last, *cluster.Find(last), now);
  EXPECT_THAT(gangs_.books().all, IsEmpty());
  EXPECT_THAT(cluster.open_gangs, IsEmpty());
}

TEST_F(GangsTest, AStartedGangTakesMembersOneByOne) {
  Gather();
  EXPECT_EQ(Turn(0), "n1");
  Binds(0);
  EXPECT_FALSE(Train().started);
  Binds(1);
  EXPECT_TRUE(Train().started);
  EXPECT_THAT(cluster.open_gangs, IsEmpty());
  Joins(Member("a", "train", 2, 2));
  EXPECT_EQ(Turn(2), "") << "anywhere there is room";
}

TEST_F(GangsTest, SeatsThatNobodyCameForAreGivenBackAndTheirNodesAvoided) {
  Gather();
  EXPECT_EQ(Turn(0), "n1");
  Binds(0);
  EXPECT_FALSE(gangs_.LapseIfOver("a/train", At(119)));
  EXPECT_TRUE(gangs_.LapseIfOver("a/train", At(120)));
  EXPECT_EQ(cluster.Find(PodUid("uid-train-1"))->earmark, nullptr);
  EXPECT_THAT(Train().avoided, ElementsAre(testing::Pair(NodeName("n2"), At(180))));
  EXPECT_FALSE(gangs_.LapseIfOver("a/train", At(121))) << "its time begins anew";
}

TEST_F(GangsTest, PodsWithoutGpusAndObjectsOfControllersCountForTheSize) {
  PodRequest launcher = test::EmptyRequest("launcher");
  launcher.name.ns = "a";
  launcher.gang = "train";
  gangs_.SetSize("a/train", 3);
  Joins(Member("a", "train", 0, 0));
  Joins(Member("a", "train", 1, 0));
  EXPECT_EQ(Turn(0), "GangIncomplete");
  gangs_.NotePlainMember(launcher);
  EXPECT_EQ(Turn(0), "n1");
  gangs_.ForgetPlainMember(launcher.uid);
  EXPECT_EQ(gangs_.CountOf("a/train", Train()).plain, 0);
  gangs_.SetSize("a/train", 0);
  EXPECT_THAT(cluster.open_gangs, IsEmpty()) << "nobody says a size any more";
}

TEST_F(GangsTest, OfSeveralThatWaitTheHighestClassIsSeatedFirst) {
  Declare({.classes = {test::Class("top", 3)}});
  Gather();
  for (int i = 0; i < 2; ++i) {
    PodRequest member = Member("b", "serve", i, 2);
    member.priority_class = "top";
    Joins(member);
  }
  std::vector<SeatingTurn> turns;
  gangs_.NoteTurn("a/train", now, turns);
  gangs_.NoteTurn("b/serve", now, turns);
  ASSERT_THAT(turns, SizeIs(2));
  gangs_.SeatInTurn(turns, now);
  EXPECT_FALSE(Train().seated);
  EXPECT_TRUE(gangs_.books().all.at("b/serve").seated);
}

TEST_F(GangsTest, AfterARestartAGangThatRunsInPartIsCompletedUnlessItIsOld) {
  const std::pair<int64_t, bool> cases[] = {{60, false}, {600, true}};  // age, started
  for (const auto& [age, started] : cases) {
    now = At(1'000);
    const PodRequest bound = Member("a", "train", 0, 2), waits = Member("a", "train", 1, 2);
    PodRecord& record = Runs(bound, "n1");
    record.held_since = now - Millis(age * 1'000);
    gangs_.Join(bound.uid, record, now);
    Joins(waits);
    gangs_.Restore(now);
    EXPECT_EQ(Train().started, started) << age;
    EXPECT_EQ(Train().seated, !started) << age;
    for (const PodUid& uid : {bound.uid, waits.uid}) gangs_.Leave(uid, *cluster.Find(uid), now);
    End(bound);
    cluster.ErasePod(waits.uid);
  }
}

TEST_F(GangsTest, CountsOfAThousandMembersAreKeptAsTheyComeAndGo) {
  constexpr int kMembers = 1'000;
  for (int i = 0; i < kMembers; ++i) {
    PodRecord& record = Joins(Member("a", "huge", i, kMembers, 1));
    const PodUid uid = record.request->uid;
    if (i % 3 == 1) record.traits.gated = true;
    if (i % 7 == 2) record.traits.leaves_at = now;
    gangs_.Recount(uid, record);
  }
  EXPECT_TRUE(CountsHold(gangs_.books().all.at("a/huge"), cluster));
  const GangCount count = gangs_.CountOf("a/huge", gangs_.books().all.at("a/huge"));
  EXPECT_EQ(count.size, kMembers);
  EXPECT_EQ(count.waiting + count.gated, kMembers - 143);
  for (int i = 0; i < kMembers; i += 2) {
    const PodUid uid(fmt::format("uid-huge-{}", i));
    gangs_.Leave(uid, *cluster.Find(uid), now);
  }
  EXPECT_TRUE(CountsHold(gangs_.books().all.at("a/huge"), cluster));
}

TEST_F(GangsTest, AGangForWhichRoomIsMadeElsewhereIsNotDueAgainAndAgain) {
  Runs(TeamPod("b", "runs", 1), "n2");
  Gather();
  const PodUid uid("uid-train-0");
  earmarks.PutEarmark(uid, *cluster.Find(uid), DevicesOn(*cluster.Find(uid)->request, "n1"), now);
  reclaims.of_member[uid] = "r";
  cluster.NoteChange();
  std::vector<SeatingTurn> turns;
  gangs_.NoteTurn("a/train", now, turns);
  gangs_.SeatInTurn(turns, now);
  gangs_.TakeJudged(10);
  const std::optional<Instant> due = gangs_.Due(now);
  EXPECT_TRUE(!due || *due > now);
}

}  // namespace THIS_FILE
}  // namespace tranche
