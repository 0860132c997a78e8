// From holdings to quota and journal, from a state alone.
#include "scheduler/engine/teams/metering.h"

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Quota;
using test::TeamPod;
using testing::ElementsAre;
using testing::IsEmpty;

class MeteringTest : public testing::Test, protected test::StateRoom {
 protected:
  MeteringTest() { Node(test::StockNode("n1", 8)); }
  void DeclareTeam() { Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "8")}}); }
  // Bound at 0 and charged from then on.
  PodRecord& Charged(const PodRequest& request) {
    PodRecord& record = Place(request, "n1");
    meter_.Open(request.uid, record, IdOf("n1"), {.at = now});
    return record;
  }
  void RunsAt(const PodRequest& request, Instant at) {
    cluster.latest = now;
    PodFacts pod = test::Bound(request, "n1");
    pod.running_at = at;
    meter_.NoteRunning(request.uid, pod);
  }

  Metering meter_{cluster};
  const PodRequest pod_ = TeamPod("a", "p", 2);
};

TEST_F(MeteringTest, APodIsChargedOnceToItsTeamUntilItEnds) {
  DeclareTeam();
  PodRecord& record = Charged(pod_);
  meter_.Open(pod_.uid, record, IdOf("n1"), {.at = now});
  ASSERT_NE(cluster.book.Find(pod_.uid), nullptr);
  EXPECT_EQ(cluster.book.Find(pod_.uid)->leaf, "team-a");
  EXPECT_EQ(cluster.book.Find(pod_.uid)->parts[0].charge.compute, 2 * kQuantaPerGpu);
  now = At(60);
  RunsAt(pod_, At(90));
  RunsAt(pod_, At(90));
  meter_.Close(pod_.uid, record, MeterKind::kClose, At(100));
  meter_.Close(pod_.uid, record, MeterKind::kClose, At(200));
  EXPECT_EQ(cluster.book.Find(pod_.uid), nullptr);
  EXPECT_THAT(Metered(), ElementsAre("open p.0 at 0", "running p.0 at 60", "close p.0 at 100"))
      << "the clock of the kubelet is ahead of ours";
  meter_.Open(pod_.uid, record, IdOf("n1"), {.at = At(300), .estimated = true});
  EXPECT_THAT(Metered(), ElementsAre("open p.1 at 300 estimated"));
}

TEST_F(MeteringTest, ABindThatNeverCameTrueChargesNothing) {
  PodRecord& record = Charged(pod_);
  meter_.Close(pod_.uid, record, MeterKind::kVoid, At(50));
  EXPECT_THAT(Metered(), ElementsAre("open p.0 at 0", "void p.0 at 0"));
}

TEST_F(MeteringTest, TentativePlacementsAndNodesNobodyDescribedAreNotCharged) {
  Holding claim;
  claim.uid = pod_.uid;
  claim.kind = HoldingKind::kTentative;
  PodRecord& record = Wait(pod_);
  claim.request = record.request;
  claim.allocation = DevicesOn(pod_, "n1").allocation;
  cluster.nodes[IdOf("n1")]->state.Hold(claim);
  meter_.Open(pod_.uid, record, IdOf("n1"), {.at = now});
  const NodeId later = cluster.InternNode(NodeName("later"));
  claim.kind = HoldingKind::kAllocation;
  cluster.nodes[later]->state.Hold(claim);
  record.node = NodeName("later");
  record.held_since = At(5);
  meter_.OpenUncharged(later, At(10));
  EXPECT_THAT(Metered(), IsEmpty());
  Node(test::StockNode("later", 8));
  meter_.OpenUncharged(later, At(20));
  EXPECT_THAT(Metered(), ElementsAre("open p.0 at 5"));
}

// A node that changes is looked through for pods that are not charged yet; one that waits for the
// room a plan makes has nothing there so far.
TEST_F(MeteringTest, AnEarmarkIsNotChargedWhenItsNodeChanges) {
  Holding earmark;
  earmark.uid = pod_.uid;
  earmark.kind = HoldingKind::kEarmark;
  PodRecord& record = Wait(pod_);
  earmark.request = record.request;
  earmark.allocation = DevicesOn(pod_, "n1").allocation;
  cluster.nodes[IdOf("n1")]->state.Hold(earmark);
  meter_.OpenUncharged(IdOf("n1"), At(10));
  EXPECT_EQ(cluster.book.Find(pod_.uid), nullptr);
  EXPECT_THAT(Metered(), IsEmpty());
}

TEST_F(MeteringTest, WhatWasMeteredWhileNobodyHeardOfTheNodeGoesBack) {
  const PodRequest ends = TeamPod("a", "ends", 2);
  Charged(pod_);
  PodRecord& ended = Charged(ends);
  Metered();
  cluster.nodes[IdOf("n1")]->lost_since = At(100);
  meter_.Close(ends.uid, ended, MeterKind::kClose, At(160));
  End(ends);
  meter_.EndOutage(IdOf("n1"), At(200));
  meter_.EndOutage(IdOf("n1"), At(300));
  EXPECT_THAT(Metered(), ElementsAre("refund ends.0 from 100 to 160 NodeLost",
                                     "close ends.0 at 160", "refund p.0 from 100 to 200 NodeLost"));
}

TEST_F(MeteringTest, AnEvictedPodGetsTheWorkItLostBack) {
  const struct {
    const char* pod;
    QuotaState state;
    std::optional<Instant> checkpoint;
    std::vector<std::string> refunds;
  } cases[] = {
      {"owns", QuotaState::kInQuota, {}, {"refund owns.0 from 0 to 600 LostWork"}},
      {"saved", QuotaState::kInQuota, At(500), {"refund saved.0 from 500 to 600 LostWork"}},
      {"saves", QuotaState::kBorrowed, At(500), {"refund saves.0 from 500 to 600 LostWork"}},
      {"borrows", QuotaState::kBorrowed, {}, {}},
  };
  for (const auto& row : cases) {
    now = At(0);
    const PodRequest pod = TeamPod("a", row.pod, 2);
    PodRecord& record = Charged(pod);
    RunsAt(pod, now);
    Metered();
    record.traits.evicted_at = At(590);
    record.traits.evicted_state = row.state;
    record.traits.checkpoint = row.checkpoint;
    meter_.Close(pod.uid, record, MeterKind::kClose, At(600));
    std::vector<std::string> expected = row.refunds;
    expected.push_back(std::string("close ") + row.pod + ".0 at 600");
    EXPECT_EQ(Metered(), expected);
    End(pod);
  }
}

// A node that comes back under its name has its pods since before it went.
TEST_F(MeteringTest, NothingIsMeteredFromBeforeItsLastEnd) {
  PodRecord& record = Charged(pod_);
  meter_.Close(pod_.uid, record, MeterKind::kClose, At(600));
  meter_.Open(pod_.uid, record, IdOf("n1"), {.at = At(100)});
  meter_.Close(pod_.uid, record, MeterKind::kClose, At(700));
  EXPECT_THAT(Metered(), ElementsAre("open p.0 at 0", "close p.0 at 600", "open p.1 at 600",
                                     "close p.1 at 700"));
}

TEST_F(MeteringTest, ATeamMayGetItsQuotaBackWhenTheDeletionBegins) {
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "2").FreedAtDeletion(),
                      Quota("team-b").Owns("b").Line("h100", "2")}});
  const PodRequest waits = TeamPod("b", "waits", 2);
  Charged(pod_);
  Charged(waits);
  PodFacts pod = test::Bound(pod_, "n1"), other = test::Bound(waits, "n1");
  EXPECT_FALSE(meter_.ReleaseEarly(pod_.uid, pod));
  pod.terminating = other.terminating = true;
  EXPECT_TRUE(meter_.ReleaseEarly(pod_.uid, pod));
  EXPECT_FALSE(meter_.ReleaseEarly(pod_.uid, pod)) << "once";
  EXPECT_FALSE(meter_.ReleaseEarly(waits.uid, other)) << "its team waits for the end";
  EXPECT_TRUE(cluster.book.Find(pod_.uid)->released);
}

TEST_F(MeteringTest, ATeamThatGetsAQuotaHasUsedWhatItRunsFromThen) {
  Charged(pod_);
  RunsAt(pod_, now);
  Metered();
  DeclareTeam();
  meter_.Adopt(At(100));
  meter_.Adopt(At(200));
  EXPECT_THAT(Metered(), ElementsAre("close p.0 at 100", "open p.1 at 100", "running p.1 at 100"));
  EXPECT_EQ(cluster.book.Find(pod_.uid)->leaf, "team-a");
}

// Its devices are its own also while a plugin restarts, and while the node is away.
TEST_F(MeteringTest, ANodeThatTellsNoGpusEndsNoChargeWhenTheQuotaChanges) {
  for (const bool there : {true, false}) {
    const PodRequest pod = TeamPod("a", there ? "restarting" : "away", 2);
    Declare({});
    Node(test::StockNode("n1", 8));
    PodRecord& record = Place(pod, "n1");
    meter_.Open(pod.uid, record, IdOf("n1"), {.at = now});
    Metered();
    if (there) {
      Node(test::StockNode("n1", 0));
    } else {
      cluster.nodes[IdOf("n1")]->state.SetFacts(std::nullopt, 0);
    }
    DeclareTeam();
    meter_.Adopt(At(100));
    const HeldWork* work = cluster.book.Find(pod.uid);
    ASSERT_NE(work, nullptr) << pod.name.str();
    EXPECT_EQ(work->leaf, "team-a");
    ASSERT_EQ(work->parts.size(), 1U);
    EXPECT_EQ(work->parts[0].charge.compute, 2 * kQuantaPerGpu);
    End(pod);
  }
}

// A bind under way that proves never to have happened costs nobody anything.
TEST_F(MeteringTest, AReservationIsOneUseThoughItsQuotaChanges) {
  const PodRequest pod = TeamPod("a", "p", 2);
  Declare({});
  Node(test::StockNode("n1", 8));
  PodRecord& record = Place(pod, "n1");
  record.reserved = std::exchange(record.node, NodeName());
  meter_.Open(pod.uid, record, IdOf("n1"), {.at = now});
  DeclareTeam();
  meter_.Adopt(At(100));
  EXPECT_EQ(cluster.book.Find(pod.uid)->leaf, "team-a");
  meter_.Close(pod.uid, record, MeterKind::kVoid, At(120));
  EXPECT_THAT(Metered(),
              ElementsAre("open p.0 at 0", "void p.0 at 0", "open p.1 at 0", "void p.1 at 0"));
}

}  // namespace THIS_FILE
}  // namespace tranche
