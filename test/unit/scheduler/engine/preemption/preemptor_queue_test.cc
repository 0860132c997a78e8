// For whom room may have to be made, and in which order: from the parts left of it alone.
#include "scheduler/engine/preemption/preemptor_queue.h"

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Class;
using test::Quota;
using test::TeamPod;

class PreemptorQueueTest : public testing::Test, protected test::GangsRoom {
 protected:
  PreemptorQueueTest() {
    Node(test::StockNode("n1", 8));
    std::vector<GpuQuota> quotas = test::TwoTeams();
    quotas.push_back(Quota("watched").Owns("w").Line("h100", "1").Mode(QuotaMode::kObserve));
    Declare({.quotas = quotas, .classes = {Class("top", 3), Class("train", 2)}});
  }
  PodRecord& Hungry(const PodRequest& request, Reason reason = Reason::kWaitingForQuota) {
    PodRecord& record = Wait(request, reason);
    queue_.Note(request.uid, record);
    return record;
  }
  std::string Next() {
    const std::optional<PodUid> next = queue_.Next(now);
    return next ? cluster.Find(*next)->request->name.name : "nobody";
  }
  // Planning for the pod came to nothing, and is not to be tried before.
  void Missed(const PodRequest& request, Instant not_before) {
    PlanMemory& memory = queue_.MemoryOf(*queue_.Of(request.uid));
    memory.version = cluster.version();
    memory.planned = now;
    memory.not_before = not_before;
  }

  // Its scheduler says that no node will do, and we were not asked.
  static void SetUnschedulable(const char* scheduler, PodRecord& record) {
    auto request = std::make_shared<PodRequest>(*record.request);
    request->scheduler = scheduler;
    record.request = std::move(request);
    record.last_reason = Reason::kNone;
    record.traits.unschedulable = true;
  }

  PreemptorQueue queue_{cluster, reclaims, rules, gangs};
  const PodRequest pod_ = TeamPod("a", "p", 1, "train");
};

TEST_F(PreemptorQueueTest, RoomIsMadeOnlyForWhatEvictionsCanCure) {
  const std::pair<Reason, bool> cases[] = {
      {Reason::kNone, false},
      {Reason::kNoRoom, true},
      {Reason::kWaitingForQuota, true},
      {Reason::kBorrowLimit, true},
      {Reason::kLenderLimit, true},
      {Reason::kGangNoRoom, true},
      {Reason::kExceedsMaxQuota, false},
      {Reason::kBudgetExhausted, false},
      {Reason::kWrongModel, false},
      {Reason::kTooManyPerNode, false},
      {Reason::kGangIncomplete, false},
  };
  for (const auto& [reason, queued] : cases) {
    Hungry(pod_, reason);
    EXPECT_EQ(queue_.Has(pod_.uid), queued) << Describe(reason).code;
  }
}

TEST_F(PreemptorQueueTest, OnlyPodsThatCouldComeAtOnceAreQueued) {
  const struct {
    const char* what;
    void (*change)(PodRecord&);
    bool queued;
  } cases[] = {
      {"waits", [](PodRecord&) {}, true},
      {"not seen", [](PodRecord& one) { one.seen = false; }, false},
      {"our quota gate", [](PodRecord& one) { one.traits.gated = one.traits.gates.quota = true; },
       true},
      {"our gang gate", [](PodRecord& one) { one.traits.gated = one.traits.gates.gang = true; },
       false},
      {"another's gate", [](PodRecord& one) { one.traits.foreign_gates = true; }, false},
      {"leaves", [](PodRecord& one) { one.traits.leaves_at = At(9); }, false},
      {"has a node", [](PodRecord& one) { one.node = NodeName("n1"); }, false},
      {"its scheduler, ours, found no node by itself",
       [](PodRecord& one) { SetUnschedulable("gpu-scheduler", one); }, true},
      {"its scheduler, another, found no node",
       [](PodRecord& one) { SetUnschedulable("volcano", one); }, false},
      {"its scheduler, the cluster's own, found no node",
       [](PodRecord& one) { SetUnschedulable("", one); }, false},
  };
  for (const auto& row : cases) {
    PodRecord& record = Hungry(pod_);
    row.change(record);
    queue_.Note(pod_.uid, record);
    EXPECT_EQ(queue_.Has(pod_.uid), row.queued) << row.what;
    queue_.Forget(pod_.uid);
    cluster.ErasePod(pod_.uid);
  }
  Hungry(TeamPod("w", "watched", 1));
  EXPECT_EQ(Next(), "nobody") << "quota makes no room for it";
  Hungry(TeamPod("x", "of-no-team", 1));
  EXPECT_EQ(Next(), "of-no-team") << "its class may";
}

TEST_F(PreemptorQueueTest, ASchedulerIsKnownToAskFromItsFirstQuestionOn) {
  PodRecord& record = Hungry(pod_);
  SetUnschedulable("", record);
  queue_.Note(pod_.uid, record);
  EXPECT_EQ(Next(), "nobody");
  EXPECT_TRUE(cluster.schedulers.Note(""));
  EXPECT_FALSE(cluster.schedulers.Note(""));
  queue_.Regroup();
  EXPECT_EQ(Next(), "p");
}

TEST_F(PreemptorQueueTest, OfPodsThatAreAlikeWhoWasEvictedComesFirst) {
  Hungry(TeamPod("a", "first", 1, "train"));
  now = At(1);
  const PodRequest second = TeamPod("a", "second", 1, "train");
  Hungry(second);
  EXPECT_EQ(Next(), "first");
  reclaims.returned.insert(second.uid);
  EXPECT_EQ(Next(), "second");
}

TEST_F(PreemptorQueueTest, HigherClassesThenWhoWasEvictedThenWhoWaitsLonger) {
  Hungry(TeamPod("a", "early", 1, "train"));
  now = At(1);
  Hungry(TeamPod("a", "late", 2, "train"));
  const PodRequest returned = TeamPod("b", "returned", 1, "train");
  Hungry(returned);
  reclaims.returned.insert(returned.uid);
  Hungry(TeamPod("b", "high", 1, "top"));
  for (const char* name : {"high", "returned", "early", "late", "nobody"}) {
    EXPECT_EQ(Next(), name);
    queue_.Forget(PodUid(std::string("uid-") + name));
  }
}

TEST_F(PreemptorQueueTest, OneLookIsEnoughForPodsThatAreAlikeWhileNothingChanges) {
  Hungry(pod_);
  Hungry(TeamPod("a", "alike", 1, "train"));
  Missed(pod_, At(5));
  EXPECT_EQ(Next(), "nobody");
  EXPECT_EQ(queue_.DueAt(now), std::nullopt);
  cluster.NoteChange();
  EXPECT_EQ(Next(), "alike") << "the clock stands still: what has changed since counts";
  now = At(4);
  EXPECT_EQ(Next(), "nobody") << "it rests";
  EXPECT_EQ(queue_.DueAt(now), At(5));
  now = At(5);
  EXPECT_EQ(Next(), "alike");
  Missed(pod_, At(9));
  Hungry(TeamPod("a", "other", 2, "train"));
  EXPECT_EQ(Next(), "other") << "it asks for something else";
}

TEST_F(PreemptorQueueTest, AGuardThatEndsIsReasonToLookAgain) {
  Hungry(pod_);
  Missed(pod_, At(5));
  queue_.MemoryOf(*queue_.Of(pod_.uid)).block = {Reason::kVictimsProtected, "", At(60)};
  EXPECT_EQ(queue_.BlockOf(pod_.uid)->reason, Reason::kVictimsProtected);
  EXPECT_EQ(queue_.DueAt(now), At(60));
  now = At(60);
  EXPECT_EQ(Next(), "p");
  queue_.Regroup();
  EXPECT_EQ(queue_.BlockOf(pod_.uid), std::nullopt) << "other policies, other plans";
  EXPECT_EQ(Next(), "p");
}

TEST_F(PreemptorQueueTest, AGangIsOnePreemptorOnceItIsComplete) {
  const PodRequest first = test::Member("a", "g", 0, 2), second = test::Member("a", "g", 1, 2);
  Joins(first);
  EXPECT_FALSE(queue_.Of(first.uid));
  Joins(second);
  const std::optional<Preemptor> gang = queue_.Of(second.uid);
  ASSERT_TRUE(gang);
  EXPECT_EQ(gang->gang, "a/g");
  EXPECT_EQ(gang->members.size(), 2U);
  UnderWay("plan", first, "n1", {});
  EXPECT_FALSE(queue_.Of(first.uid)) << "room is being made already";
}

}  // namespace THIS_FILE
}  // namespace tranche
