// What the ledger is told: who held which GPUs, from when to when, once.
#include "test/unit/scheduler/engine/engine_quota_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Bound;
using test::DayBudget;
using test::Quota;
using test::StockNode;
using testing::ElementsAre;
using testing::IsEmpty;

class EngineMeteringTest : public EngineQuotaTest {
 protected:
  EngineMeteringTest() {
    Nodes({StockNode("n1", 8), StockNode("n2", 8)});
    Declare(Team());
  }
  static test::Objects Team() {
    return {.quotas = {Quota("team-a").Owns("a").Line("h100", "8")},
            .budgets = {DayBudget("team-a", 100)}};
  }
  void To(int64_t seconds) {
    now_ = At(seconds);
    engine_.Tick(now_);
  }
  // GPU-seconds of the day's budget.
  int64_t Used(Engine& engine) {
    return static_cast<int64_t>(engine.Budgets(now_)[0].view.used * 3600 / kGpuHour);
  }

  // A pod that is bound at `bound`, whose kubelet says that it started and finished so long after,
  // and of whose end we hear then, is charged until `end`. Seconds; but for `bound` since then.
  void Lives(const std::string& name, int64_t bound, int64_t started, int64_t finished,
             int64_t heard, int64_t end) {
    const PodRequest pod = Pod("a", name, 1);
    Place(pod, "n1");
    PodFacts facts = BoundFacts(pod, "n1");
    facts.started_at = At(bound + started);
    engine_.UpsertPod(facts, now_);
    To(bound + heard);
    facts.phase = PodPhase::kSucceeded;
    facts.finished_at = At(bound + finished);
    engine_.UpsertPod(facts, now_);
    EXPECT_THAT(Metered(),
                testing::ElementsAre(fmt::format("open {}.0 at {}", name, bound),
                                     fmt::format("close {}.0 at {}", name, bound + end)));
  }

  // What a ledger would give back at a restart.
  MeterHistory History(int64_t heartbeat) {
    MeterHistory history;
    history.heartbeat = At(heartbeat);
    history.events = journal_;
    history.closings = closings_;
    std::map<PodUid, OpenInterval> open;
    for (const MeterEvent& event : journal_) {
      switch (event.kind) {
        case MeterKind::kOpen:
          open[event.uid] = {event.uid,   event.interval, event.pod,
                             event.node,  event.leaf,     event.workload_class,
                             event.parts, event.at,       std::nullopt};
          break;
        case MeterKind::kRunning:
          open[event.uid].running = event.at;
          break;
        case MeterKind::kClose:
        case MeterKind::kVoid:
          open.erase(event.uid);
          break;
        case MeterKind::kRefund:
          break;
      }
    }
    for (auto& [uid, interval] : open) history.open.push_back(interval);
    return history;
  }
  // A second engine that has heard the history, the policies and the nodes.
  std::unique_ptr<Engine> Restarted(int64_t heartbeat) {
    auto next = std::make_unique<Engine>(EngineOptions{});
    next->Restore(History(heartbeat));
    next->SetPolicies(test::Declare(Team()), Defaults(), now_);
    for (const NodeName& name : names_) next->UpsertNode(StockNode(name.str(), 8), now_);
    return next;
  }
  static std::vector<std::string> Told(Engine& engine) {
    std::vector<std::string> texts;
    engine.effects().closings.clear();
    for (const MeterEvent& event : std::exchange(engine.effects().metering, {})) {
      texts.push_back(Text(event));
    }
    return texts;
  }
};

TEST_F(EngineMeteringTest, PodIsChargedFromItsBindingToItsEnd) {
  const PodRequest one = Pod("a", "one", 2);
  const BindPlan plan = Bind(one, "n1");
  EXPECT_THAT(Metered(), ElementsAre("open one.0 at 0"));
  EXPECT_EQ(journal_[0].leaf, "team-a");
  EXPECT_EQ(journal_[0].node.str(), "n1");
  EXPECT_EQ(journal_[0].parts, (std::vector<ModelCharge>{{"h100", test::Gpus(2)}}));
  EXPECT_EQ(journal_[0].allocation, plan.allocation);
  EXPECT_EQ(engine_.HeldQuanta(), test::Gpus(2));
  To(1);
  engine_.SettleBind(one.uid, NodeName("n1"), BindOutcome::kBound, now_);
  PodFacts facts = BoundFacts(one, "n1");
  facts.running_at = At(30);
  To(60);
  engine_.UpsertPod(facts, now_);
  engine_.UpsertPod(facts, now_);
  EXPECT_THAT(Metered(), ElementsAre("running one.0 at 30"));
  To(200);
  facts.phase = PodPhase::kSucceeded;
  facts.finished_at = At(150);
  engine_.UpsertPod(facts, now_);
  engine_.UpsertPod(facts, now_);
  engine_.DeletePod(one.uid, now_);
  engine_.DeletePod(one.uid, now_);
  EXPECT_THAT(Metered(), ElementsAre("close one.0 at 150"));
  EXPECT_EQ(Used(engine_), 300);
  EXPECT_EQ(engine_.HeldQuanta(), Charge{});
  EXPECT_THAT(engine_.effects().metering, IsEmpty());
}

TEST_F(EngineMeteringTest, BindingThatDidNotHappenChargesNothing) {
  const PodRequest failed = Pod("a", "failed", 1), lost = Pod("a", "lost", 1),
                   elsewhere = Pod("a", "elsewhere", 1);
  for (const PodRequest& pod : {failed, lost, elsewhere}) {
    Bind(pod, "n1");
    engine_.SettleBind(pod.uid, NodeName("n1"), BindOutcome::kUnknown, now_);
  }
  Metered();
  To(50);
  engine_.SettleBind(failed.uid, NodeName("n1"), BindOutcome::kNotBound, now_);
  engine_.DeletePod(lost.uid, now_);
  PodFacts facts = Bound(elsewhere, "n2");
  facts.bound_at = At(20);
  engine_.UpsertPod(facts, now_);
  EXPECT_THAT(Metered(), ElementsAre("void failed.0 at 0", "void lost.0 at 0",
                                     "void elsewhere.0 at 0", "open elsewhere.1 at 20"));
  EXPECT_EQ(Used(engine_), 30);
  // And once more, for the one that stayed.
  EXPECT_EQ(Bind(failed, "n1").kind, BindPlan::Kind::kWrite);
  EXPECT_THAT(Metered(), ElementsAre("open failed.1 at 50"));
}

// What teams' histograms of waiting are made of.
TEST_F(EngineMeteringTest, HowLongWorkWaitedIsToldOnceItIsBound) {
  const auto starts = [this] {
    std::vector<std::string> texts;
    for (const StartedWork& start : std::exchange(engine_.effects().reclaims.starts, {})) {
      texts.push_back(fmt::format("{} {} {}", start.leaf, start.waited.count() / 1000,
                                  start.within_nominal ? "within" : "beyond"));
    }
    return texts;
  };
  const PodRequest waits = Pod("a", "waits", 8), unowned = Pod("nobodys", "unowned", 1),
                   foreign = Pod("a", "foreign", 1);
  for (const PodRequest& pod : {waits, unowned}) EXPECT_NE(Try(pod), "");
  To(60);
  Bind(waits, "n1");
  EXPECT_THAT(starts(), IsEmpty()) << "not before it is known to be bound";
  engine_.SettleBind(waits.uid, NodeName("n1"), BindOutcome::kBound, now_);
  engine_.UpsertPod(BoundFacts(waits, "n1"), now_);
  EXPECT_THAT(starts(), ElementsAre("team-a 60 within"));
  To(90);
  Bind(unowned, "n2");
  engine_.UpsertPod(BoundFacts(unowned, "n2"), now_);  // the watch is faster than the answer
  engine_.SettleBind(unowned.uid, NodeName("n2"), BindOutcome::kBound, now_);
  EXPECT_THAT(starts(), ElementsAre(" 90 beyond"));
  engine_.UpsertPod(Bound(foreign, "n2"), now_);
  EXPECT_THAT(starts(), IsEmpty()) << "another scheduler placed it";
}

// The answer to the bind was lost and the pod is gone when it is read; a watch that is late then
// shows that it had run. Under a number that was used nothing would be added to the ledger.
TEST_F(EngineMeteringTest, WhatALateWatchShowsOfAPodThatIsGoneIsCharged) {
  const PodRequest lost = Pod("a", "lost", 1);
  Bind(lost, "n1");
  engine_.SettleBind(lost.uid, NodeName("n1"), BindOutcome::kUnknown, now_);
  To(30);
  engine_.SettleBind(lost.uid, NodeName("n1"), BindOutcome::kNotBound, now_);
  engine_.DeletePod(lost.uid, now_);
  PodFacts late = Bound(lost, "n1");
  late.bound_at = At(10);
  engine_.UpsertPod(late, now_);
  late.phase = PodPhase::kSucceeded;
  late.finished_at = At(25);
  engine_.UpsertPod(late, now_);
  engine_.DeletePod(lost.uid, now_);
  EXPECT_THAT(Metered(), ElementsAre("open lost.0 at 0", "void lost.0 at 0", "open lost.1 at 10",
                                     "close lost.1 at 25"));
}

TEST_F(EngineMeteringTest, TimesOfOtherClocksStayInThePast) {
  const PodRequest ahead = Pod("a", "ahead", 1), silent = Pod("a", "silent", 1);
  PodFacts facts = Bound(ahead, "n1");
  facts.bound_at = At(500);
  facts.running_at = At(900);
  engine_.UpsertPod(facts, now_);
  engine_.UpsertPod(Bound(silent, "n1"), now_);
  EXPECT_THAT(Metered(), ElementsAre("open ahead.0 at 0", "running ahead.0 at 0",
                                     "open silent.0 at 0 estimated"));
  To(10);
  facts.phase = PodPhase::kFailed;
  facts.finished_at = At(-40);
  engine_.UpsertPod(facts, now_);
  EXPECT_THAT(Metered(), ElementsAre("close ahead.0 at 0"));
}

// A clock that is an hour wrong costs nobody an hour.
TEST_F(EngineMeteringTest, EndsAreWhenTheyAreHeardWhereTheKubeletsClockIsAnother) {
  struct Row {
    std::string clock;  // the kubelet's; times are seconds since the pod was bound, by ours
    int64_t started, finished, heard, end;
  };
  int64_t bound = 0;
  for (const Row& row : {Row{"right", 5, 50, 51, 50}, Row{"cut-to-seconds", -1, 50, 51, 50},
                         Row{"an-hour-behind", -3598, -3500, 100, 100},
                         Row{"an-hour-ahead", 3602, 3700, 101, 101}}) {
    bound += 10'000;
    To(bound);
    Lives(row.clock, bound, row.started, row.finished, row.heard, row.end);
  }
}

// Found by seeds 50059, 61704 and 73116: the kubelet took them up later than the clocks differ by.
// And by 7002711 and 7004998: news that are always late are no sign of a clock that is ahead.
TEST_F(EngineMeteringTest, EndsAreByOurClockWhereTheClustersIsAnother) {
  struct Row {
    std::string clock;         // ours
    int64_t earliest, latest;  // how far it is ahead at least, and at most
    int64_t finished, heard, end;
  };
  engine_.FinishRestore(now_);
  int64_t bound = 0;
  for (const Row& row :
       {Row{"right", 0, 1, 50, 51, 50}, Row{"right, and news are late", 0, 1, 50, 90, 50},
        Row{"it may be right", -5, 60, 50, 90, 50}, Row{"ahead", 60, 61, 50, 111, 110},
        Row{"ahead and the end is heard at once", 61, 62, 50, 105, 105},
        Row{"behind", -61, -60, 130, 111, 70},
        Row{"behind, by more than it ran", -61, -60, 40, 111, 0}}) {
    bound += 10'000;
    engine_.StepClock(now_, At(bound));
    To(bound);
    engine_.NoteClusterTime(At(bound - row.latest), At(bound - row.earliest), now_);
    Lives(row.clock, bound, 5, row.finished, row.heard, row.end);
  }
}

// Found by seed 5007863: no answer came since our clock was set.
TEST_F(EngineMeteringTest, ClocksDifferByWhatOursWasSetBy) {
  engine_.NoteClusterTime(now_, now_, now_);
  To(100);
  engine_.StepClock(now_, At(125));
  To(125);
  Lives("runs", 125, 5, 35, 61, 60);
}

// Found by seed 5007931: what is heard of only when it is bound began by the cluster's clock.
TEST_F(EngineMeteringTest, BeginsOfOthersAreByOurClockToo) {
  engine_.FinishRestore(now_);
  To(1'000);
  engine_.NoteClusterTime(At(400), At(400), now_);
  PodFacts theirs = Bound(Pod("a", "theirs", 1), "n1");
  theirs.bound_at = At(390);
  engine_.UpsertPod(theirs, now_);
  To(1'020);
  theirs.phase = PodPhase::kSucceeded;
  theirs.finished_at = At(410);
  engine_.UpsertPod(theirs, now_);
  EXPECT_THAT(Metered(), ElementsAre("open theirs.0 at 990", "close theirs.0 at 1010"));
}

TEST_F(EngineMeteringTest, ClocksOfWhichNothingIsKnownWereTheSame) {
  To(100);
  engine_.StepClock(now_, At(125));
  To(125);
  Lives("runs", 125, 5, 35, 61, 60);
}

TEST_F(EngineMeteringTest, HoursOfALostNodeGoBack) {
  const PodRequest stays = Pod("a", "stays", 1), ends = Pod("a", "ends", 1),
                   binding = Pod("a", "binding", 1);
  Place(stays, "n1");
  Place(ends, "n1");
  NodeFacts lost = StockNode("n1", 8);
  lost.ready = false;
  lost.lost_since = At(60);
  To(100);
  engine_.UpsertNode(lost, now_);
  To(150);
  engine_.DeletePod(ends.uid, now_);
  To(200);
  engine_.UpsertNode(StockNode("n1", 8), now_);
  To(300);
  EXPECT_THAT(Metered(), ElementsAre("open stays.0 at 0", "open ends.0 at 0",
                                     "refund ends.0 from 60 to 150 NodeLost", "close ends.0 at 150",
                                     "refund stays.0 from 60 to 200 NodeLost"));
  EXPECT_EQ(Used(engine_), 60 + 60 + 100);
}

TEST_F(EngineMeteringTest, ClockStepClosesAndOpensAgain) {
  const PodRequest runs = Pod("a", "runs", 1), starts = Pod("a", "starts", 1);
  Place(runs, "n1");
  Place(starts, "n1");
  PodFacts facts = BoundFacts(runs, "n1");
  facts.running_at = At(10);
  To(20);
  engine_.UpsertPod(facts, now_);
  Metered();
  To(100);
  engine_.StepClock(At(100), At(3700));
  EXPECT_THAT(Metered(),
              ElementsAre("close runs.0 at 100 ClockStep", "open runs.1 at 3700 ClockStep",
                          "running runs.1 at 3700 ClockStep", "close starts.0 at 100 ClockStep",
                          "open starts.1 at 3700 ClockStep"));
  EXPECT_EQ(journal_[journal_.size() - 4].allocation, facts.allocation);
  To(3750);
  EXPECT_EQ(Used(engine_), 2 * 100 + 2 * 50);
  engine_.DeletePod(runs.uid, now_);
  EXPECT_THAT(Metered(), ElementsAre("close runs.1 at 3750"));
}

TEST_F(EngineMeteringTest, RestartTakesUpWhatIsOpenAndEndsWhatIsGone) {
  const PodRequest lives = Pod("a", "lives", 1), gone = Pod("a", "gone", 1),
                   ended = Pod("a", "ended", 1), never = Pod("a", "never", 1);
  for (const PodRequest& pod : {lives, gone, ended}) Place(pod, "n1");
  PodFacts facts = BoundFacts(lives, "n1");
  PodFacts done = BoundFacts(ended, "n1");
  To(40);
  Bind(never, "n2");
  Metered();
  To(500);

  std::unique_ptr<Engine> next = Restarted(300);
  EXPECT_EQ(next->HeldQuanta(), test::Gpus(4)) << "as the ledger says";
  next->UpsertPod(facts, now_);
  next->UpsertPod(test::Pending(never), now_);
  done.phase = PodPhase::kSucceeded;
  done.finished_at = At(200);
  next->UpsertPod(done, now_);
  next->FinishRestore(now_);
  EXPECT_THAT(Told(*next),
              testing::UnorderedElementsAre("close gone.0 at 300 estimated", "close ended.0 at 200",
                                            "void never.0 at 40"));
  EXPECT_EQ(Used(*next), 500 + 300 + 200);
  EXPECT_EQ(next->HeldQuanta(), test::Gpus(1));
  EXPECT_THAT(next->Audit(), IsEmpty());
  To(600);
  next->DeletePod(lives.uid, now_);
  next->UpsertPod(Bound(never, "n1"), now_);
  EXPECT_THAT(Told(*next), ElementsAre("close lives.0 at 600", "open never.1 at 600 estimated"));
}

TEST_F(EngineMeteringTest, RestartOverTheEndOfAWindowChargesItOnce) {
  const PodRequest lives = Pod("a", "lives", 1);
  Place(lives, "n1");
  const PodFacts facts = BoundFacts(lives, "n1");
  Metered();
  To(6500);
  Metered();
  ASSERT_EQ(closings_.size(), 1U);
  EXPECT_EQ(closings_[0].used * 3600 / kGpuHour, 6400);
  std::unique_ptr<Engine> next = Restarted(6500);
  next->UpsertPod(facts, now_);
  next->FinishRestore(now_);
  To(6600);
  EXPECT_EQ(Used(*next), 200);
  EXPECT_THAT(next->effects().metering, IsEmpty());
  EXPECT_THAT(next->effects().closings, IsEmpty());
}

TEST_F(EngineMeteringTest, HowLongAPodRanThatEndedUnseenIsItsKubeletsToSay) {
  const PodRequest pod = Pod("a", "pod", 1);
  Place(pod, "n1");
  PodFacts facts = BoundFacts(pod, "n1");
  Metered();
  To(500);
  std::unique_ptr<Engine> next = Restarted(90);
  facts.phase = PodPhase::kSucceeded;
  facts.started_at = At(-3598);
  facts.finished_at = At(-3450);
  next->UpsertPod(facts, now_);
  next->FinishRestore(now_);
  EXPECT_THAT(Told(*next), ElementsAre("close pod.0 at 148"));
}

// Its charge ended, for whatever reason, and it still runs: it goes on where that ended.
TEST_F(EngineMeteringTest, RestartChargesNobodyTwiceForTheSameTime) {
  const PodRequest pod = Pod("a", "pod", 1);
  Place(pod, "n1");
  const PodFacts facts = BoundFacts(pod, "n1");
  To(50);
  engine_.DeletePod(pod.uid, now_);
  EXPECT_THAT(Metered(), ElementsAre("open pod.0 at 0", "close pod.0 at 50"));
  To(100);
  std::unique_ptr<Engine> next = Restarted(90);
  next->UpsertPod(facts, now_);
  next->FinishRestore(now_);
  EXPECT_THAT(Told(*next), ElementsAre("open pod.1 at 50"));
}

TEST_F(EngineMeteringTest, ClockStepWhileStartingMovesWhatTheLedgerHasOpen) {
  const PodRequest lives = Pod("a", "lives", 1), gone = Pod("a", "gone", 1);
  Place(lives, "n1");
  Place(gone, "n1");
  const PodFacts facts = BoundFacts(lives, "n1");
  Metered();
  To(100);
  std::unique_ptr<Engine> next = Restarted(90);
  next->UpsertPod(facts, now_);
  next->StepClock(At(100), At(5000));
  now_ = At(5000);
  next->FinishRestore(now_);
  EXPECT_THAT(Told(*next),
              ElementsAre("close gone.0 at 100 ClockStep", "open gone.1 at 5000 ClockStep",
                          "close lives.0 at 100 ClockStep", "open lives.1 at 5000 ClockStep",
                          "close gone.1 at 5000 estimated"));
  EXPECT_EQ(Used(*next), 200);
}

// Many may write the pod: any team could be made to pay for it, or nobody.
TEST_F(EngineMeteringTest, LeafOfARecordIsNeverBelieved) {
  for (const std::string leaf : {"team-b", "nobody", ""}) {
    SCOPED_TRACE(leaf);
    PodFacts forged = Bound(Pod("a", "forged", 1), "n2");
    forged.allocation = Bind(Pod("a", "other", 1), "n2").allocation;
    engine_.SettleBind(PodUid("uid-other"), NodeName("n2"), BindOutcome::kNotBound, now_);
    forged.allocation->leaf = leaf;
    Metered();
    engine_.UpsertPod(forged, now_);
    Metered();
    EXPECT_EQ(journal_.back().leaf, "team-a");
    engine_.DeletePod(forged.request.uid, now_);
  }
}

TEST_F(EngineMeteringTest, NodeNobodyHasDescribedYetIsChargedWhenItIs) {
  PodFacts early = Bound(Pod("a", "early", 1), "later");
  early.bound_at = At(-50);
  engine_.UpsertPod(early, now_);
  EXPECT_THAT(Metered(), IsEmpty());
  To(100);
  Nodes({StockNode("later", 8)});
  EXPECT_THAT(Metered(), ElementsAre("open early.0 at -50"));
}

// A team that gets its quota while it runs GPUs has used it from then on.
TEST_F(EngineMeteringTest, WorkThatRanBeforeItsQuotaComesUnderIt) {
  Declare({});
  const PodRequest request = Pod("a", "one", 2);
  PodFacts pod = Bound(request, "n1");
  pod.bound_at = At(0);
  pod.running_at = At(5);
  To(10);
  engine_.UpsertPod(pod, now_);
  EXPECT_THAT(Metered(), ElementsAre("open one.0 at 0", "running one.0 at 5"));
  EXPECT_EQ(View(request).leaf, "");
  To(60);
  Declare(Team());
  EXPECT_THAT(Metered(),
              ElementsAre("close one.0 at 60", "open one.1 at 60", "running one.1 at 60"));
  EXPECT_EQ(View(request).leaf, "team-a");
  EXPECT_EQ(View(request).quota_state, QuotaState::kInQuota);
  To(160);
  EXPECT_EQ(Used(engine_), 200);
  Declare(Team());
  EXPECT_THAT(Metered(), IsEmpty()) << "it is taken in once";
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

}  // namespace THIS_FILE
}  // namespace tranche
