#include "scheduler/index/charge_of.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/index/load.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

constexpr int64_t kWhole = kQuantaPerGpu;
constexpr int64_t kH200Mib = 143'771;

NodeFacts H200(int gpus) { return test::StockNode("h200", gpus, "NVIDIA-H200", kH200Mib); }

NodeFacts H200Mig(int gpus, const std::vector<test::MigCount>& instances) {
  NodeFacts node = test::MigNode("mig", gpus, 0, instances);
  node.product = "NVIDIA-H200";
  node.memory = Mebibytes::Of(kH200Mib);
  return node;
}

NodeFacts Guest(const std::string& product, int64_t mib) {
  return test::StockNode("guest", 4, product, mib);
}

NodeFacts GuestWithReplicas() {
  NodeFacts node = test::SharedNode("guest", 1, 4, true);
  node.product = "GRID-A100-10C";
  node.memory = Mebibytes::Of(10'240);
  return node;
}

PodRequest GpuMemory(int64_t mib) {
  PodRequest request = test::EmptyRequest("memory");
  request.style = RequestStyle::kTranche;
  Ask ask;
  ask.resource = Resource::kShare;
  ask.count = 1;
  ask.memory = {MemoryNeed::Kind::kMib, mib};
  request.asks.push_back(ask);
  return request;
}

// Shares of one card of 1/4 and so on, in the order init, sidecar, app.
PodRequest WithInit(int64_t init, int64_t sidecar, int64_t app) {
  PodRequest request = test::FractionPod("init", init);
  request.containers = {{"init", ContainerRole::kInit, 0},
                        {"side", ContainerRole::kSidecar, 0},
                        {"main", ContainerRole::kApp, 0}};
  Ask ask = request.asks[0];
  request.asks.clear();
  int container = 0;
  for (const int64_t milli : {init, sidecar, app}) {
    ask.container = container++;
    ask.compute = MilliGpu::Of(milli);
    ask.memory.value = milli;
    request.asks.push_back(ask);
  }
  return request;
}

struct Row {
  std::string what;
  NodeFacts node;
  PodRequest request;
  std::string model;
  Charge charge;
};

std::vector<Row> Rows() {
  const auto milli = [](int64_t amount) {
    return Charge{kWhole / 1000 * amount, kWhole / 1000 * amount};
  };
  using test::MigPod;
  const NodeFacts sliced = test::SharedNode("sliced", 2, 4, true);
  const NodeFacts mps = test::SharedNode("mps", 1, 7, false, SharingMethod::kMps);
  const NodeFacts hami = test::HamiNode("hami", 2);
  // Of 15109 MiB, rounded up to a quantum.
  const auto of_t4 = [](int64_t mib) { return (kWhole * mib + 15108) / 15109; };
  return {
      {"whole", H200(8), test::WholePod("p", 1), "h200", milli(1000)},
      {"several", H200(8), test::WholePod("p", 3), "h200", milli(3000)},
      {"half", H200(1), test::FractionPod("p", 500), "h200", milli(500)},
      {"a third of two", H200(2), test::FractionPod("p", 333, 2), "h200", milli(666)},
      {"memory alone", H200(1), GpuMemory(20480), "h200", {2'566'642, 2'566'642}},
      {"replica", sliced, test::SharedPod("p", 1), "l40s", {kWhole / 4, kWhole / 4}},
      {"two replicas", sliced, test::SharedPod("p", 2), "l40s", {kWhole / 2, kWhole / 2}},
      {"MPS replica", mps, test::WholePod("p", 1), "l40s", {kWhole / 100 * 14, kWhole / 7}},
      {"1g.18gb",
       H200Mig(1, {{"1g.18gb", 7}}),
       MigPod("p", "1g.18gb", 1),
       "h200",
       {2'574'000, 2'252'250}},
      {"7 x 1g.18gb",
       H200Mig(1, {{"1g.18gb", 7}}),
       MigPod("p", "1g.18gb", 7),
       "h200",
       {18'018'000, 15'765'750}},
      {"1g.35gb",
       H200Mig(1, {{"1g.35gb", 4}}),
       MigPod("p", "1g.35gb", 1),
       "h200",
       {2'574'000, 4'504'500}},
      {"2g.35gb",
       H200Mig(1, {{"2g.35gb", 3}}),
       MigPod("p", "2g.35gb", 1),
       "h200",
       {5'148'000, 4'504'500}},
      {"3g.71gb",
       H200Mig(1, {{"3g.71gb", 2}}),
       MigPod("p", "3g.71gb", 1),
       "h200",
       {7'722'000, 9'009'000}},
      {"4g.71gb",
       H200Mig(1, {{"4g.71gb", 1}}),
       MigPod("p", "4g.71gb", 1),
       "h200",
       {10'296'000, 9'009'000}},
      {"7g.141gb",
       H200Mig(1, {{"7g.141gb", 1}}),
       MigPod("p", "7g.141gb", 1),
       "h200",
       {18'018'000, 18'018'000}},
      {"half an instance",
       H200Mig(1, {{"2g.35gb", 3, 2}}),
       MigPod("p", "2g.35gb", 1, true),
       "h200",
       {2'574'000, 2'252'250}},
      {"HAMi share", hami, test::HamiPod("p", 1, 3000, 30), "t4", {kWhole / 10 * 3, of_t4(3000)}},
      {"HAMi memory", hami, test::HamiPod("p", 1, 3000), "t4", {of_t4(3000), of_t4(3000)}},
      {"HAMi, two cards",
       hami,
       test::HamiPod("p", 2, 3000, 30),
       "t4",
       {kWhole / 5 * 3, 2 * of_t4(3000)}},
      {"a guest with a quarter of a card", Guest("GRID-A100-10C", 10'240), test::WholePod("p", 2),
       "a100-40gb", milli(500)},
      {"half of such a guest", Guest("GRID-A100-10C", 10'240), test::FractionPod("p", 500),
       "a100-40gb", milli(125)},
      {"a guest that shares its vGPU",
       GuestWithReplicas(),
       test::SharedPod("p", 1),
       "a100-40gb",
       {kWhole / 16, kWhole / 16}},
      {"a guest with an instance",
       Guest("GRID-A100D-1-10C", 10'240),
       test::WholePod("p", 1),
       "a100-80gb",
       {kWhole / 7, kWhole / 8}},
      {"a guest of a type nobody knows", Guest("GRID-Z9-10C", 10'240), test::WholePod("p", 1),
       "grid-z9-10c", milli(1000)},
      {"init before app", H200(1), WithInit(700, 100, 300), "h200", milli(700)},
      {"app beside sidecar", H200(1), WithInit(200, 300, 400), "h200", milli(700)},
  };
}

TEST(ChargeOf, EveryKindOfRequestHasItsExactCharge) {
  GpuPolicy policy;
  policy.unenforced_sharing = Permission::kAllow;
  for (const Row& row : Rows()) {
    const Inventory inventory = BuildInventory(row.node, 0);
    Load load;
    load.Reset(inventory);
    Picks picks;
    Placer placer;
    ASSERT_EQ(placer.Place(inventory, load, row.request, {.policy = &policy}, picks), Reason::kNone)
        << row.what;
    const std::vector<ModelCharge> charged = ChargeOfPicks(inventory, row.request, picks);
    EXPECT_EQ(charged, (std::vector<ModelCharge>{{row.model, row.charge}}))
        << row.what << ": "
        << fmt::format("{}/{}", charged[0].charge.compute, charged[0].charge.memory);
    std::vector<ModelCharge> most;
    ChargeAtMost(inventory, row.request, most);
    ASSERT_EQ(most.size(), 1U) << row.what;
    EXPECT_EQ(most[0].model, row.model) << row.what;
    EXPECT_GE(most[0].charge.compute, row.charge.compute) << row.what;
    EXPECT_GE(most[0].charge.memory, row.charge.memory) << row.what;
  }
}

TEST(ChargeOf, NodeWithoutSuchDevicesHasNoUpperCharge) {
  std::vector<ModelCharge> most = {{"left from before", {1, 1}}};
  ChargeAtMost(BuildInventory(H200(2), 0), test::MigPod("p", "1g.18gb", 1), most);
  EXPECT_THAT(most, testing::IsEmpty());
  ChargeAtMost(BuildInventory(NodeFacts{}, 0), test::WholePod("p", 1), most);
  EXPECT_THAT(most, testing::IsEmpty());
}

TEST(ChargeOf, CardsOfSeveralModelsAreChargedEachAsItsOwn) {
  NodeFacts node = test::HamiNode("mixed", 2);
  node.agent->devices[1].type = "NVIDIA-NVIDIA A100-SXM4-40GB";
  node.agent->devices[1].memory = Mebibytes::Of(40960);
  const Inventory inventory = BuildInventory(node, 0);
  GpuPolicy policy;
  policy.unenforced_sharing = Permission::kAllow;
  Load load;
  load.Reset(inventory);
  Picks picks;
  Placer placer;
  const PodRequest request = test::HamiPod("p", 2, 4096, 50);
  ASSERT_EQ(placer.Place(inventory, load, request, {.policy = &policy}, picks), Reason::kNone);
  const std::vector<ModelCharge> charged = ChargeOfPicks(inventory, request, picks);
  ASSERT_EQ(charged.size(), 2U);
  EXPECT_EQ(charged[0].model, "a100-40gb");
  EXPECT_EQ(charged[0].charge.memory, kWhole / 10);
  EXPECT_EQ(charged[1].model, "t4");
  EXPECT_EQ(charged[0].charge.compute, kWhole / 2);
  // What it may cost at most is that of the smaller card, which is a larger part of it.
  std::vector<ModelCharge> most;
  ChargeAtMost(inventory, request, most);
  ASSERT_EQ(most.size(), 1U);
  EXPECT_EQ(most[0].charge.memory, 2 * charged[1].charge.memory);
}

// The labels of the node say what the catalogue does not.
TEST(ChargeOf, InstancesThatNoCatalogueKnowsAreChargedByTheirLabels) {
  NodeFacts node = H200Mig(1, {{"9g.99gb", 3}});
  node.mig[0].gi_slices = 2;
  node.mig[0].memory = Mebibytes::Of(kH200Mib / 4);
  std::vector<ModelCharge> most;
  const auto compute_of = [&most](const NodeFacts& facts, const PodRequest& request) {
    ChargeAtMost(BuildInventory(facts, 0), request, most);
    return most.empty() ? -1 : most[0].charge.compute;
  };
  const PodRequest unknown = test::MigPod("p", "9g.99gb", 1);
  EXPECT_EQ(compute_of(node, unknown), kWhole / 7 * 2);
  EXPECT_NEAR(static_cast<double>(most[0].charge.memory), kWhole / 4.0, kWhole / 1000.0);
  node.product = "NVIDIA-Next-999GB";
  EXPECT_EQ(compute_of(node, unknown), kWhole / 7 * 2) << "of a GPU that it does not know either";
  // Fewer units than one instance's replicas: there is no instance whose size could be seen.
  node = H200Mig(1, {{"9g.99gb", 1, 4}, {"1g.18gb", 1, 4}});
  for (MigResourceFacts& mig : node.mig) mig.count = {1, 1};
  node.mig[0].gi_slices = 2;
  node.mig[0].memory = Mebibytes::Of(kH200Mib / 4);
  EXPECT_EQ(compute_of(node, test::MigPod("p", "9g.99gb", 1, true)), kWhole / 4) << "as if whole";
  EXPECT_EQ(compute_of(node, test::MigPod("p", "1g.18gb", 1, true)), kWhole / 7 / 4);
}

TEST(ChargeOf, CardsInMigModeBesideSharedOnesAreChargedAsWhatTheyAre) {
  NodeFacts node = test::HamiNode("n", 2);
  node.product = "NVIDIA-A100-SXM4-40GB";
  node.memory = Mebibytes::Of(40960);
  node.agent->minor = 10;
  for (AgentDevice& device : node.agent->devices) device.memory = Mebibytes::Of(40960);
  node.agent->devices[1].mode = "mig";
  std::vector<ModelCharge> shared, both;
  const PodRequest request = test::HamiPod("p", 1, 8000);
  ChargeAtMost(BuildInventory(node, 0), request, both);
  node.agent->devices[1].mode = "hami-core";
  ChargeAtMost(BuildInventory(node, 0), request, shared);
  ASSERT_EQ(both.size(), 1U);
  ASSERT_EQ(shared.size(), 1U);
  EXPECT_LT(shared[0].charge.memory, kWhole / 4);
  EXPECT_EQ(both[0].charge.memory, kWhole / 4) << "an instance of 2g.10gb";
}

TEST(ChargeOf, WhoAsksNothingOrWhatIsNotThereIsNotCharged) {
  std::vector<ModelCharge> most;
  ChargeAtMost(BuildInventory(H200(2), 0), test::EmptyRequest("p"), most);
  EXPECT_THAT(most, testing::IsEmpty());
  PodRequest other = test::WholePod("p", 1);
  other.models_any = {"a100"};
  ChargeAtMost(BuildInventory(H200(2), 0), other, most);
  EXPECT_THAT(most, testing::IsEmpty());
}

}  // namespace THIS_FILE
}  // namespace tranche
