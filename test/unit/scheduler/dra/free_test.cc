// What claims leave of a node.
#include "scheduler/dra/free.h"

#include <gtest/gtest.h>

#include "test/unit/scheduler/dra/devices.h"

namespace tranche::dra {
namespace THIS_FILE {

// One GPU of an eight-unit board with dynamic MIG, cut down to its memory slices: the whole, two
// halves and the first eighth.
Slice DynamicMig(const std::string& node) {
  const auto taking = [](Device device, int first, int count) {
    CounterSet use{"gpu-0-counter-set", {}};
    for (int i = first; i < first + count; ++i) {
      use.counters.push_back({"memory-slice-" + std::to_string(i), Quantity::Whole(1)});
    }
    device.consumes = {use};
    return device;
  };
  const std::string product = "NVIDIA H100 80GB HBM3";
  Slice slice = NodeSlice(
      node, {taking(GpuDevice("gpu-0", "GPU-a", product, 81559), 0, 8),
             taking(MigDevice("gpu-0-mig-3g40gb-9-0", "3g.40gb", "GPU-a", product, 40320), 0, 4),
             taking(MigDevice("gpu-0-mig-3g40gb-9-4", "3g.40gb", "GPU-a", product, 40320), 4, 4),
             taking(MigDevice("gpu-0-mig-1g10gb-19-0", "1g.10gb", "GPU-a", product, 9984), 0, 1)});
  CounterSet all{"gpu-0-counter-set", {}};
  for (int i = 0; i < 8; ++i) {
    all.counters.push_back({"memory-slice-" + std::to_string(i), Quantity::Whole(1)});
  }
  slice.counters = {all};
  return slice;
}

std::string States(const Slice& slice, const std::vector<Claim>& claims) {
  std::vector<const Claim*> views;
  for (const Claim& claim : claims) views.push_back(&claim);
  const Slice* slices[] = {&slice};
  const NodeBooks books = BooksOf(PoolsOf(slices, {"n1"}), Occupancy(views));
  std::string states;
  for (const DeviceBook& device : books.devices) {
    constexpr std::string_view kLetters = "FSTB";  // free, shared, taken, blocked
    states += kLetters[static_cast<std::size_t>(StateOf(books, device))];
  }
  return states;
}

TEST(Free, WholeDevices) {
  const Slice slice = NodeSlice("n1", {GpuDevice("gpu-0", "GPU-a", "NVIDIA L4", 23034),
                                       GpuDevice("gpu-1", "GPU-b", "NVIDIA L4", 23034)});
  const Claim one = Holding(ClaimOf("one", {}), {Held("gpu", "n1", "gpu-1")});
  EXPECT_EQ(States(slice, {}), "FF");
  EXPECT_EQ(States(slice, {one}), "FT");
  EXPECT_EQ(States(slice, {ClaimOf("pending", {})}), "FF");
  // The same names on another node, or of another driver, are other devices.
  EXPECT_EQ(States(slice, {Holding(ClaimOf("other", {}), {Held("gpu", "n2", "gpu-1")})}), "FF");
  AllocatedDevice foreign = Held("gpu", "n1", "gpu-1");
  foreign.id.driver = "gpu.example.com";
  EXPECT_EQ(States(slice, {Holding(ClaimOf("other", {}), {foreign})}), "FF");
}

TEST(Free, AdminAccessTakesNothing) {
  const Slice slice = NodeSlice("n1", {GpuDevice("gpu-0", "GPU-a", "NVIDIA L4", 23034)});
  AllocatedDevice watched = Held("gpu", "n1", "gpu-0");
  watched.admin = true;
  EXPECT_EQ(States(slice, {Holding(ClaimOf("monitor", {}), {watched})}), "F");
}

TEST(Free, PlacementsExcludeEachOtherThroughCounters) {
  const Slice slice = DynamicMig("n1");
  const auto with = [&slice](std::vector<std::string> held) {
    std::vector<AllocatedDevice> devices;
    for (std::string& name : held) devices.push_back(Held("r", "n1", std::move(name)));
    return States(slice, {Holding(ClaimOf("c", {}), std::move(devices))});
  };
  EXPECT_EQ(States(slice, {}), "FFFF");
  EXPECT_EQ(with({"gpu-0"}), "TBBB");
  EXPECT_EQ(with({"gpu-0-mig-1g10gb-19-0"}), "BBFT");
  EXPECT_EQ(with({"gpu-0-mig-3g40gb-9-4"}), "BFTF");
  EXPECT_EQ(with({"gpu-0-mig-3g40gb-9-4", "gpu-0-mig-3g40gb-9-0"}), "BTTB");
}

TEST(Free, StaticMigDevicesStandAlone) {
  const Slice slice = NodeSlice(
      "n1", {MigDevice("gpu-0-mig-19-0-1", "1g.5gb", "GPU-a", "NVIDIA A100-SXM4-40GB", 4864),
             MigDevice("gpu-0-mig-19-1-1", "1g.5gb", "GPU-a", "NVIDIA A100-SXM4-40GB", 4864)});
  EXPECT_EQ(States(slice, {Holding(ClaimOf("c", {}), {Held("r", "n1", "gpu-0-mig-19-0-1")})}),
            "TF");
}

TEST(Free, SharesTakeCapacityAndCountersOnce) {
  Slice slice = DynamicMig("n1");
  slice.devices[0].shareable = true;
  const auto share = [](int64_t mib) {
    AllocatedDevice held = Held("gpu", "n1", "gpu-0");
    held.shared = true;
    held.consumed = {{{std::string(kGpuDriver), "memory"}, Mib(mib)}};
    return held;
  };
  const std::vector<Claim> claims = {Holding(ClaimOf("a", {}), {share(20480)}),
                                     Holding(ClaimOf("b", {}), {share(10240)})};
  EXPECT_EQ(States(slice, claims), "SBBB");
  const Slice* slices[] = {&slice};
  const Claim* views[] = {&claims[0], &claims[1]};
  const NodeBooks books = BooksOf(PoolsOf(slices, {"n1"}), Occupancy(views));
  EXPECT_EQ(books.devices[0].shares, 2);
  EXPECT_EQ(books.devices[0].capacity_left[0], Mib(81559 - 30720));
  EXPECT_EQ(books.counters[0], Quantity()) << "once, not twice";
}

TEST(Free, SaysWhoHoldsADevice) {
  const Claim one = Holding(ClaimOf("one", {}), {Held("gpu", "n1", "gpu-1")});
  const Claim* claims[] = {&one};
  const Occupancy occupancy(claims);
  const Occupancy::Use* use = occupancy.Find({std::string(kGpuDriver), "n1", "gpu-1"});
  ASSERT_NE(use, nullptr);
  EXPECT_EQ(use->holders, std::vector<std::string>{"team/one"});
  EXPECT_EQ(occupancy.Find({std::string(kGpuDriver), "n1", "gpu-0"}), nullptr);
}

}  // namespace THIS_FILE
}  // namespace tranche::dra
