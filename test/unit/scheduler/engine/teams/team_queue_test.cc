// Pods that quota refused, in their order: from state, rules and plans alone.
#include "scheduler/engine/teams/team_queue.h"

#include "test/unit/scheduler/engine/parts_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Class;
using test::DayBudget;
using test::Quota;
using test::TeamPod;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr bool kOneIsOpen = true;

class TeamQueueTest : public testing::Test, protected test::StateRoom {
 protected:
  TeamQueueTest() {
    Node(test::StockNode("n1", 8));
    Node(test::StockNode("n2", 8));
  }
  // Quota is asked of n1 for the pod, and its answer noted.
  PodRecord& Ask(const PodRequest& request, bool allows_one = false) {
    PodRecord& record = Wait(request, Reason::kWaitingForQuota);
    const RequestContext context = rules_.ContextOf(*record.request);
    rules_.ForgetKindAnswers();
    rules_.AskQuota(context, IdOf("n1"), now);
    queue_.NoteQuotaRefusal(context, record, allows_one, now);
    return record;
  }
  std::string Explained(const PodRequest& request) {
    const PodRecord& record = *cluster.Find(request.uid);
    return queue_.DescribeQuota(rules_.ContextOf(*record.request), record, now);
  }

  NamespaceUse namespaces_{cluster};
  TeamRules rules_{cluster, namespaces_};
  TeamQueue queue_{cluster, rules_, namespaces_, reclaims};
};

TEST_F(TeamQueueTest, APodThatQuotaRefusesContendsUntilOneNodeIsOpenToIt) {
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "2")}});
  const PodRequest pod = TeamPod("a", "p", 3);
  EXPECT_THAT(Ask(pod).asked, SizeIs(1));
  EXPECT_THAT(queue_.contenders, ElementsAre(pod.uid));
  Ask(pod, kOneIsOpen);
  EXPECT_THAT(queue_.contenders, IsEmpty());
}

TEST_F(TeamQueueTest, AWatchedTeamIsToldWhatItWouldHaveWaitedFor) {
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "2").Mode(QuotaMode::kObserve)}});
  EXPECT_EQ(Ask(TeamPod("a", "p", 3)).observed, Reason::kExceedsMaxQuota);
  EXPECT_THAT(queue_.contenders, IsEmpty());
}

TEST_F(TeamQueueTest, APodThatWaitsForABudgetIsWokenWhenItComesBack) {
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "8")},
           .budgets = {DayBudget("team-a", 1)}});
  Runs(TeamPod("a", "spends", 4), "n1");
  now += test::Hours(1);
  End(TeamPod("a", "spends", 4));
  std::vector<WindowClosing> closings;
  cluster.book.Advance(now, closings);
  const PodRequest pod = TeamPod("a", "p", 1);
  const PodRecord& record = Ask(pod);
  ASSERT_TRUE(record.eligible_at);
  EXPECT_EQ(queue_.NextWake(), *record.eligible_at);
  EXPECT_EQ(queue_.TakeAwake(*record.eligible_at - Millis(1)), std::nullopt);
  EXPECT_EQ(queue_.TakeAwake(*record.eligible_at), pod.uid);
  EXPECT_EQ(queue_.wakeups(), 0U);
}

TEST_F(TeamQueueTest, HoweverOftenAPodIsAskedAboutItIsWokenOnce) {
  Declare({.quotas = {Quota("team-a").Owns("a").Line("h100", "8")},
           .budgets = {DayBudget("team-a", 10)}});
  const PodRequest pod = TeamPod("a", "p", 8);
  std::set<Instant> moments;
  for (int i = 0; i < 50; ++i) {
    now += test::Minutes(1);
    queue_.WakeAt(pod.uid, now + test::Hours(1), now);
    moments.insert(*queue_.NextWake());
    EXPECT_EQ(queue_.wakeups(), 1U);
  }
  EXPECT_EQ(moments.size(), 50U) << "its moment moved each time";
  queue_.Forget(pod.uid);
  EXPECT_EQ(queue_.wakeups(), 0U);
}

TEST_F(TeamQueueTest, WhoComesFirst) {
  Declare({.quotas = test::TwoTeams(), .classes = {Class("top", 3), Class("train", 2)}});
  Runs(TeamPod("a", "own", 4), "n1");
  Runs(TeamPod("a", "lent", 2), "n2");  // team-a borrows, team-b does not
  const PodRequest early_a = TeamPod("a", "early-a", 1, "train");
  const PodRequest late_a = TeamPod("a", "late-a", 1, "train");
  const PodRequest back_a = TeamPod("a", "returned-a", 1, "train");
  const PodRequest top_a = TeamPod("a", "top-a", 1, "top");
  const PodRequest late_b = TeamPod("b", "late-b", 1, "train");
  const PodRequest nobodys = TeamPod("c", "nobodys", 1, "train");
  Wait(early_a);
  now += Millis(1'000);
  for (const PodRequest& late : {late_a, back_a, top_a, late_b, nobodys}) Wait(late);
  reclaims.returned.insert(back_a.uid);
  const struct {
    const char* what;
    const PodRequest& first;
    const PodRequest& second;
  } cases[] = {
      {"a higher class", top_a, late_b},
      {"the team that borrows less", late_b, early_a},
      {"of a team, who was evicted", back_a, early_a},
      {"of a team, who waits longer", early_a, late_a},
      {"a pod of nobody borrows nothing", nobodys, late_b},
  };
  for (const auto& row : cases) {
    const PodRecord& first = *cluster.Find(row.first.uid);
    const PodRecord& second = *cluster.Find(row.second.uid);
    EXPECT_TRUE(queue_.ComesFirst(first, second, now)) << row.what;
    EXPECT_FALSE(queue_.ComesFirst(second, first, now)) << row.what;
  }
}

TEST_F(TeamQueueTest, AWaitingPodIsToldItsPlaceAmongTheTeamsThatLendToEachOther) {
  std::vector<GpuQuota> quotas = test::TwoTeams();
  quotas.push_back(Quota("apart").Owns("x").Line("h100", "1"));
  Declare({.quotas = quotas, .classes = {Class("top", 3), Class("train", 2)}});
  for (const char* name : {"a1", "a2"})
    Runs(TeamPod("a", name, 4), name == std::string("a1") ? "n1" : "n2");
  const PodRequest low = TeamPod("a", "low", 2, "train"), high = TeamPod("b", "high", 4, "top");
  Ask(low);
  Ask(high);
  Ask(TeamPod("x", "elsewhere", 2, "top"));
  EXPECT_THAT(Explained(low), testing::EndsWith("Position 2 of 2"));
  EXPECT_THAT(Explained(high), testing::EndsWith("Position 1 of 2"));
  End(TeamPod("a", "a2", 4));
  EXPECT_EQ(Explained(high), "there is quota for it now; it is tried again");
}

TEST_F(TeamQueueTest, ANamespaceOfTwoTeamsIsNamedWithBoth) {
  GpuPolicy strict;
  strict.unassigned = Permission::kRefuse;
  Declare({.quotas = {Quota("one").Owns("a").Line("h100", "1"),
                      Quota("two").Owns("a").Line("h100", "1")}},
          strict);
  Wait(TeamPod("a", "p", 1));
  Wait(TeamPod("z", "q", 1));
  EXPECT_EQ(Explained(TeamPod("a", "p", 1)),
            "expected one GPUQuota whose namespaceSelector matches namespace a, found one, two");
  EXPECT_EQ(Explained(TeamPod("z", "q", 1)),
            "expected a GPUQuota whose namespaceSelector matches namespace z, found none");
}

TEST_F(TeamQueueTest, TheLineHandsOutWhatASortWould) {
  Declare({.quotas = {Quota("org"), Quota("team-a").Under("org").Owns("a").Line("h100", "4"),
                      Quota("team-b").Under("org").Owns("b").Line("h100", "4").Weight(3),
                      Quota("team-c").Under("org").Owns("c").Line("h100", "4")},
           .classes = {Class("top", 3), Class("train", 2)}});
  Runs(TeamPod("a", "own", 6), "n1");
  Runs(TeamPod("c", "lent", 5), "n2");
  std::vector<PodUid> pods;
  for (int i = 0; i < 60; ++i) {
    const char* const spaces[] = {"a", "b", "c", "nobody"};
    const PodRequest pod =
        TeamPod(spaces[i * 7 % 4], fmt::format("p{}", i), 1, i % 5 == 0 ? "top" : "train");
    Wait(pod, Reason::kWaitingForQuota).waits_since = test::At(i * 13 % 17);
    if (i % 11 == 0) reclaims.returned.insert(pod.uid);
    pods.push_back(pod.uid);
  }
  std::vector<PodUid> sorted = pods;
  std::ranges::sort(sorted, [&](const PodUid& left, const PodUid& right) {
    return queue_.ComesFirst(*cluster.Find(left), *cluster.Find(right), now);
  });
  TeamLine line(cluster, queue_, pods, now);
  for (const PodUid& uid : sorted) EXPECT_EQ(line.Next(), uid);
  EXPECT_EQ(line.Next(), std::nullopt);
}

}  // namespace THIS_FILE
}  // namespace tranche
