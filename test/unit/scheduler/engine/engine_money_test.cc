// Placement by what it newly costs. Node "dear" is on demand at 4 dollars a GPU and hour, "cheap"
// is spot at 1; both have 8 GPUs.
#include "test/unit/scheduler/engine/engine_reclaim_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Hours;
using test::Price;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class EngineMoneyTest : public EngineReclaimTest {
 protected:
  EngineMoneyTest() {
    Nodes({Typed("cheap", "spot"), Typed("dear", "on-demand")});
    Declare(Priced());
  }
  ~EngineMoneyTest() override { EXPECT_THAT(engine_.Audit(), IsEmpty()); }

  static NodeFacts Typed(const std::string& name, const std::string& capacity, int gpus = 8) {
    NodeFacts node = test::StockNode(name, gpus);
    node.labels = LabelText(Labels{{"karpenter.sh/capacity-type", capacity}});
    return node;
  }
  static test::Objects Priced(std::optional<int> rate = 100) {
    GpuPrice spot = Price("spot", 1'000);
    spot.capacity = CapacityType::kSpot;
    GpuPolicy policy = Defaults();
    policy.money_rate = rate;
    return {.policies = {policy}, .prices = {Price("list", 4'000), spot}};
  }
  std::string Places(const PodRequest& request) {
    std::string nodes = Try(request);
    engine_.DeletePod(request.uid, now_);
    return nodes;
  }
  static PodRequest Lasting(const std::string& name, Millis runtime, int64_t gpus = 1) {
    PodRequest request = Pod("a", name, gpus);
    request.expected_runtime = runtime;
    return request;
  }
};

TEST_F(EngineMoneyTest, OfNodesThatAreAlikeTheCheaperOneIsTaken) {
  EXPECT_EQ(Places(Pod("a", "p", 1)), "cheap dear");
  engine_.UpsertNode(Typed("cheap", "on-demand"), now_);
  engine_.UpsertNode(Typed("dear", "spot"), now_);
  EXPECT_EQ(Places(Pod("a", "p", 1)), "dear cheap") << "prices, not names";
}

TEST_F(EngineMoneyTest, WhoSaysOffOrHasNoPricesGoesByPackingAlone) {
  engine_.UpsertNode(Typed("cheap", "on-demand"), now_);
  engine_.UpsertNode(Typed("dear", "spot"), now_);
  Declare(Priced(/*rate=*/0));
  EXPECT_EQ(Places(Pod("a", "p", 1)), "cheap dear");
  test::Objects unpriced = Priced();
  unpriced.prices.clear();
  Declare(unpriced);
  EXPECT_EQ(Places(Pod("a", "p", 1)), "cheap dear");
  Declare(Priced(std::nullopt));
  EXPECT_EQ(Places(Pod("a", "p", 1)), "dear cheap") << "Auto";
}

// A used node is paid for already: 1 GPU at 4 dollars is less than 8 at 1.
TEST_F(EngineMoneyTest, AnEmptyNodeCostsAllOfIt) {
  Declare(Priced(/*rate=*/2'000));
  Run(Pod("a", "runs", 1), "dear");
  EXPECT_EQ(Places(Pod("a", "p", 1)), "dear cheap");
  EXPECT_EQ(Places(Pod("a", "p", 4)), "cheap dear") << "4 GPUs at 4 dollars are more";
}

TEST_F(EngineMoneyTest, OfNodesInUseTheCheaperOneIsTaken) {
  Run(Pod("a", "runs", 1), "dear");
  Run(Pod("a", "runs-too", 1), "cheap");
  EXPECT_EQ(Places(Pod("a", "p", 1)), "cheap dear");
}

// Where all say how long they run, work that ends before the rest costs nothing more.
TEST_F(EngineMoneyTest, WorkGoesWhereItKeepsNoNodeLonger) {
  Run(Lasting("long", Hours(10)), "dear");
  Run(Lasting("short", Hours(1)), "cheap");
  EXPECT_EQ(Places(Lasting("p", Hours(9))), "dear cheap");
  EXPECT_EQ(Places(Lasting("p", Hours(1))), "cheap dear") << "it keeps neither";
  Pass(Hours(1) + Millis(1));
  EXPECT_EQ(Places(Lasting("p", Hours(8))), "dear cheap") << "one has outlived its word";
  EXPECT_EQ(Places(Pod("a", "p", 1)), "cheap dear") << "it says nothing";
}

TEST_F(EngineMoneyTest, BigMachinesAreNotOpenedForSmallWork) {
  Nodes({Typed("small", "on-demand", 1)});
  EXPECT_EQ(Places(Pod("a", "p", 1)), "small cheap dear") << "4 dollars, not 8, not 32";
}

TEST_F(EngineMoneyTest, PricesThatBeginAtAnHourAreInForceThen) {
  test::Objects objects = Priced();
  GpuPrice night = Price("night", 100);
  night.capacity = CapacityType::kOnDemand;
  night.zone = *TimeZone::Load("UTC");
  const auto minute = static_cast<int>(std::chrono::duration_cast<std::chrono::minutes>(
                                           now_ - std::chrono::floor<std::chrono::days>(now_))
                                           .count());
  night.hours = {{0x7F, (minute + 60) % 1440, (minute + 120) % 1440}};
  objects.prices.push_back(night);
  Declare(objects);
  EXPECT_EQ(Places(Pod("a", "p", 1)), "cheap dear");
  now_ += Hours(1);
  EXPECT_EQ(Places(Pod("a", "p", 1)), "dear cheap") << "no event came";
  now_ += Hours(1);
  EXPECT_EQ(Places(Pod("a", "p", 1)), "cheap dear");
}

TEST_F(EngineMoneyTest, WhatWasPaidAheadCostsNothing) {
  test::Objects objects = Priced();
  GpuPool ahead;
  ahead.name = "ahead";
  ahead.nodes.match_labels = {{"karpenter.sh/capacity-type", "on-demand"}};
  ahead.capacity = CapacityType::kReserved;
  objects.pools = {ahead};
  Declare(objects);
  EXPECT_EQ(Places(Pod("a", "p", 1)), "dear cheap");
}

TEST_F(EngineMoneyTest, TheOrderOfTheClassComesFirst) {
  test::Objects objects = Priced();
  GpuClass work = test::Class("work");
  work.capacity = {CapacityType::kOnDemand, CapacityType::kSpot};
  objects.classes = {work};
  Declare(objects);
  EXPECT_EQ(Places(Pod("a", "p", 1, "work")), "dear cheap");
}

TEST_F(EngineMoneyTest, SpreadAndBestFitLookAtRoomAlone) {
  Run(Pod("a", "runs", 1), "dear");
  test::Objects objects = Priced(/*rate=*/100'000);
  objects.policies.front().strategy = Strategy::kSpread;
  Declare(objects);
  EXPECT_EQ(Places(Pod("a", "p", 1)), "cheap dear");
  objects.policies.front().strategy = Strategy::kBestFit;
  Declare(objects);
  EXPECT_EQ(Places(Pod("a", "p", 4)), "dear cheap");
}

TEST_F(EngineMoneyTest, ExplainSaysWhatTheNodeWouldCost) {
  Run(Lasting("long", Hours(4)), "dear");
  const PodRequest pod = Lasting("p", Hours(8));
  Try(pod);
  const auto explained = engine_.Explain(pod.name, now_);
  ASSERT_TRUE(explained);
  const auto detail = [&](const char* node) {
    return std::ranges::find(explained->nodes, NodeName(node), &NodeVerdict::node)->detail;
  };
  EXPECT_EQ(detail("cheap"), "newly costs 8 GPU an hour at 1 USD (GPUPrice spot)");
  EXPECT_EQ(detail("dear"), "newly costs 4 GPU an hour at 4 USD (GPUPrice list)");
  Declare(Priced(/*rate=*/0));
  const auto off = engine_.Explain(pod.name, now_);
  for (const NodeVerdict& verdict : off->nodes) EXPECT_THAT(verdict.detail, Not(HasSubstr("USD")));
}

}  // namespace THIS_FILE
}  // namespace tranche
