// Which slices count, and whose devices are whose.
#include "scheduler/dra/pools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/scheduler/dra/devices.h"

namespace tranche::dra {
namespace THIS_FILE {

using testing::ElementsAre;
using testing::IsEmpty;

Device Named(std::string name) {
  Device device;
  device.name = std::move(name);
  return device;
}

Slice Part(std::string name, int64_t generation, int64_t count, std::vector<Device> devices) {
  Slice slice = NodeSlice("n1", std::move(devices));
  slice.name = std::move(name);
  slice.generation = generation;
  slice.slice_count = count;
  return slice;
}

std::vector<Pool> Gather(const std::vector<Slice>& slices, const NodeView& node) {
  std::vector<const Slice*> views;
  for (const Slice& slice : slices) views.push_back(&slice);
  return PoolsOf(views, node);
}

std::vector<std::string> Names(const std::vector<const Device*>& devices) {
  std::vector<std::string> names;
  for (const Device* device : devices) names.push_back(device->name);
  return names;
}

TEST(Pools, OnlyTheHighestGenerationCounts) {
  const std::vector<Slice> slices = {Part("b", 2, 2, {Named("gpu-1")}),
                                     Part("old", 1, 1, {Named("gpu-0"), Named("gpu-9")}),
                                     Part("a", 2, 2, {Named("gpu-0")})};
  const std::vector<Pool> pools = Gather(slices, {"n1"});
  ASSERT_EQ(pools.size(), 1U);
  EXPECT_TRUE(pools[0].usable());
  EXPECT_THAT(Names(pools[0].devices), ElementsAre("gpu-0", "gpu-1")) << "slices by name";
}

TEST(Pools, APoolBeingPublishedAgainIsIncomplete) {
  const std::vector<Slice> slices = {Part("a", 2, 2, {Named("gpu-0")}),
                                     Part("old", 1, 1, {Named("gpu-0")})};
  const std::vector<Pool> pools = Gather(slices, {"n1"});
  ASSERT_EQ(pools.size(), 1U);
  EXPECT_TRUE(pools[0].incomplete);
  EXPECT_FALSE(pools[0].usable());
  EXPECT_THAT(pools[0].devices, IsEmpty());
}

TEST(Pools, ANewGenerationWithoutTheNodeTakesItsDevicesAway) {
  std::vector<Slice> slices = {Part("a", 1, 2, {Named("gpu-0")}),
                               Part("b", 2, 1, {Named("gpu-0")})};
  slices[1].node.name = NodeName("n2");
  EXPECT_THAT(Gather(slices, {"n1"}), IsEmpty());
  EXPECT_EQ(Gather(slices, {"n2"}).size(), 1U);
  // As many as there should be are not held against those of other nodes.
  slices[0].slice_count = 1;
  ASSERT_EQ(Gather(slices, {"n1"}).size(), 1U);
  EXPECT_TRUE(Gather(slices, {"n1"})[0].usable());
}

// Counters alone make a pool one of the node, and one that lacks slices counts there.
TEST(Pools, ASliceWithoutDevicesIsOfItsNode) {
  const std::vector<Slice> slices = {Part("a", 1, 2, {})};
  ASSERT_EQ(Gather(slices, {"n1"}).size(), 1U);
  EXPECT_TRUE(Gather(slices, {"n1"})[0].incomplete);
}

TEST(Pools, DevicesOfOtherNodesStandBesideThoseOfTheNode) {
  std::vector<Slice> slices = {Part("a", 1, 1, {Named("gpu-0"), Named("gpu-1"), Named("gpu-2")})};
  slices[0].node.kind = NodeChoice::Kind::kPerDevice;
  for (Device& device : slices[0].devices) {
    device.node.kind = NodeChoice::Kind::kName;
    device.node.name = NodeName(device.name == "gpu-1" ? "n2" : "n1");
  }
  const std::vector<Pool> pools = Gather(slices, {"n1"});
  ASSERT_EQ(pools.size(), 1U);
  EXPECT_THAT(Names(pools[0].devices), ElementsAre("gpu-0", "gpu-2"));
  ASSERT_EQ(pools[0].bystanders.size(), 1U);
  EXPECT_EQ(pools[0].bystanders[0].device->name, "gpu-1");
  EXPECT_EQ(pools[0].bystanders[0].place, 1U);
  // Their names count as well.
  slices[0].devices[1].name = "gpu-0";
  EXPECT_EQ(Gather(slices, {"n1"})[0].invalid, "two devices named gpu-0");
}

TEST(Pools, NodesAreChosenInFourWays) {
  const LabelText rack7(Labels{{"rack", "7"}});
  const LabelText rack8(Labels{{"rack", "8"}});
  NodeChoice by_label;
  by_label.kind = NodeChoice::Kind::kSelector;
  by_label.selector.has_affinity = true;
  by_label.selector.affinity = {{{"rack", false, NodeTerm::Operator::kIn, {"7"}}}};
  EXPECT_TRUE(Chooses(by_label, {"n1", &rack7}));
  EXPECT_FALSE(Chooses(by_label, {"n1", &rack8}));
  EXPECT_FALSE(Chooses(by_label, {"n1"}));
  NodeChoice all;
  all.kind = NodeChoice::Kind::kAll;
  EXPECT_TRUE(Chooses(all, {"n1"}));
  EXPECT_FALSE(Chooses(NodeChoice{}, {"n1"}));

  Slice per_device = Part("a", 1, 1, {Named("mine"), Named("yours"), Named("ours")});
  per_device.node = {};
  per_device.node.kind = NodeChoice::Kind::kPerDevice;
  per_device.devices[0].node = {NodeChoice::Kind::kName, NodeName("n1"), {}};
  per_device.devices[1].node = {NodeChoice::Kind::kName, NodeName("n2"), {}};
  per_device.devices[2].node = all;
  const std::vector<Slice> slices = {per_device};
  EXPECT_THAT(Names(Gather(slices, {"n1"})[0].devices), ElementsAre("mine", "ours"));
  EXPECT_THAT(Names(Gather(slices, {"n1"})[0].elsewhere), ElementsAre("yours"));
  EXPECT_THAT(Names(Gather(slices, {"n3"})[0].devices), ElementsAre("ours"));
}

TEST(Pools, CountersMayLieInTheSameSliceOrInTheirOwn) {
  Device part = Named("gpu-0-mig");
  part.consumes = {{"gpu-0", {{"slice-0", Quantity::Whole(1)}}}};
  const CounterSet set{"gpu-0", {{"slice-0", Quantity::Whole(1)}}};

  Slice together = Part("a", 1, 1, {part});
  together.counters = {set};
  const std::vector<Slice> one = {together};
  EXPECT_TRUE(Gather(one, {"n1"})[0].usable());

  Slice counters = Part("counters", 1, 2, {});
  counters.counters = {set};
  const std::vector<Slice> two = {Part("devices", 1, 2, {part}), counters};
  const std::vector<Pool> pools = Gather(two, {"n1"});
  EXPECT_TRUE(pools[0].usable());
  EXPECT_EQ(pools[0].counters.size(), 1U);

  const std::vector<Slice> without = {Part("devices", 1, 1, {part})};
  EXPECT_EQ(Gather(without, {"n1"})[0].invalid, "no counter set gpu-0");
}

TEST(Pools, NamesAreUniqueOrThePoolIsInvalid) {
  const std::vector<Slice> slices = {Part("a", 1, 2, {Named("gpu-0")}),
                                     Part("b", 1, 2, {Named("gpu-0")})};
  EXPECT_EQ(Gather(slices, {"n1"})[0].invalid, "two devices named gpu-0");
}

TEST(Pools, PoolsComeByDriverAndNameAndConditionalOnesLast) {
  std::vector<Slice> slices;
  for (const std::string name : {"c", "a", "b"}) {
    slices.push_back(Part(name, 1, 1, {Named("d")}));
    slices.back().pool = name;
  }
  slices[1].devices[0].conditional = true;
  const std::vector<Pool> pools = Gather(slices, {"n1"});
  ASSERT_EQ(pools.size(), 3U);
  EXPECT_EQ(pools[0].name, "b");
  EXPECT_EQ(pools[1].name, "c");
  EXPECT_EQ(pools[2].name, "a");
}

}  // namespace THIS_FILE
}  // namespace tranche::dra
