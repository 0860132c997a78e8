// Charges over a restart and a step of the clock, from a state alone.
#include "scheduler/engine/teams/metering.h"
#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::TeamPod;
using testing::ElementsAre;
using testing::IsEmpty;

class MeteringRestartTest : public testing::Test, protected test::StateRoom {
 protected:
  MeteringRestartTest() {
    Node(test::StockNode("n1", 8));
    Declare({.quotas = {test::Quota("team-a").Owns("a").Line("h100", "8")}});
  }
  // The ledger was written until 100 and has the pod open since 10.
  static MeterHistory OpenSinceTen(int interval = 0) {
    MeterHistory history;
    history.heartbeat = At(100);
    OpenInterval open;
    open.uid = PodUid("uid-p");
    open.pod = {"a", "p"};
    open.node = NodeName("n1");
    open.leaf = "team-a";
    open.parts = {{"h100", {kQuantaPerGpu, kQuantaPerGpu}}};
    open.since = At(10);
    open.running = At(20);
    open.interval = interval;
    history.open = {open};
    return history;
  }

  Metering meter_{cluster};
  const PodRequest pod_ = TeamPod("a", "p", 1);
};

TEST_F(MeteringRestartTest, WhatTheLedgerHadOpenIsTakenUpAndNotChargedTwice) {
  meter_.Restore(OpenSinceTen(3));
  ASSERT_NE(cluster.book.Find(pod_.uid), nullptr) << "held at once";
  PodRecord& record = Place(pod_, "n1");
  meter_.Close(pod_.uid, record, MeterKind::kClose, At(50));
  meter_.Open(pod_.uid, record, IdOf("n1"), {.at = At(150)});
  EXPECT_THAT(Metered(), IsEmpty());
  meter_.CloseUnclaimed(At(160));
  meter_.Close(pod_.uid, record, MeterKind::kClose, At(200));
  EXPECT_THAT(Metered(), ElementsAre("close p.3 at 200"));
}

TEST_F(MeteringRestartTest, WhatNobodyHoldsAfterARestartHasEnded) {
  const struct {
    const char* what;
    bool known, terminal;
    std::optional<Instant> ended_at;
    const char* event;
  } cases[] = {
      {"nobody knows the pod", false, false, {}, "close p.0 at 100 estimated"},
      {"it says when it ended", true, true, At(70), "close p.0 at 70"},
      {"it ended and does not say when", true, true, {}, "close p.0 at 100 estimated"},
      {"it said an end before it ran", true, true, At(5), "close p.0 at 20"},
      {"it still waits: it was never bound", true, false, {}, "void p.0 at 10"},
  };
  for (const auto& row : cases) {
    meter_.Restore(OpenSinceTen());
    if (row.known) {
      PodRecord& record = Wait(pod_);
      record.terminal = row.terminal;
      record.ended_at = row.ended_at;
    }
    meter_.CloseUnclaimed(At(200));
    EXPECT_THAT(Metered(), ElementsAre(row.event)) << row.what;
    EXPECT_EQ(cluster.book.Find(pod_.uid), nullptr) << row.what;
    if (row.known) cluster.ErasePod(pod_.uid);
  }
}

TEST_F(MeteringRestartTest, ANewUseOfAPodThatWasMeteredBeforeGetsTheNextNumber) {
  MeterHistory history;
  for (const auto& [kind, at] : {std::pair(MeterKind::kOpen, At(1)), {MeterKind::kClose, At(2)}}) {
    MeterEvent event;
    event.kind = kind;
    event.at = at;
    event.uid = pod_.uid;
    event.pod = pod_.name;
    event.interval = 4;
    history.events.push_back(event);
  }
  meter_.Restore(std::move(history));
  meter_.Open(pod_.uid, Place(pod_, "n1"), IdOf("n1"), {.at = At(60)});
  EXPECT_THAT(Metered(), ElementsAre("open p.5 at 60"));
}

// A leader that had not heard of the pod yet ended its use; the next one knows that in short.
TEST_F(MeteringRestartTest, NobodyIsChargedTwiceForWhatEndedInShort) {
  for (const bool all_seen : {false, true}) {
    MeterHistory history;
    history.ended_numbers = {{KeyOf(pod_.uid), 0, At(5)}, {KeyOf(pod_.uid), 1, At(142)}};
    Metering meter(cluster);
    meter.Restore(std::move(history));
    PodRecord& record = Place(pod_, "n1");
    if (all_seen) meter.ForgetGone({});
    meter.Open(pod_.uid, record, IdOf("n1"), {.at = At(118)});
    EXPECT_THAT(Metered(), ElementsAre("open p.2 at 142"));
    meter.Close(pod_.uid, record, MeterKind::kClose, At(200));
    EXPECT_THAT(Metered(), ElementsAre("close p.2 at 200"));
    cluster.ErasePod(pod_.uid);
  }
}

TEST_F(MeteringRestartTest, NothingIsUsedWhileTheClockIsSetForward) {
  const PodRequest idle = TeamPod("a", "q", 1);
  PodRecord& record = Runs(pod_, "n1");
  HeldWork work = DevicesOn(idle, "n1").work;
  Place(idle, "n1");
  cluster.book.Hold(idle.uid, work);  // its containers do not run yet
  meter_.StepClock(At(100), At(5'000));
  EXPECT_THAT(Metered(), ElementsAre("close p.0 at 100 ClockStep", "open p.1 at 5000 ClockStep",
                                     "running p.1 at 5000 ClockStep", "close q.0 at 100 ClockStep",
                                     "open q.1 at 5000 ClockStep"));
  meter_.Close(pod_.uid, record, MeterKind::kClose, At(5'100));
  EXPECT_THAT(Metered(), ElementsAre("close p.1 at 5100"));
}

// A bind under way that proves never to have happened costs nobody anything; one that happened is
// charged its time before the step as well.
TEST_F(MeteringRestartTest, AReservationMovesWithTheClock) {
  for (const bool bound : {false, true}) {
    const PodRequest pod = TeamPod("a", bound ? "yes" : "no", 1);
    PodRecord& record = Place(pod, "n1");
    record.reserved = std::exchange(record.node, NodeName());
    meter_.Open(pod.uid, record, IdOf("n1"), {.at = At(90)});
    meter_.StepClock(At(100), At(5'000));
    const std::string name = pod.name.name;
    EXPECT_THAT(Metered(), ElementsAre("open " + name + ".0 at 90", "void " + name + ".0 at 90",
                                       "open " + name + ".1 at 4990 ClockStep"));
    EXPECT_EQ(cluster.book.Find(pod.uid)->since, At(4'990));
    meter_.Close(pod.uid, record, bound ? MeterKind::kClose : MeterKind::kVoid, At(5'010));
    EXPECT_THAT(Metered(), ElementsAre(bound ? "close yes.1 at 5010" : "void no.1 at 4990"));
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
