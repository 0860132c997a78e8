// Reports about the whole cluster, slice by slice: as in one piece, and no slice looks at more than
// it says.
#include "scheduler/engine/report_walks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/scheduler/engine/engine_quota_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Quota;
using test::StockNode;
using testing::IsEmpty;

class ReportWalks : public EngineQuotaTest {
 protected:
  // Nodes of eight GPUs; on every second one a pod holds three, and `waiting` pods wait for a GPU
  // more than any node has.
  void Fill(int nodes, int waiting) {
    Declare({.quotas = {Quota("team-a").Owns("a").Line("any", "1000"),
                        Quota("team-b").Owns("b").Line("any", "1000")},
             .namespaces = {"a", "b"}});
    for (int i = 0; i < nodes; ++i) {
      const std::string name = fmt::format("n{:04}", i);
      Nodes({StockNode(name, 8)});
      if (i % 2 != 0) continue;
      const PodRequest held = Pod("a", fmt::format("held-{}", i), 3);
      Try(held);
      EXPECT_TRUE(Place(held, name));
    }
    for (int i = 0; i < waiting; ++i) Wait(i);
  }
  PodRequest Waiter(int i) const {
    return Pod(i % 3 == 0 ? "a" : "b", fmt::format("waits-{:04}", i), 9);
  }
  void Wait(int i) {
    engine_.UpsertPod(test::Pending(Waiter(i)), now_);
    if (i % 50 == 0) Try(Waiter(i));
  }
};

TEST_F(ReportWalks, TotalsAreSummedSliceBySlice) {
  Fill(2 * TotalsWalk::kNodesAtOnce + 10, TotalsWalk::kPodsAtOnce + 10);
  TotalsWalk walk;
  int slices = 0;
  for (int64_t seen = 0; !walk.done(); ++slices) {
    engine_.TotalsSlice(walk);
    const EngineTotals& sums = walk.totals;
    const int64_t now = sums.nodes + sums.pods_bound + sums.pods_pending;
    EXPECT_LE(now - seen, std::max(TotalsWalk::kNodesAtOnce, TotalsWalk::kPodsAtOnce));
    seen = now;
  }
  EXPECT_EQ(slices, 5) << "three of nodes, two of pods";
  EXPECT_EQ(walk.totals.nodes, 2 * TotalsWalk::kNodesAtOnce + 10);
  EXPECT_EQ(walk.totals.pods_bound, walk.totals.nodes / 2);
  EXPECT_EQ(walk.totals.pods_pending, TotalsWalk::kPodsAtOnce + 10);
  ASSERT_EQ(walk.totals.models.size(), 1U);
  EXPECT_EQ(walk.totals.models[0].gpus, 8 * walk.totals.nodes);
  EXPECT_EQ(walk.totals.models[0].allocated, kWholeGpu * (3 * walk.totals.pods_bound));
}

TEST_F(ReportWalks, WhatIsStrandedIsToldByNodeAsItIsByModel) {
  Fill(2 * FleetWalk::kNodesAtOnce + 3, 0);
  FleetWalk walk;
  walk.with_stranded = true;
  while (!walk.done()) engine_.FleetSlice(walk);
  int64_t sum = 0;
  for (const FleetNode& node : walk.nodes) {
    ASSERT_TRUE(node.stranded.has_value());
    sum += *node.stranded;
  }
  const EngineTotals totals = engine_.Totals();
  ASSERT_EQ(totals.models.size(), 1U);
  EXPECT_EQ(MilliGpu::Of(sum), totals.models[0].stranded);
  EXPECT_GT(sum, 0) << "two of eight, where pods of three come";
  FleetWalk other;
  while (!other.done()) engine_.FleetSlice(other);
  EXPECT_FALSE(other.nodes.at(0).stranded.has_value());
}

TEST_F(ReportWalks, WaitingPodsAreCountedSliceBySlice) {
  constexpr int kWaiting = 2 * WaitingWalk::kPodsAtOnce + 10;
  Fill(1, kWaiting);
  WaitingWalk walk;
  int slices = 0;
  for (int64_t seen = 0; !walk.done(); ++slices) {
    engine_.WaitingSlice(walk);
    int64_t now = 0;
    for (const PendingRow& row : walk.Rows()) now += row.workloads;
    EXPECT_LE(now - seen, WaitingWalk::kPodsAtOnce);
    seen = now;
  }
  EXPECT_EQ(slices, 3);
  std::map<std::string, int64_t> by_team;
  for (const PendingRow& row : walk.Rows()) by_team[row.leaf] += row.workloads;
  EXPECT_EQ(by_team, (std::map<std::string, int64_t>{{"team-a", (kWaiting + 2) / 3},
                                                     {"team-b", kWaiting - (kWaiting + 2) / 3}}));
  const auto refused = walk.TakeRefused();
  EXPECT_EQ(refused.size(), (kWaiting + 49) / 50);
  EXPECT_TRUE(std::ranges::is_sorted(refused));
  EXPECT_EQ(refused, engine_.Waiting());
}

// Pods that come and go between two slices are counted or not; nothing is counted twice.
TEST_F(ReportWalks, PodsMayComeAndGoBetweenSlices) {
  constexpr int kWaiting = 2 * WaitingWalk::kPodsAtOnce;
  Fill(1, kWaiting);
  WaitingWalk walk;
  engine_.WaitingSlice(walk);
  // The one it stopped at, one behind it and one before.
  engine_.DeletePod(*walk.after, now_);
  engine_.DeletePod(Waiter(kWaiting - 1).uid, now_);
  engine_.DeletePod(Waiter(0).uid, now_);
  while (!walk.done()) engine_.WaitingSlice(walk);
  int64_t counted = 0;
  for (const PendingRow& row : walk.Rows()) counted += row.workloads;
  EXPECT_EQ(counted, kWaiting - 1);
}

TEST_F(ReportWalks, MarksAreLaidALeafOrMoreAtATime) {
  Fill(8, 3);
  QuotaWalk walk;
  int slices = 0;
  for (; !walk.done(); ++slices) engine_.QuotaSlice(walk, now_);
  EXPECT_EQ(slices, 2) << "all marks at once, then the reports";
  const std::vector<QuotaView> views = QuotaViewsOf(std::move(walk), engine_.Pending(now_));
  ASSERT_EQ(views.size(), 2U);
  EXPECT_EQ(views[0].report.name, "team-a");
  EXPECT_EQ(views[0].report.namespaces, std::vector<std::string>{"a"});
  EXPECT_EQ(views[0].report.workloads, 4);
  EXPECT_EQ(views[0].pending_workloads, 1);
  EXPECT_EQ(views[1].pending_workloads, 2);
  EXPECT_EQ(views[1].pending_quanta, 2 * 9 * kQuantaPerGpu);
}

// A pod of sixteen GPUs on machines of eight waits for ever, and for no GPUs that come free.
TEST_F(ReportWalks, WhatNoNodeCouldHoldIsNoDemand) {
  Fill(8, 3);
  const struct {
    Reason reason;
    bool counts;
  } table[] = {{Reason::kNone, true},
               {Reason::kNoRoom, true},
               {Reason::kWaitingForQuota, true},
               {Reason::kGangNoRoom, true},
               {Reason::kUnhealthy, true},
               {Reason::kTooManyPerNode, false},
               {Reason::kTooLarge, false},
               {Reason::kWrongModel, false},
               {Reason::kBadAmount, false},
               {Reason::kExceedsMaxQuota, false}};
  for (const auto& row : table) {
    QuotaWalk walk;
    while (!walk.done()) engine_.QuotaSlice(walk, now_);
    PendingRow waits;
    waits.leaf = "team-a";
    waits.reason = row.reason;
    waits.workloads = 3;
    waits.quanta = 16 * kQuantaPerGpu;
    const std::vector<QuotaView> views = QuotaViewsOf(std::move(walk), {waits});
    EXPECT_EQ(views[0].pending_workloads, 3) << Describe(row.reason).code;
    EXPECT_EQ(views[0].pending_quanta, row.counts ? 16 * kQuantaPerGpu : 0)
        << Describe(row.reason).code;
  }
}

TEST_F(ReportWalks, WorkOfAQuotaThatIsGoneIsMarkedToo) {
  Fill(8, 3);
  Declare({.quotas = {Quota("team-b").Owns("b").Line("any", "1000")}});
  const std::vector<QuotaView> views = engine_.Quotas(now_);
  ASSERT_EQ(views.size(), 1U);
  EXPECT_EQ(views[0].report.name, "team-b");
  ASSERT_EQ(views[0].abandoned.size(), 1U);
  EXPECT_EQ(views[0].abandoned[0].quota, "team-a");
  EXPECT_EQ(views[0].abandoned[0].pods, 4);
}

TEST_F(ReportWalks, TheClusterIsCopiedForAdviceSliceBySlice) {
  Fill(2 * CaseWalk::kNodesAtOnce + 1, CaseWalk::kPodsAtOnce + 1);
  CaseWalk walk;
  for (std::size_t nodes = 0, waiting = 0; !walk.done();) {
    engine_.CaseSlice(walk, now_);
    EXPECT_LE(walk.fleet.nodes.size() - nodes, CaseWalk::kNodesAtOnce);
    EXPECT_LE(walk.fleet.waiting.size() - waiting, CaseWalk::kPodsAtOnce);
    nodes = walk.fleet.nodes.size();
    waiting = walk.fleet.waiting.size();
  }
  const AdviceCase fleet = walk.Take();
  EXPECT_EQ(fleet.nodes.size(), 2U * CaseWalk::kNodesAtOnce + 1);
  EXPECT_TRUE(std::ranges::is_sorted(fleet.nodes, {}, &AdviceNode::name));
  EXPECT_EQ(fleet.pods.size(), CaseWalk::kNodesAtOnce + 1U);
  EXPECT_EQ(fleet.waiting.size(), CaseWalk::kPodsAtOnce + 1U);
  for (const AdvicePod& pod : fleet.pods) {
    EXPECT_EQ(fleet.nodes[pod.node].name.str(),
              "n" + fmt::format("{:04}", 2 * (&pod - &fleet.pods[0])));
  }
}

// What all hold together is counted as it happens.
TEST_F(ReportWalks, WhatIsHeldIsCountedAsItHappens) {
  Fill(6, 0);
  EXPECT_EQ(engine_.HeldQuanta(), test::Gpus(9));
  engine_.DeletePod(Pod("a", "held-2", 3).uid, now_);
  EXPECT_EQ(engine_.HeldQuanta(), test::Gpus(6));
  EXPECT_EQ(engine_.HeldQuanta(), engine_.SumHeldQuanta());
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

// A namespace moves to another team; who says it does not is believed only of the set in force.
TEST_F(ReportWalks, HowASetDiffersIsBelievedOfTheSetInForceAlone) {
  const auto set_of = [](const std::string& owner) {
    return test::Declare({.quotas = {Quota("team-a").Owns(owner), Quota("team-b").Owns("b")}});
  };
  const auto first = set_of("a"), second = set_of("c");
  engine_.SetPolicies(first, Defaults(), now_);
  const auto leaf_of = [this](const std::string& ns) {
    Try(Pod(ns, "one-of-" + ns, 9));
    return View(Pod(ns, "one-of-" + ns, 9)).leaf;
  };
  EXPECT_EQ(leaf_of("a"), "team-a");
  engine_.SetPolicies(second, Defaults(), now_, {second, std::vector<std::string>{}});
  EXPECT_EQ(leaf_of("c"), "team-a") << "it was said of another set";
  EXPECT_EQ(leaf_of("a"), "");
}

}  // namespace THIS_FILE
}  // namespace tranche
