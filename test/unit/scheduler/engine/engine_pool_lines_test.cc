// Quota lines and budget rates of a pool: which line GPUs of its nodes are charged to, and for how
// long.
#include <memory>
#include <string>
#include <vector>

#include "test/builders/budget_history.h"
#include "test/unit/scheduler/engine/engine_quota_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Quota;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PoolLinesTest : public EngineQuotaTest {
 protected:
  PoolLinesTest() { Nodes({Of("d1", "demand"), Of("s1", "spot")}); }

  static NodeFacts Of(const std::string& name, const std::string& pool) {
    NodeFacts node = test::StockNode(name, 8);
    node.labels = LabelText(Labels{{"pool", pool}});
    return node;
  }
  // 2 of its own anywhere but in the pool, and 4 there; the others lend 8 and 8.
  static test::Objects Teams() {
    return {.quotas = {Quota("org").Line("h100", "6").PoolLine("h100", "spot", "4"),
                       Quota("team-a")
                           .Under("org")
                           .Owns("a")
                           .Line("h100", "2")
                           .PoolLine("h100", "spot", "4")},
            .pools = {test::Pool("spot")}};
  }
  // The node, or why it does not run there.
  std::string Run(const PodRequest& request, const std::string& node) {
    const std::string nodes = Try(request);
    if (!Place(request, node)) return nodes;
    engine_.UpsertPod(BoundFacts(request, node), now_);
    return node;
  }
  // "h100@spot 4/4": used of nominal, in milli-GPUs.
  std::vector<std::string> Used(const std::string& quota) {
    std::vector<std::string> lines;
    for (const QuotaView& view : engine_.Quotas(now_)) {
      if (view.report.name != quota) continue;
      for (const QuotaLineReport& line : view.report.lines) {
        lines.push_back(fmt::format("{} {}/{}", line.line.name,
                                    line.line.used.compute / kQuantaPerGpu,
                                    line.line.nominal.compute.saturated() / kQuantaPerGpu));
      }
    }
    return lines;
  }
};

TEST_F(PoolLinesTest, GpusOfThePoolAreChargedToItsLine) {
  Declare(Teams());
  EXPECT_EQ(Run(Pod("a", "p1", 2), "d1"), "d1");
  EXPECT_EQ(Run(Pod("a", "p2", 4), "s1"), "s1");
  EXPECT_THAT(Used("team-a"), ElementsAre("h100 2/2", "h100@spot 4/4"));
  EXPECT_THAT(Used("org"), ElementsAre("h100 2/6", "h100@spot 4/4"));
  // Nothing of the pool is left to borrow; of the others there is.
  const PodRequest p3 = Pod("a", "p3", 4);
  EXPECT_EQ(Run(p3, "d1"), "d1");
  EXPECT_THAT(Used("team-a"), ElementsAre("h100 6/2", "h100@spot 4/4"));
}

TEST_F(PoolLinesTest, ARefusalNamesTheLine) {
  test::Objects objects = Teams();
  objects.quotas = {Quota("team-a").Owns("a").Line("h100", "2").PoolLine("h100", "spot", "4")};
  Declare(objects);
  EXPECT_EQ(Run(Pod("a", "p1", 4), "s1"), "s1");
  EXPECT_EQ(Run(Pod("a", "p2", 2), "d1"), "d1");
  const PodRequest more = Pod("a", "more", 1);
  EXPECT_EQ(Try(more), "WaitingForQuota");
  EXPECT_THAT(Bind(more, "s1").detail, HasSubstr("team-a uses 4 h100@spot (nominal 4"));
  EXPECT_THAT(Bind(more, "d1").detail, HasSubstr("team-a uses 2 h100 (nominal 2"));
}

// Another root has no line of the pool: its GPUs there are of the model's.
TEST_F(PoolLinesTest, LinesOfAPoolAreOfTheirOwnTree) {
  test::Objects objects = Teams();
  objects.quotas.push_back(Quota("team-b").Owns("b").Line("h100", "5"));
  Declare(objects);
  EXPECT_EQ(Run(Pod("b", "p1", 4), "s1"), "s1");
  EXPECT_THAT(Used("team-b"), ElementsAre("h100 4/5"));
  EXPECT_EQ(Try(Pod("b", "p2", 2)), "WaitingForQuota");
}

TEST_F(PoolLinesTest, WorkThatRunsStaysOnItsLine) {
  Declare(Teams());
  const PodRequest pod = Pod("a", "p1", 4);
  EXPECT_EQ(Run(pod, "s1"), "s1");
  engine_.UpsertNode(Of("s1", "demand"), now_);
  EXPECT_THAT(Used("team-a"), ElementsAre("h100 0/2", "h100@spot 4/4"));
  // What comes from now on is of no pool.
  EXPECT_EQ(Run(Pod("a", "p2", 2), "s1"), "s1");
  EXPECT_THAT(Used("team-a"), ElementsAre("h100 2/2", "h100@spot 4/4"));
  engine_.DeletePod(pod.uid, now_);
  EXPECT_THAT(Used("team-a"), ElementsAre("h100 2/2", "h100@spot 0/4"));
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

// Pools and lines may be declared after the nodes are there.
TEST_F(PoolLinesTest, EditsOfPoolsAndLinesTakeEffectOnNewWork) {
  test::Objects objects = Teams();
  objects.pools.clear();
  Declare(objects);
  EXPECT_EQ(Run(Pod("a", "p1", 1), "s1"), "s1");
  EXPECT_THAT(Used("team-a"), ElementsAre("h100 1/2", "h100@spot 0/4"));
  Declare(Teams());
  EXPECT_EQ(Run(Pod("a", "p2", 1), "s1"), "s1");
  EXPECT_THAT(Used("team-a"), ElementsAre("h100 1/2", "h100@spot 1/4"));
  objects = Teams();
  objects.quotas = {Quota("team-a").Owns("a").Line("h100", "8")};
  Declare(objects);
  EXPECT_THAT(Used("team-a"), ElementsAre("h100 2/8")) << "the tree has no line of the pool now";
  EXPECT_THAT(engine_.Audit(), IsEmpty());
}

TEST_F(PoolLinesTest, MoreIsPromisedThanThePoolHas) {
  test::Objects objects = Teams();
  objects.quotas = {Quota("team-a").Owns("a").PoolLine("any", "spot", "9"),
                    Quota("team-b").Owns("b").PoolLine("a100-80gb", "spot", "1")};
  Declare(objects);
  const std::vector<QuotaView> views = engine_.Quotas(now_);
  ASSERT_EQ(views.size(), 2U);
  EXPECT_EQ(views[0].oversubscribed, "quotas promise 1 GPUs of a100-80gb, the cluster has 0");
  EXPECT_THAT(views[0].absent_models, IsEmpty());
  EXPECT_THAT(views[1].absent_models, ElementsAre("a100-80gb@spot"));
}

TEST_F(PoolLinesTest, BudgetsRateByPool) {
  test::Objects objects = Teams();
  objects.budgets = {test::DayBudget("team-a", 100)};
  objects.budgets[0].rates = {{"any@spot", 500}, {"h100", 2000}};
  Declare(objects);
  EXPECT_EQ(Run(Pod("a", "p1", 2), "d1"), "d1");
  EXPECT_EQ(Run(Pod("a", "p2", 4), "s1"), "s1");
  Pass(Millis(3'600'000));
  // 2 x 2 and 4 x 0.5 GPU-hours.
  EXPECT_EQ(engine_.Budgets(now_)[0].view.used / kGpuHour, 6);
}

TEST(RateOfTest, TheMostExactRateCounts) {
  GpuBudget budget;
  budget.rates = {{"any@spot", 300}, {"h100", 2000}, {"h100@spot", 500}, {"l4@night", 100}};
  const std::pair<const char*, int64_t> cases[] = {
      {"h100", 2000},   {"h100@spot", 500}, {"h100@other", 2000}, {"l4", 1000},
      {"l4@spot", 300}, {"l4@night", 100},  {"t4@night", 1000}};
  for (const auto& [charged, rate] : cases) EXPECT_EQ(RateOf(budget, charged), rate) << charged;
}

}  // namespace THIS_FILE
}  // namespace tranche
