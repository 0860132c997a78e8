// Scheduling gates of ours, from the parts left of them alone.
#include "scheduler/engine/gates/gates.h"

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Class;
using test::Quota;
using test::TeamPod;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr GateSet kNoGate{}, kQuotaGate{.quota = true}, kGangGate{.gang = true};

class GatesTest : public testing::Test, protected test::PreemptionRoom {
 protected:
  GatesTest() {
    Node(test::StockNode("n1", 8));
    Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "4"),
                        Quota("watched").Owns("w").Line("h100", "1").Mode(QuotaMode::kObserve)},
             .classes = {Class("top", 3), Class("train", 2)}});
    cluster.cluster_complete = true;
  }
  PodRecord& Gated(const PodRequest& request, GateSet own) {
    PodRecord& record = Wait(request);
    record.traits.gates = own;
    record.traits.gated = !own.empty();
    gangs.Join(request.uid, record, now);
    gates_.Note(request.uid, record);
    return record;
  }
  // Gates that are taken away at that moment: "pod/quota".
  std::vector<std::string> RemovedAt(Instant at) {
    now = at;
    gates_.Tend(now);
    std::vector<std::string> removed;
    for (const GateRemoval& removal : std::exchange(cluster.outbox.effects().ungate, {})) {
      removed.push_back(removal.pod.name + (removal.gate == Gate::kQuota ? "/quota" : "/gang"));
    }
    return removed;
  }

  Gates gates_{cluster, rules, team_queue, selection, kept, gangs, preemptors};
};

TEST_F(GatesTest, PodsThatQuotaOrTheirGangWouldKeepWaitingShouldHaveOne) {
  Runs(TeamPod("a", "runs", 2), "n1");
  PodRequest other_model = TeamPod("a", "p", 4);
  other_model.models_any = {"a100"};
  const std::tuple<const char*, PodRequest, GateSet> cases[] = {
      {"there is quota", TeamPod("a", "p", 2), kNoGate},
      {"more than is left", TeamPod("a", "p", 3), kQuotaGate},
      {"only watched", TeamPod("w", "p", 3), kNoGate},
      {"of nobody", TeamPod("c", "p", 3), kNoGate},
      {"no node serves it: not quota's to tell", other_model, kNoGate},
      {"its gang is missing, and has quota", test::Member("a", "g", 0, 2, 1), kGangGate},
      {"and has none together", test::Member("a", "g", 0, 3, 1), GateSet{true, true}},
      {"no GPU", test::EmptyRequest("p"), kNoGate},
  };
  for (const auto& [what, request, wanted] : cases) {
    EXPECT_EQ(gates_.For(request, now), wanted) << what;
  }
  cluster.cluster_complete = false;
  EXPECT_EQ(gates_.For(TeamPod("a", "p", 3), now), kNoGate) << "before everything is known";
}

TEST_F(GatesTest, GatesGoInTheOrderOfQuotaAndEachCountsThoseBeforeIt) {
  Gated(TeamPod("a", "low", 2, "train"), kQuotaGate);
  now = At(1);
  Gated(TeamPod("a", "high", 3, "top"), kQuotaGate);
  Gated(TeamPod("a", "last", 1, "train"), kQuotaGate);
  EXPECT_THAT(RemovedAt(At(2)), ElementsAre("high/quota", "last/quota"))
      << "3 and 1 of 4: the one between does not fit beside";
  EXPECT_EQ(cluster.Find(PodUid("uid-low"))->last_reason, Reason::kWaitingForQuota);
  EXPECT_TRUE(team_queue.contenders.contains(PodUid("uid-low")));
  EXPECT_TRUE(preemptors.Has(PodUid("uid-low"))) << "plans are made for it as for any other";
  EXPECT_THAT(cluster.book.earmarks(), IsEmpty()) << "what was counted is not kept";
}

TEST_F(GatesTest, ARemovalThatIsNotSeenToHaveWorkedIsTriedAgain) {
  const PodRequest pod = TeamPod("a", "p", 1);
  PodRecord& record = Gated(pod, kQuotaGate);
  EXPECT_THAT(RemovedAt(At(0)), ElementsAre("p/quota"));
  EXPECT_THAT(RemovedAt(At(9)), IsEmpty());
  EXPECT_THAT(RemovedAt(At(10)), ElementsAre("p/quota"));
  record.traits.gates = kNoGate;
  gates_.Note(pod.uid, record);
  EXPECT_THAT(RemovedAt(At(30)), IsEmpty());
}

TEST_F(GatesTest, WhatWasLetInCountsUntilItIsPlaced) {
  Gated(TeamPod("a", "first", 3), kQuotaGate);
  EXPECT_THAT(RemovedAt(At(0)), ElementsAre("first/quota"));
  Gated(TeamPod("a", "second", 3), kQuotaGate);
  EXPECT_THAT(RemovedAt(At(1)), IsEmpty());
  gates_.Forget(PodUid("uid-first"));
  cluster.ErasePod(PodUid("uid-first"));
  EXPECT_THAT(RemovedAt(At(3)), ElementsAre("second/quota"));
}

TEST_F(GatesTest, AGangsGatesGoWhenItIsCompleteThenTogetherByQuota) {
  constexpr GateSet kBoth{.quota = true, .gang = true};
  Gated(test::Member("a", "g", 0, 2, 2), kBoth);
  EXPECT_THAT(RemovedAt(At(0)), IsEmpty());
  Gated(test::Member("a", "g", 1, 2, 2), kBoth);
  EXPECT_THAT(RemovedAt(At(1)), ElementsAre("g-0/gang", "g-1/gang"));
  for (int i = 0; i < 2; ++i) {
    const PodRequest member = test::Member("a", "g", i, 2, 2);
    PodRecord& record = *cluster.Find(member.uid);
    record.traits.gates = kQuotaGate;
    gates_.Note(member.uid, record);
  }
  EXPECT_THAT(RemovedAt(At(2)), ElementsAre("g-0/quota", "g-1/quota"));
}

}  // namespace THIS_FILE
}  // namespace tranche
