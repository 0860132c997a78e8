// What GPUs cost now, worked out by hand: "dear" is in pool "p" at 4 dollars a GPU and hour,
// "cheap" is spot at 1, and "bare" is of a kind that no price suits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/engine/cost_walk.h"
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Hours;
using test::Price;
using test::Quota;
using testing::ElementsAre;
using testing::IsEmpty;

class EngineCostTest : public EngineReclaimTest {
 protected:
  EngineCostTest() {
    Nodes({Labelled("dear", {{"pool", "p"}}, 8),
           Labelled("cheap", {{"karpenter.sh/capacity-type", "spot"}}, 8),
           Labelled("bare", {}, 2)});
    Declare(Priced());
  }

  static NodeFacts Labelled(const std::string& name, const Labels& labels, int gpus) {
    NodeFacts node = test::StockNode(name, gpus);
    node.labels = LabelText(labels);
    return node;
  }
  static test::Objects Priced() {
    GpuPrice pool = Price("pool", 4'000);
    pool.pool = "p";
    GpuPrice spot = Price("spot", 1'000);
    spot.capacity = CapacityType::kSpot;
    return {.quotas = {Quota("team-a").Owns("a").Line("any", "1000"),
                       Quota("team-b").Owns("b").Line("any", "100")},
            .namespaces = {"a", "b", "c"},
            .pools = {test::Pool("p")},
            .prices = {pool, spot}};
  }
  // "team-a h100 p 3 GPUs 12 USD".
  static std::vector<std::string> Texts(const std::vector<CostRow>& rows) {
    std::vector<std::string> texts;
    for (const CostRow& row : rows) {
      const auto milli = static_cast<int64_t>(row.quanta * 1000 / kQuantaPerGpu);
      const auto cents = static_cast<int64_t>(row.money / (Int128{kQuantaPerGpu} * 10'000));
      texts.push_back(fmt::format("{} {} {} {} {} {}", row.leaf, row.model, row.pool, milli, cents,
                                  row.currency));
    }
    return texts;
  }
  CostSums Costs() {
    CostWalk walk;
    while (!walk.done()) engine_.CostSlice(walk, now_);
    return CostsOf(walk);
  }
};

TEST_F(EngineCostTest, TeamsCostWhatTheyHoldWhereItIs) {
  Run(Pod("a", "three", 3), "dear");
  Run(In("a", test::FractionPod("half", 500)), "cheap");
  Run(Pod("b", "two", 2), "cheap");
  Run(Pod("b", "one", 1), "bare");
  Run(Pod("c", "nobodys", 1), "cheap");
  const CostSums costs = Costs();
  EXPECT_THAT(Texts(costs.held), ElementsAre(" h100  1000 100 USD", "team-a h100  500 50 USD",
                                             "team-a h100 p 3000 1200 USD", "team-b h100  1000 0 ",
                                             "team-b h100  2000 200 USD"));
  EXPECT_THAT(Texts(costs.fleet),
              ElementsAre(" h100  2000 0 ", " h100  8000 800 USD", " h100 p 8000 3200 USD"));
}

TEST_F(EngineCostTest, WhatEndsAndNodesThatGoCostNothing) {
  Run(Pod("a", "three", 3), "dear");
  Run(Pod("b", "two", 2), "cheap");
  engine_.DeletePod(PodUid(Pod("a", "three", 3).uid), now_);
  engine_.DeleteNode(NodeName("cheap"), now_);
  const CostSums costs = Costs();
  EXPECT_THAT(Texts(costs.held), ElementsAre("team-b h100  2000 0 "))
      << "it is held, on GPUs of which nobody tells";
  EXPECT_THAT(Texts(costs.fleet), ElementsAre(" h100  2000 0 ", " h100 p 8000 3200 USD"));
}

TEST_F(EngineCostTest, WithoutPricesAllIsUnpriced) {
  Run(Pod("a", "three", 3), "dear");
  test::Objects objects = Priced();
  objects.prices.clear();
  Declare(objects);
  EXPECT_THAT(Texts(Costs().held), ElementsAre("team-a h100 p 3000 0 "));
  EXPECT_THAT(Texts(Costs().fleet), ElementsAre(" h100  10000 0 ", " h100 p 8000 0 "));
}

TEST_F(EngineCostTest, APriceThatBeginsAtAnHourIsInForceThen) {
  Run(Pod("a", "three", 3), "dear");
  test::Objects objects = Priced();
  GpuPrice night = Price("night", 500);
  night.pool = "p";
  night.zone = *TimeZone::Load("UTC");
  const auto minute = static_cast<int>(std::chrono::duration_cast<std::chrono::minutes>(
                                           now_ - std::chrono::floor<std::chrono::days>(now_))
                                           .count());
  night.hours = {{0x7F, (minute + 60) % 1440, (minute + 120) % 1440}};
  objects.prices.push_back(night);
  Declare(objects);
  EXPECT_THAT(Texts(Costs().held), ElementsAre("team-a h100 p 3000 1200 USD"));
  now_ += Hours(1);
  EXPECT_THAT(Texts(Costs().held), ElementsAre("team-a h100 p 3000 150 USD")) << "no event came";
  now_ += Hours(1);
  EXPECT_THAT(Texts(Costs().held), ElementsAre("team-a h100 p 3000 1200 USD"));
}

TEST_F(EngineCostTest, NoSliceLooksAtMoreThanItSays) {
  for (int i = 0; i < CostWalk::kNodesAtOnce; ++i) {
    const std::string name = fmt::format("more-{:03}", i);
    Nodes({Labelled(name, {{"pool", "p"}}, 8)});
    for (int pod = 0; pod < 5; ++pod) Run(Pod("a", fmt::format("{}-{}", name, pod), 1), name);
  }
  CostWalk walk;
  int slices = 0;
  std::size_t nodes = 0;
  std::size_t work = 0;
  for (; !walk.done(); ++slices) {
    engine_.CostSlice(walk, now_);
    std::size_t uses = 0;
    for (const auto& [place, held] : walk.uses) uses += held.size();
    EXPECT_LE(walk.offers.size() - nodes, std::size_t{CostWalk::kNodesAtOnce});
    EXPECT_LE(uses - work, std::size_t{CostWalk::kWorkAtOnce});
    nodes = walk.offers.size();
    work = uses;
  }
  EXPECT_EQ(slices, 4) << "two of nodes, two of work";
  EXPECT_THAT(Texts(CostsOf(walk).held),
              ElementsAre(fmt::format("team-a h100 p {} {} USD", 5'000 * CostWalk::kNodesAtOnce,
                                      2'000 * CostWalk::kNodesAtOnce)));
}

// For bills: the journal names what made the pod, also where a step of the clock opens it again.
TEST_F(EngineCostTest, WhatIsOpenedNamesWhatMadeThePod) {
  const PodRequest request = Pod("a", "p", 1);
  PodFacts pod = test::Pending(request);
  pod.controller = "Job/train";
  pod.labels = std::make_shared<const Labels>(Labels{{"project", "x"}});
  engine_.UpsertPod(pod, now_);
  ASSERT_EQ(engine_.Bind(request.name, request.uid, NodeName("dear"), now_).kind,
            BindPlan::Kind::kWrite);
  engine_.StepClock(now_, now_ + Hours(1));
  Metered();
  int opened = 0;
  for (const MeterEvent& event : journal_) {
    const bool opens = event.kind == MeterKind::kOpen;
    EXPECT_EQ(event.controller, opens ? "Job/train" : "");
    EXPECT_EQ(event.labels != nullptr && event.labels->at("project") == "x", opens);
    opened += opens ? 1 : 0;
  }
  EXPECT_EQ(opened, 2);
}

// 1/2 and 3/4 of one GPU share it as 2 to 3, as in a bill.
TEST(CostWalk, WhereMoreIsHeldThanThereIsAllPayInProportion) {
  CostWalk walk;
  walk.offers[NodeId(1)] = {"h100", "", "USD", 1'000'000, 1};
  walk.uses[{NodeId(1), "h100"}] = {{"a", kQuantaPerGpu / 2}, {"b", kQuantaPerGpu * 3 / 4}};
  walk.uses[{NodeId(1), "l4"}] = {{"b", kQuantaPerGpu}};
  const CostSums costs = CostsOf(walk);
  ASSERT_EQ(costs.held.size(), 3U);
  EXPECT_TRUE(costs.held[0].money == Int128{kQuantaPerGpu} * 400'000);
  EXPECT_TRUE(costs.held[1].money == Int128{kQuantaPerGpu} * 600'000);
  EXPECT_EQ(costs.held[2].model, "l4");
  EXPECT_EQ(costs.held[2].currency, "") << "the node has none of that model";
  ASSERT_EQ(costs.fleet.size(), 1U);
  EXPECT_TRUE(costs.fleet[0].money == costs.held[0].money + costs.held[1].money);
}

}  // namespace THIS_FILE
}  // namespace tranche
