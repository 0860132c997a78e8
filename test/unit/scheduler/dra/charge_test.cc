// What claims cost their namespace. U is a whole GPU.
#include "scheduler/dra/charge.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/scheduler/dra/devices.h"

namespace tranche::dra {
namespace THIS_FILE {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kU = kQuantaPerGpu;

Request AskedOf(std::string name, RequestChoice choice) {
  return {std::move(name), {std::move(choice)}};
}

// A100 40 GB: one whole GPU, 3g and 1g of another.
Slice Node() {
  const std::string product = "NVIDIA A100-SXM4-40GB";
  return NodeSlice("n1", {GpuDevice("gpu-0", "GPU-a", product, 40960),
                          MigDevice("gpu-1-mig-9-0-4", "3g.20gb", "GPU-b", product, 20096),
                          MigDevice("gpu-1-mig-19-4-1", "1g.5gb", "GPU-b", product, 4864)});
}

std::vector<ModelCharge> Charged(const Slice& slice, std::vector<AllocatedDevice> devices) {
  const Slice* slices[] = {&slice};
  return ChargeOfAllocation(Holding(ClaimOf("c", {}), std::move(devices)), DeviceTable(slices));
}

TEST(Charge, WholeGpusAndMigByProfile) {
  EXPECT_THAT(Charged(Node(), {Held("gpu", "n1", "gpu-0")}),
              ElementsAre(ModelCharge{"a100-40gb", {kU, kU}}));
  EXPECT_THAT(Charged(Node(), {Held("mig", "n1", "gpu-1-mig-9-0-4")}),
              ElementsAre(ModelCharge{"a100-40gb", {kU * 3 / 7, kU / 2}}));
  EXPECT_THAT(Charged(Node(), {Held("big", "n1", "gpu-1-mig-9-0-4"),
                               Held("small", "n1", "gpu-1-mig-19-4-1")}),
              ElementsAre(ModelCharge{"a100-40gb", {kU * 3 / 7 + kU / 7, kU / 2 + kU / 8}}));
}

TEST(Charge, AdminAccessAndOtherDriversCostNothing) {
  AllocatedDevice watched = Held("gpu", "n1", "gpu-0");
  watched.admin = true;
  AllocatedDevice nic = Held("nic", "n1", "gpu-0");
  nic.id.driver = "dra.net";
  EXPECT_THAT(Charged(Node(), {watched, nic}), IsEmpty());
}

TEST(Charge, UnknownIsBusy) {
  EXPECT_THAT(Charged(Node(), {Held("gpu", "n1", "gpu-7")}),
              ElementsAre(ModelCharge{"unknown", {kU, kU}}));
  Slice odd = Node();
  odd.devices[1] = MigDevice("gpu-1-mig-9-0-4", "9g.99gb", "GPU-b", "NVIDIA A100-SXM4-40GB", 1);
  EXPECT_THAT(Charged(odd, {Held("gpu", "n1", "gpu-1-mig-9-0-4")}),
              ElementsAre(ModelCharge{"a100-40gb", {kU, kU}}))
      << "an unknown profile is never free";
}

TEST(Charge, ByCountersWhereTheCatalogueHasNoBoard) {
  Slice slice = NodeSlice("n1", {MigDevice("part", "2g.24gb", "GPU-b", "NVIDIA X900", 24000)});
  const auto set = [](int64_t processors, int slices) {
    CounterSet counters{"gpu-0", {}};
    for (int i = 0; i < slices; ++i) {
      counters.counters.push_back({fmt::format("memory-slice-{}", i), Quantity::Whole(1)});
    }
    counters.counters.push_back({"multiprocessors", Quantity::Whole(processors)});
    return counters;
  };
  slice.counters = {set(100, 8)};
  slice.devices[0].consumes = {set(25, 2)};
  EXPECT_THAT(Charged(slice, {Held("mig", "n1", "part")}),
              ElementsAre(ModelCharge{"x900", {kU / 4, kU / 4}}));
}

class Shares : public testing::Test {
 protected:
  static Slice Node(int64_t shares) {
    Device gpu = GpuDevice("gpu-0", "GPU-a", "NVIDIA-H200", 143771);
    gpu.shareable = true;
    if (shares > 0) {
      gpu.capacities.push_back({{std::string(kGpuDriver), "shares"}, Quantity::Whole(shares), {}});
    }
    return NodeSlice("n1", {gpu});
  }
  static AllocatedDevice Share(std::vector<CapacityAmount> consumed) {
    AllocatedDevice held = Held("gpu", "n1", "gpu-0");
    held.shared = true;
    held.consumed = std::move(consumed);
    return held;
  }
  static CapacityAmount Of(std::string name, Quantity amount) {
    return {{std::string(kGpuDriver), std::move(name)}, amount};
  }
};

TEST_F(Shares, MemoryIsMirroredAndSharesAreParts) {
  // 20,480 of 143,771 MiB: the figure of quota-model section 1.
  EXPECT_THAT(Charged(Node(0), {Share({Of("memory", Mib(20480))})}),
              ElementsAre(ModelCharge{"h200", {2'566'642, 2'566'642}}));
  EXPECT_THAT(
      Charged(Node(4), {Share({Of("memory", Quantity()), Of("shares", Quantity::Whole(1))})}),
      ElementsAre(ModelCharge{"h200", {kU / 4, kU / 4}}));
  EXPECT_THAT(
      Charged(Node(4), {Share({Of("memory", Mib(143771)), Of("shares", Quantity::Whole(1))})}),
      ElementsAre(ModelCharge{"h200", {kU, kU}}))
      << "the larger of the two";
}

TEST_F(Shares, AShareWithoutAnAmountIsAWholeGpu) {
  EXPECT_THAT(Charged(Node(0), {Share({Of("memory", Quantity())})}),
              ElementsAre(ModelCharge{"h200", {kU, kU}}));
}

std::vector<ModelCharge> AtMost(const Slice& slice, const Claim& claim) {
  const Slice* slices[] = {&slice};
  Selectors selectors(NvidiaClasses());
  return ChargeAtMost(claim, BooksOf(PoolsOf(slices, {"n1"}), Occupancy()), selectors);
}

TEST(ChargeAtMost, CountsDevicesOfTheNode) {
  EXPECT_THAT(AtMost(Node(), ClaimOf("c", {AskedOf("gpu", Choice("gpu.nvidia.com", {}, 2))})),
              ElementsAre(ModelCharge{"a100-40gb", {2 * kU, 2 * kU}}));
  EXPECT_THAT(AtMost(Node(), ClaimOf("c", {AskedOf("mig", Choice("mig.nvidia.com"))})),
              ElementsAre(ModelCharge{"a100-40gb", {kU * 3 / 7, kU / 2}}));
  RequestChoice all = Choice("mig.nvidia.com");
  all.all = true;
  EXPECT_THAT(AtMost(Node(), ClaimOf("c", {AskedOf("mig", all)})),
              ElementsAre(ModelCharge{"a100-40gb", {kU * 3 / 7 + kU / 7, kU / 2 + kU / 8}}));
  RequestChoice admin = Choice("gpu.nvidia.com");
  admin.admin = true;
  EXPECT_THAT(AtMost(Node(), ClaimOf("c", {AskedOf("gpu", admin)})), IsEmpty());
}

TEST(ChargeAtMost, TheDearestOfSeveralChoices) {
  Request either{"gpu", {Choice("mig.nvidia.com"), Choice("gpu.nvidia.com")}};
  either.choices[0].name = "slice";
  either.choices[1].name = "whole";
  EXPECT_THAT(AtMost(Node(), ClaimOf("c", {either})),
              ElementsAre(ModelCharge{"a100-40gb", {kU, kU}}));
}

TEST(ChargeAtMost, AMatchInDoubtCounts) {
  const Claim claim =
      ClaimOf("c", {AskedOf("gpu", Choice("gpu.nvidia.com", {"[1].exists(x, x == 1)"}))});
  EXPECT_THAT(AtMost(Node(), claim), ElementsAre(ModelCharge{"a100-40gb", {kU, kU}}));
}

}  // namespace THIS_FILE
}  // namespace tranche::dra
