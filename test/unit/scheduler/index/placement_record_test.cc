// Records back to devices: what they answer, what they are worth alone, and which are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "scheduler/index/placement.h"
#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using testing::HasSubstr;
using Containers = std::vector<ContainerDevices>;

Device Card(int card, const std::string& uuid = "", int64_t milli = 1000, int64_t mib = 1) {
  return {card, GpuUuid(uuid), MilliGpu::Of(milli), Mebibytes::Of(mib), std::nullopt};
}

Device Instance(int card, const std::string& profile, int start, int size) {
  Device device = Card(card, "", 0, 0);
  device.mig = MigDevice{profile, start, size};
  return device;
}

Allocation Record(Containers containers) {
  return {1, "", Knowledge::kExact, std::move(containers)};
}

PodRequest Edited(const std::string& container = "main") {
  PodRequest request = test::EmptyRequest("p");
  request.style = RequestStyle::kTranche;
  request.containers[0].name = container;
  return request;
}

struct Row {
  const char* what;
  NodeFacts node;
  PodRequest request;
  Containers record;
  std::string found;  // "card card" or the problem
};

std::string Found(const std::optional<Picks>& picks, const std::string& problem) {
  if (!picks) return problem;
  std::string text;
  for (const Pick& pick : *picks) {
    text += (text.empty() ? "" : " ") + std::to_string(pick.card);
    if (pick.pool >= 0) text += "#" + std::to_string(pick.slot);
  }
  return text;
}

TEST(PlacementRecord, ARecordAnswersWhatThePodAsks) {
  const NodeFacts stock = test::StockNode("n", 2), hami = test::HamiNode("n", 2);
  const NodeFacts mig = test::MigNode("n", 2, 1, {{"3g.40gb", 2}});
  const PodRequest one = test::WholePod("p", 1), two = test::WholePod("p", 2);
  const PodRequest half = test::MigPod("p", "3g.40gb", 1);
  const std::vector<Row> rows = {
      {"one card", stock, one, {{"main", {Card(1)}}}, "1"},
      {"two cards", stock, two, {{"main", {Card(1), Card(0)}}}, "1 0"},
      {"by UUID", hami, one, {{"main", {Card(0, "GPU-n-1")}}}, "1"},
      {"an instance", mig, half, {{"main", {Instance(1, "3g.40gb", 4, 4)}}}, "1#1"},
      {"one is lacking",
       stock,
       two,
       {{"main", {Card(1)}}},
       "expected 2 devices for container 'main', found 1"},
      {"all are lacking", stock, two, {}, "expected 2 devices for container 'main', found 0"},
      {"one too many",
       stock,
       one,
       {{"main", {Card(1), Card(0)}}},
       "expected 1 devices for container 'main', found 2"},
      {"of a container that is not there",
       stock,
       one,
       {{"main", {Card(1)}}, {"other", {}}},
       "expected devices for containers of the pod only"},
      {"a card before the first",
       stock,
       one,
       {{"main", {Card(-1)}}},
       "expected a card below 2, found -1"},
      {"a card after the last",
       stock,
       one,
       {{"main", {Card(2)}}},
       "expected a card below 2, found 2"},
      {"a card that is cut",
       mig,
       one,
       {{"main", {Card(1)}}},
       "expected a card that is not cut by MIG, found card 1"},
      {"of another node",
       hami,
       one,
       {{"main", {Card(0, "GPU-m-1")}}},
       "expected a GPU of the node, found uuid 'GPU-m-1'"},
      {"an instance for a card",
       stock,
       one,
       {{"main", {Instance(0, "3g.40gb", 0, 4)}}},
       "expected a card, found MIG device 3g.40gb"},
      {"a card for an instance", mig, half, {{"main", {Card(1)}}}, "expected a MIG device"},
      {"an instance of another profile",
       mig,
       half,
       {{"main", {Instance(1, "2g.20gb", 4, 2)}}},
       "expected an instance of 3g.40gb of the node"},
      {"an instance at another place",
       mig,
       half,
       {{"main", {Instance(1, "3g.40gb", 2, 4)}}},
       "expected an instance of 3g.40gb of the node"},
      {"an instance of another card",
       mig,
       half,
       {{"main", {Instance(0, "3g.40gb", 4, 4)}}},
       "expected an instance of 3g.40gb of the node"},
  };
  for (const Row& row : rows) {
    std::string problem;
    const Inventory inventory = BuildInventory(row.node, 0);
    const auto picks = FromAllocation(inventory, row.request, Record(row.record), problem);
    EXPECT_THAT(Found(picks, problem), HasSubstr(row.found)) << row.what;
  }
}

// The wishes of a running pod were edited: what it holds is what its record says.
TEST(PlacementRecord, ARecordAloneSaysWhatIsHeld) {
  const NodeFacts stock = test::StockNode("n", 2), hami = test::HamiNode("n", 2);
  const NodeFacts shared = test::SharedNode("n", 2, 4, true);
  NodeFacts single = test::StockNode("n", 7, "NVIDIA-A100-80GB-PCIe-MIG-1g.10gb", 9856);
  single.count = 1;
  NodeFacts planned = test::MigNode("n", 1, 0, {{"3g.40gb", 2}, {"4g.40gb", 1}});
  planned.mig_planned = true;
  PodRequest counted = Edited();
  counted.pool_needs = {{"nvidia.com/gpu", 2}};
  const std::vector<Row> rows = {
      {"a share", hami, Edited(), {{"main", {Card(0, "GPU-n-1", 300, 4000)}}}, "1"},
      {"a share that names no memory",
       hami,
       Edited(),
       {{"main", {Card(0, "GPU-n-1", 300, 0)}}},
       "1"},
      {"whole cards of the kubelet", stock, counted, {{"main", {Card(0), Card(1)}}}, "0 1"},
      {"fewer than the kubelet gave",
       stock,
       counted,
       {{"main", {Card(0)}}},
       "expected 2 devices, found 1"},
      {"nothing", hami, Edited(), {}, "expected 1 devices, found 0"},
      {"an instance that is counted as a GPU",
       single,
       Edited(),
       {{"main", {Instance(0, "1g.10gb", 3, 1)}}},
       "0#3"},
      {"an instance of its own key",
       planned,
       Edited(),
       {{"main", {Instance(0, "3g.40gb", 4, 4)}}},
       "0#1"},
      {"instances that cannot be together",
       planned,
       Edited(),
       {{"main", {Instance(0, "4g.40gb", 0, 4), Instance(0, "3g.40gb", 0, 4)}}},
       "expected instances that may exist together, found others on card 0"},
      {"of a container that is not there",
       hami,
       Edited("app"),
       {{"main", {Card(0, "GPU-n-1")}}},
       "expected devices for containers of the pod only"},
      {"of another node",
       hami,
       Edited(),
       {{"main", {Card(0, "GPU-m-1")}}},
       "expected a GPU of the node, found uuid 'GPU-m-1'"},
  };
  for (const Row& row : rows) {
    std::string problem;
    const Inventory inventory = BuildInventory(row.node, 0);
    const auto held = FromRecordAlone(inventory, row.request, Record(row.record), problem);
    EXPECT_THAT(Found(held ? std::optional(held->picks) : std::nullopt, problem),
                HasSubstr(row.found))
        << row.what;
  }
}

// Keys of an agent on a node that has none, unless they name the node's own cards.
TEST(PlacementRecord, AnAgentsKeysWithoutAnAgentAreForged) {
  const Inventory stock = BuildInventory(test::StockNode("n", 2), 0);
  Allocation forged = Record({{"main", {Card(0, "GPU-x")}}});
  forged.epoch = 0;
  std::string problem;
  EXPECT_FALSE(FromRecordAlone(stock, Edited(), forged, problem).has_value());
  EXPECT_THAT(problem, HasSubstr("expected no device of a node agent, found uuid 'GPU-x'"));
  EXPECT_FALSE(FromAllocation(stock, test::WholePod("p", 1), forged, problem).has_value());
  forged.containers[0].devices[0].uuid = {};
  EXPECT_TRUE(FromAllocation(stock, test::WholePod("p", 1), forged, problem).has_value());
}

TEST(PlacementRecord, WhatAnotherRecordNamesIsBusyToo) {
  const Inventory hami = BuildInventory(test::HamiNode("n", 3), 0);
  std::string problem;
  const auto held =
      FromRecordAlone(hami, Edited(), Record({{"main", {Card(0, "GPU-n-0", 300, 4000)}}}), problem);
  ASSERT_TRUE(held.has_value()) << problem;
  HeldDevices both = *held;
  const Allocation other = Record({{"main",
                                    {Card(0, "GPU-n-0", 100, 1), Card(1, "GPU-n-1", 0, 0),
                                     Card(2, "GPU-n-2", 0, 500), Card(7, "GPU-m-7")}}});
  ASSERT_TRUE(AddNamed(hami, other, both, problem)) << problem;
  ASSERT_EQ(both.picks.size(), 3U) << "one it has already, one is another node's";
  EXPECT_EQ(both.picks[1].milli, kWholeGpu) << "a card alone may be all of it";
  EXPECT_EQ(both.picks[1].memory, Mebibytes::Of(15109));
  EXPECT_EQ(both.picks[2].milli, MilliGpu::Zero());
  EXPECT_EQ(both.picks[2].memory, Mebibytes::Of(500));

  Device instance = Card(1, "GPU-n-1");
  instance.mig = MigDevice{"1g.5gb", 0, 1};
  both = *held;
  EXPECT_FALSE(AddNamed(hami, Record({{"main", {instance}}}), both, problem));
  EXPECT_THAT(problem, HasSubstr("expected a card, found MIG device 1g.5gb"));
  // Where cards cannot be told apart, and of a pod without containers, nothing can be added.
  both = *held;
  EXPECT_TRUE(AddNamed(BuildInventory(test::StockNode("n", 2), 0), other, both, problem));
  both.request.containers.clear();
  EXPECT_TRUE(AddNamed(hami, other, both, problem));
  EXPECT_EQ(both.picks.size(), 1U);
}

TEST(PlacementRecord, WishesThatCannotBeReadAreAsManyUnitsAsTheKubeletGave) {
  PodRequest request = Edited();
  request.pool_needs = {{"nvidia.com/gpu", 2},
                        {"nvidia.com/gpu.shared", 3},
                        {"nvidia.com/mig-3g.40gb", 1},
                        {"nvidia.com/mig-nonsense", 1},
                        {"volcano.sh/vgpu-number", 1}};
  const PodRequest whole = WholeUnits(request);
  ASSERT_EQ(whole.asks.size(), 3U);
  EXPECT_EQ(whole.asks[0].resource, Resource::kGpu);
  EXPECT_EQ(whole.asks[0].count, 2);
  EXPECT_EQ(whole.asks[1].resource, Resource::kGpuShared);
  EXPECT_EQ(whole.asks[1].count, 3);
  EXPECT_EQ(whole.asks[2].mig.profile, "3g.40gb");
  request.containers.clear();
  EXPECT_TRUE(WholeUnits(request).asks.empty());
}

}  // namespace THIS_FILE
}  // namespace tranche
