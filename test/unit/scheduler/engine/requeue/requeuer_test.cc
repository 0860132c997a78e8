// Which waiting pods are brought back, from state, rules and selection alone.
#include "scheduler/engine/requeue/requeuer.h"

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Quota;
using test::StockNode;
using test::TeamPod;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class RequeuerTest : public testing::Test, protected test::SelectionRoom {
 protected:
  static EngineOptions WithCaps() {
    EngineOptions options;
    options.namespace_caps = true;
    return options;
  }
  RequeuerTest() : SelectionRoom(WithCaps()) { Node(StockNode("n1", 4)); }
  // Filter found no node for it a moment ago.
  PodRecord& Refused(const PodRequest& request, Reason reason = Reason::kNoRoom) {
    PodRecord& record = Wait(request, reason);
    requeue_.NoteRefused(request.uid, now);
    return record;
  }
  // Quota refused it, and it waits in line.
  void Contends(const PodRequest& request, Reason reason = Reason::kWaitingForQuota) {
    Wait(request, reason);
    team_queue.contenders.insert(request.uid);
  }
  std::vector<std::string> RoomAt(Instant at) {
    requeue_.NoteRoom(IdOf("n1"), at);
    return Requeued();
  }

  Requeuer requeue_{cluster, namespaces, rules, team_queue, selection, foreseen, kept};
};

TEST_F(RequeuerTest, RoomBringsBackThoseRefusedAMomentBeforeThatFitInIt) {
  Runs(TeamPod("a", "runs", 2), "n1");
  Refused(TeamPod("a", "fits", 2));
  Refused(TeamPod("a", "large", 3));
  Refused(TeamPod("a", "gated", 1)).traits.gated = true;
  EXPECT_THAT(RoomAt(At(2)), ElementsAre("fits"));
  EXPECT_THAT(RoomAt(At(2)), IsEmpty()) << "it was brought back already";
}

TEST_F(RequeuerTest, ThoseRefusedLongerAgoWereTriedAgainByThemselves) {
  Refused(TeamPod("a", "p", 1));
  EXPECT_THAT(RoomAt(now + Millis(2'001)), IsEmpty());
}

TEST_F(RequeuerTest, APodIsBroughtBackEveryTenSecondsAtMost) {
  const PodRequest pod = TeamPod("a", "p", 1);
  Refused(pod);
  EXPECT_THAT(RoomAt(now), ElementsAre("p"));
  const std::pair<int64_t, std::size_t> cases[] = {{9, 0}, {10, 1}, {11, 0}, {20, 1}};
  for (const auto& [seconds, times] : cases) {
    requeue_.NoteRefused(pod.uid, At(seconds));
    EXPECT_THAT(RoomAt(At(seconds)), SizeIs(times)) << seconds;
  }
}

// The news may be the last: on nodes that are empty from then on nothing happens.
TEST_F(RequeuerTest, NewsThatComesTooSoonIsKeptUntilThePodsTurn) {
  const PodRequest pod = TeamPod("a", "p", 1);
  Refused(pod);
  EXPECT_EQ(requeue_.Due(), std::nullopt);
  EXPECT_THAT(RoomAt(At(1)), ElementsAre("p"));
  for (int64_t seconds : {3, 4}) {
    requeue_.NoteRetold(IdOf("n1"), At(seconds));
    EXPECT_EQ(requeue_.Due(), At(11));
  }
  requeue_.Tend(At(10));
  EXPECT_THAT(Requeued(), IsEmpty());
  requeue_.Tend(At(11));
  EXPECT_THAT(Requeued(), ElementsAre("p"));
  EXPECT_EQ(requeue_.Due(), std::nullopt);
}

TEST_F(RequeuerTest, ATurnIsLostByThoseThatRunOrWereBroughtBackSince) {
  const PodRequest runs = TeamPod("a", "runs", 1), since = TeamPod("a", "since", 1),
                   large = TeamPod("a", "large", 1);
  for (const PodRequest& pod : {runs, since, large}) Refused(pod);
  EXPECT_THAT(RoomAt(At(1)), SizeIs(3));
  requeue_.NoteRetold(IdOf("n1"), At(2));
  EXPECT_EQ(requeue_.Due(), At(11));
  Place(runs, "n1");
  EXPECT_TRUE(requeue_.IfFits(since.uid, At(5)));
  Runs(TeamPod("b", "fills", 3), "n1");
  Requeued();
  requeue_.Tend(At(11));
  EXPECT_THAT(Requeued(), IsEmpty());
  EXPECT_EQ(requeue_.Due(), std::nullopt);
}

TEST_F(RequeuerTest, QuotaAndTheRestOfTheGangMustAllowIt) {
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "1"),
                      Quota("watched").Owns("w").Line("h100", "1").Mode(QuotaMode::kObserve)}});
  Refused(TeamPod("a", "more", 2));
  Refused(TeamPod("w", "watched", 2));
  Refused(TeamPod("b", "member", 1)).gang = "b/train";
  cluster.open_gangs.insert("b/train");
  EXPECT_THAT(RoomAt(now), ElementsAre("watched"));
}

TEST_F(RequeuerTest, ANodeThatOpensBringsBackEightOfAllThatWait) {
  NodeFacts away = StockNode("n2", 8);
  away.cordoned = true;
  Node(away);
  for (int i = 0; i < 10; ++i) Wait(TeamPod("a", fmt::format("p{}", i), 1), Reason::kNoRoom);
  Wait(TeamPod("a", "new", 1));  // filter was not asked yet
  requeue_.NoteReopened(IdOf("n2"), now);
  EXPECT_THAT(Requeued(), IsEmpty()) << "it is still closed";
  Node(StockNode("n2", 8));
  requeue_.NoteReopened(IdOf("n2"), now);
  EXPECT_THAT(Requeued(), ElementsAre("p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"));
  requeue_.NoteRetold(IdOf("n2"), now);
  EXPECT_THAT(Requeued(), ElementsAre("p8", "p9"));
}

TEST_F(RequeuerTest, QuotaThatIsFreedBringsBackThoseItLetsInInTheirOrder) {
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "2")},
           .classes = {test::Class("top", 3), test::Class("train", 2)}});
  Contends(TeamPod("a", "low", 1, "train"));
  Contends(TeamPod("a", "high", 1, "top"));
  Contends(TeamPod("a", "large", 3, "top"));
  Contends(TeamPod("a", "room", 1, "top"), Reason::kNoRoom);
  requeue_.Admitted(now);
  EXPECT_THAT(Requeued(), ElementsAre("high", "low"));
}

TEST_F(RequeuerTest, APodFitsBesideItsOwnKeptDevices) {
  const PodRequest pod = TeamPod("a", "p", 4);
  PodRecord& record = Wait(pod, Reason::kNoRoom);
  earmarks.PutEarmark(pod.uid, record, DevicesOn(pod, "n1"), now);
  Wait(TeamPod("b", "other", 1), Reason::kNoRoom);
  EXPECT_TRUE(requeue_.IfFits(pod.uid, now));
  EXPECT_FALSE(requeue_.IfFits(PodUid("uid-other"), now));
  EXPECT_TRUE(requeue_.IfFits(pod.uid, now)) << "it still does, and is told once";
  EXPECT_THAT(Requeued(), ElementsAre("p"));
  EXPECT_NE(record.earmark, nullptr);
}

TEST_F(RequeuerTest, RoomInANamespaceBringsBackItsPodsAlone) {
  Node(test::HamiNode("h1", 2));
  NamespaceCap cap;
  cap.ns = "team";
  cap.name = "gpu";
  cap.memory = Mebibytes::Of(10'000);
  namespaces.caps.Set(cap);
  const PodRequest holds = test::HamiPod("holds", 1, 6'000);
  Place(holds, "h1");
  namespaces.NoteCapUse(IdOf("h1"));
  PodRequest apart = test::HamiPod("apart", 1, 6'000);
  apart.name.ns = "other";
  Wait(test::HamiPod("waits", 1, 6'000), Reason::kNamespaceQuota);
  Wait(apart, Reason::kNamespaceQuota);
  requeue_.Capped("team", now);
  EXPECT_THAT(Requeued(), IsEmpty());
  End(holds);
  requeue_.NoteCapRelease(holds.uid, now);
  EXPECT_THAT(Requeued(), ElementsAre("waits"));
  requeue_.NoteCapRelease(holds.uid, now);
  EXPECT_THAT(Requeued(), IsEmpty()) << "it held nothing any more";
}

}  // namespace THIS_FILE
}  // namespace tranche
