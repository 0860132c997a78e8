// What kube-scheduler's allocator would pick: first fit in published order, with backtracking.
#include "scheduler/dra/allocate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/scheduler/dra/devices.h"

namespace tranche::dra {
namespace THIS_FILE {

using testing::HasSubstr;

constexpr std::string_view kA100 = "NVIDIA A100-SXM4-40GB";

Request Asks(std::string name, RequestChoice choice) {
  return {std::move(name), {std::move(choice)}};
}

std::string Profile(std::string_view name) {
  return fmt::format("device.attributes['gpu.nvidia.com'].profile == '{}'", name);
}

// Two GPUs: the first cut into 3g and four 1g, the second whole.
Slice MixedNode() {
  const std::string product(kA100);
  std::vector<Device> devices = {MigDevice("gpu-0-mig-9-0-4", "3g.20gb", "GPU-a", product, 20096)};
  for (int start = 4; start < 7; ++start) {
    devices.push_back(
        MigDevice(fmt::format("gpu-0-mig-19-{}-1", start), "1g.5gb", "GPU-a", product, 4864));
  }
  devices.push_back(MigDevice("gpu-1-mig-19-0-1", "1g.5gb", "GPU-b", product, 4864));
  devices.push_back(GpuDevice("gpu-2", "GPU-c", product, 40960));
  return NodeSlice("n1", std::move(devices));
}

class Scene {
 public:
  explicit Scene(Slice slice) : Scene(std::vector<Slice>{std::move(slice)}) {}
  explicit Scene(std::vector<Slice> slices)
      : slices_(std::move(slices)), selectors_(NvidiaClasses()) {}

  Scene& Holds(std::vector<std::string> names) {
    std::vector<AllocatedDevice> held;
    for (std::string& name : names) held.push_back(Held("r", "n1", std::move(name)));
    holders_.push_back(Holding(ClaimOf("holder", {}), std::move(held)));
    return *this;
  }
  Scene& HoldsShare(std::string name, int64_t mib) {
    AllocatedDevice share = Held("r", "n1", std::move(name));
    share.shared = true;
    share.consumed = {{{std::string(kGpuDriver), "memory"}, Mib(mib)}};
    holders_.push_back(Holding(ClaimOf("sharer", {}), {share}));
    return *this;
  }

  Prediction Run(const std::vector<Claim>& claims, int most_steps = kMostSteps) {
    std::vector<const Slice*> slices;
    for (const Slice& slice : slices_) slices.push_back(&slice);
    std::vector<const Claim*> holders, asking;
    for (const Claim& claim : holders_) holders.push_back(&claim);
    for (const Claim& claim : claims) asking.push_back(&claim);
    const NodeBooks books = BooksOf(PoolsOf(slices, {"n1"}), Occupancy(holders));
    return Predict(books, asking, selectors_, most_steps);
  }

  // "gpu=gpu-0 gpu=gpu-1" by claim, or "no|aborts|unknown: request: why".
  std::string Text(const std::vector<Claim>& claims, int most_steps = kMostSteps) {
    const Prediction prediction = Run(claims, most_steps);
    if (prediction.kind != Prediction::Kind::kFits) {
      constexpr std::string_view kKinds[] = {"fits", "no", "aborts", "unknown"};
      return fmt::format("{}: {}: {}", kKinds[static_cast<std::size_t>(prediction.kind)],
                         prediction.request, prediction.why);
    }
    std::string text;
    for (const std::vector<AllocatedDevice>& devices : prediction.devices) {
      if (!text.empty()) text += " | ";
      for (std::size_t i = 0; i < devices.size(); ++i) {
        text += fmt::format("{}{}={}", i == 0 ? "" : " ", devices[i].request, devices[i].id.device);
      }
    }
    return text;
  }

 private:
  std::vector<Slice> slices_;
  std::vector<Claim> holders_;
  Selectors selectors_;
};

Claim OneGpu() { return ClaimOf("c", {Asks("gpu", Choice("gpu.nvidia.com"))}); }
Claim OneMig(std::string_view profile, int64_t count = 1) {
  return ClaimOf("c", {Asks("mig", Choice("mig.nvidia.com", {Profile(profile)}, count))});
}

TEST(Allocate, FirstFitInPublishedOrder) {
  EXPECT_EQ(Scene(MixedNode()).Text({OneGpu()}), "gpu=gpu-2");
  EXPECT_EQ(Scene(MixedNode()).Text({OneMig("1g.5gb")}), "mig=gpu-0-mig-19-4-1");
  EXPECT_EQ(Scene(MixedNode()).Holds({"gpu-0-mig-19-4-1"}).Text({OneMig("1g.5gb", 2)}),
            "mig=gpu-0-mig-19-5-1 mig=gpu-0-mig-19-6-1");
  EXPECT_EQ(Scene(MixedNode()).Text({OneMig("1g.5gb"), OneMig("1g.5gb")}),
            "mig=gpu-0-mig-19-4-1 | mig=gpu-0-mig-19-5-1");
}

TEST(Allocate, SaysWhichRequestFailsAndWhy) {
  EXPECT_EQ(Scene(MixedNode()).Holds({"gpu-2"}).Text({OneGpu()}),
            "no: team/c gpu: 1 devices match, 1 taken");
  EXPECT_EQ(Scene(MixedNode()).Text({OneMig("7g.40gb")}), "no: team/c mig: no device matches");
  EXPECT_EQ(Scene(MixedNode()).Text({OneMig("1g.5gb"), OneMig("3g.20gb", 2)}),
            "no: team/c mig: 1 devices match, 1 taken");
  Slice tainted = MixedNode();
  tainted.devices[5].taints = {{"unhealthy", "", "NoSchedule"}};
  EXPECT_EQ(Scene(tainted).Text({OneGpu()}), "no: team/c gpu: 1 devices match, 1 with taints");
}

TEST(Allocate, ATaintIsTolerated) {
  Slice tainted = MixedNode();
  tainted.devices[5].taints = {{"unhealthy", "", "NoSchedule"}};
  Claim claim = OneGpu();
  claim.requests[0].choices[0].tolerations = {{"unhealthy", true, "", ""}};
  EXPECT_EQ(Scene(tainted).Text({claim}), "gpu=gpu-2");
  tainted.devices[5].rule_taints = {{"maintenance", "", "NoExecute"}};
  EXPECT_EQ(Scene(tainted).Text({claim}), "no: team/c gpu: 1 devices match, 1 with taints");
  tainted.devices[5].rule_taints.clear();
  tainted.devices[5].taints[0].effect = "None";
  EXPECT_EQ(Scene(tainted).Text({OneGpu()}), "gpu=gpu-2") << "an effect that binds nobody";
}

// The talk's example: two slices of one GPU.
TEST(Allocate, TwoSlicesOfOneGpuByMatchAttribute) {
  Claim claim = ClaimOf("c", {Asks("big", Choice("mig.nvidia.com", {Profile("3g.20gb")})),
                              Asks("small", Choice("mig.nvidia.com", {Profile("1g.5gb")}))});
  claim.constraints = {{{}, {std::string(kGpuDriver), "parentUUID"}, false}};
  EXPECT_EQ(Scene(MixedNode()).Text({claim}), "big=gpu-0-mig-9-0-4 small=gpu-0-mig-19-4-1");
  EXPECT_EQ(Scene(MixedNode())
                .Holds({"gpu-0-mig-19-4-1", "gpu-0-mig-19-5-1", "gpu-0-mig-19-6-1"})
                .Text({claim}),
            "no: team/c small: 4 devices match, 3 taken, 1 against a constraint");
  claim.constraints[0].distinct = true;
  EXPECT_EQ(Scene(MixedNode()).Text({claim}), "big=gpu-0-mig-9-0-4 small=gpu-1-mig-19-0-1");
}

TEST(Allocate, BacktracksOverAConstraint) {
  // Two of one NUMA node: the first device has no partner.
  std::vector<Device> devices;
  for (const int numa : {0, 1, 1}) {
    devices.push_back(GpuDevice(fmt::format("gpu-{}", devices.size()), "GPU-x", "NVIDIA L4", 1000));
    devices.back().attributes.push_back({{"resource.kubernetes.io", "numaNode"}, int64_t{numa}});
    Sort(devices.back());
  }
  Claim claim = ClaimOf("c", {Asks("gpu", Choice("gpu.nvidia.com", {}, 2))});
  claim.constraints = {{{"gpu"}, {"resource.kubernetes.io", "numaNode"}, false}};
  EXPECT_EQ(Scene(NodeSlice("n1", devices)).Text({claim}), "gpu=gpu-1 gpu=gpu-2");
  claim.constraints[0].requests = {"other"};
  EXPECT_EQ(Scene(NodeSlice("n1", devices)).Text({claim}), "gpu=gpu-0 gpu=gpu-1");
  claim.constraints[0] = {{}, {"resource.kubernetes.io", "pcieRoot"}, false};
  EXPECT_THAT(Scene(NodeSlice("n1", devices)).Text({claim}), HasSubstr("against a constraint"))
      << "nobody has the attribute";
}

// The talk's example: a whole GPU, or failing that a 3g slice.
TEST(Allocate, FirstAvailableInOrder) {
  Request either{"gpu", {Choice("gpu.nvidia.com"), Choice("mig.nvidia.com", {Profile("3g.20gb")})}};
  either.choices[0].name = "whole";
  either.choices[1].name = "slice";
  const Claim claim = ClaimOf("c", {either});
  EXPECT_EQ(Scene(MixedNode()).Text({claim}), "gpu/whole=gpu-2");
  EXPECT_EQ(Scene(MixedNode()).Holds({"gpu-2"}).Text({claim}), "gpu/slice=gpu-0-mig-9-0-4");
  EXPECT_THAT(Scene(MixedNode()).Holds({"gpu-2", "gpu-0-mig-9-0-4"}).Text({claim}),
              HasSubstr("no: team/c gpu"));
  // A constraint may name one of the choices.
  Claim constrained = claim;
  constrained.constraints = {{{"gpu/whole"}, {std::string(kGpuDriver), "parentUUID"}, false}};
  EXPECT_EQ(Scene(MixedNode()).Text({constrained}), "gpu/slice=gpu-0-mig-9-0-4");
}

// The talk's example: any slice with at least 10 Gi, by capacity.
TEST(Allocate, ByCapacityNotByName) {
  const Claim claim = ClaimOf(
      "c", {Asks("mig", Choice("mig.nvidia.com",
                               {"device.capacity['gpu.nvidia.com'].memory.compareTo(quantity("
                                "'10Gi')) >= 0"}))});
  EXPECT_EQ(Scene(MixedNode()).Text({claim}), "mig=gpu-0-mig-9-0-4");
}

TEST(Allocate, AllDevicesOrNone) {
  RequestChoice all = Choice("mig.nvidia.com", {Profile("1g.5gb")});
  all.all = true;
  const Claim claim = ClaimOf("c", {Asks("all", all)});
  EXPECT_EQ(Scene(MixedNode()).Text({claim}),
            "all=gpu-0-mig-19-4-1 all=gpu-0-mig-19-5-1 all=gpu-0-mig-19-6-1 all=gpu-1-mig-19-0-1");
  EXPECT_EQ(Scene(MixedNode()).Holds({"gpu-1-mig-19-0-1"}).Text({claim}),
            "no: team/c all: 4 devices match, 1 taken");
  Claim alike = claim;
  alike.constraints = {{{}, {std::string(kGpuDriver), "parentUUID"}, false}};
  EXPECT_THAT(Scene(MixedNode()).Text({alike}), HasSubstr("aborts: team/c all: device"));
  Slice incomplete = MixedNode();
  incomplete.slice_count = 2;
  EXPECT_THAT(Scene(incomplete).Text({claim}), HasSubstr("aborts: team/c all: all devices are"));
  EXPECT_THAT(Scene(incomplete).Text({OneGpu()}), HasSubstr("no: team/c gpu"));
}

// All devices of a capacity are those that are large enough.
TEST(Allocate, AllDevicesThatCouldGiveTheCapacity) {
  RequestChoice all = Choice("mig.nvidia.com");
  all.all = true;
  all.capacity = {{{"", "memory"}, Mib(10000)}};
  const Claim claim = ClaimOf("c", {Asks("all", all)});
  EXPECT_EQ(Scene(MixedNode()).Text({claim}), "all=gpu-0-mig-9-0-4");
  all.capacity[0].amount = Mib(100000);
  EXPECT_EQ(Scene(MixedNode()).Text({ClaimOf("c", {Asks("all", all)})}),
            "no: team/c all: no device matches");
}

// What is left of a device is looked at behind the constraints, which are an error.
TEST(Allocate, AConstraintAgainstAllComesBeforeWhatIsLeft) {
  Slice slice = MixedNode();
  for (Device& device : slice.devices) device.shareable = true;
  RequestChoice all = Choice("mig.nvidia.com");
  all.all = true;
  Claim claim = ClaimOf("c", {Asks("all", all)});
  claim.constraints = {{{}, {std::string(kGpuDriver), "profile"}, false}};
  EXPECT_THAT(Scene(slice).HoldsShare("gpu-0-mig-19-4-1", 4864).Text({claim}),
              HasSubstr("aborts: team/c all: device gpu-0-mig-19-4-1 would break a constraint"));
}

// kube-scheduler gives a pod up on an error on a device that the node cannot even use.
TEST(Allocate, SelectorsAreTriedOnDevicesOfOtherNodesOfASlice) {
  Slice slice = NodeSlice("n1", {GpuDevice("gpu-0", "GPU-a", "NVIDIA L4", 1000),
                                 GpuDevice("gpu-1", "GPU-b", "NVIDIA L4", 1000)});
  slice.node.kind = NodeChoice::Kind::kPerDevice;
  for (Device& device : slice.devices) device.node.kind = NodeChoice::Kind::kName;
  slice.devices[0].node.name = NodeName("n2");
  slice.devices[1].node.name = NodeName("n1");
  slice.devices[1].attributes.push_back({{std::string(kGpuDriver), "rank"}, int64_t{1}});
  Sort(slice.devices[1]);
  const Claim claim = ClaimOf(
      "c",
      {Asks("gpu", Choice("gpu.nvidia.com", {"device.attributes['gpu.nvidia.com'].rank == 1"}))});
  EXPECT_EQ(Scene(slice).Text({claim}), "aborts: team/c gpu: device gpu-0: no attribute rank");
  EXPECT_EQ(Scene(slice).Holds({"gpu-0"}).Text({claim}), "gpu=gpu-1") << "it is in use";
  std::swap(slice.devices[0], slice.devices[1]);
  EXPECT_EQ(Scene(slice).Text({claim}), "gpu=gpu-1") << "it is not come to";
  slice.devices[1].name = "gpu-1";
  slice.devices[0].name = "gpu-0";
  RequestChoice all = claim.requests[0].choices[0];
  all.all = true;
  EXPECT_THAT(Scene(slice).Text({ClaimOf("c", {Asks("gpu", all)})}), HasSubstr("aborts"));
}

TEST(Allocate, FractionsOfACapacityAreADoubt) {
  Device device = GpuDevice("gpu-0", "GPU-a", "NVIDIA L4", 1000);
  device.shareable = true;
  device.capacities[0].policy.emplace();
  device.capacities[0].policy->range = {Quantity::Milli(500), std::nullopt, Quantity::Milli(500)};
  RequestChoice choice = Choice("gpu.nvidia.com");
  choice.capacity = {{{"", "memory"}, Mib(1)}};
  EXPECT_THAT(Scene(NodeSlice("n1", {device})).Text({ClaimOf("c", {Asks("gpu", choice)})}),
              HasSubstr("unknown: team/c gpu: releases differ"));
}

TEST(Allocate, AdminAccessSeesWhatOthersHold) {
  RequestChoice admin = Choice("gpu.nvidia.com");
  admin.admin = true;
  const Claim claim = ClaimOf("c", {Asks("gpu", admin)});
  EXPECT_EQ(Scene(MixedNode()).Holds({"gpu-2"}).Text({claim}), "gpu=gpu-2");
}

TEST(Allocate, PlacementsOfDynamicMigShareCounters) {
  const auto placed = [](std::string name, std::string profile, int first, int count) {
    Device device = MigDevice(std::move(name), std::move(profile), "GPU-a", std::string(kA100), 1);
    CounterSet use{"gpu-0", {}};
    for (int i = first; i < first + count; ++i) {
      use.counters.push_back({fmt::format("memory-slice-{}", i), Quantity::Whole(1)});
    }
    device.consumes = {use};
    return device;
  };
  Slice slice = NodeSlice("n1", {placed("3g-0", "3g.20gb", 0, 4), placed("3g-4", "3g.20gb", 4, 4),
                                 placed("2g-0", "2g.10gb", 0, 2), placed("2g-2", "2g.10gb", 2, 2),
                                 placed("2g-4", "2g.10gb", 4, 2)});
  CounterSet all{"gpu-0", {}};
  for (int i = 0; i < 8; ++i) {
    all.counters.push_back({fmt::format("memory-slice-{}", i), Quantity::Whole(1)});
  }
  slice.counters = {all};
  EXPECT_EQ(Scene(slice).Text({OneMig("3g.20gb", 2)}), "mig=3g-0 mig=3g-4");
  // 2g then 3g: the first fit of 2g is at 0, so 3g goes to 4.
  EXPECT_EQ(Scene(slice).Text({OneMig("2g.10gb"), OneMig("3g.20gb")}), "mig=2g-0 | mig=3g-4");
  // Three 2g leave no half.
  EXPECT_THAT(Scene(slice).Text({OneMig("2g.10gb", 3), OneMig("3g.20gb")}),
              HasSubstr("2 devices match, 2 without free counters"));
  EXPECT_EQ(Scene(slice).Holds({"3g-0"}).Text({OneMig("2g.10gb")}), "mig=2g-4");
  // Of a pool with a counter below zero nothing more is taken that counts.
  EXPECT_THAT(Scene(slice).Holds({"3g-0", "2g-0"}).Text({OneMig("2g.10gb")}),
              HasSubstr("without free counters"));
}

class Shared : public testing::Test {
 protected:
  static Slice Node() {
    Device gpu = GpuDevice("gpu-0", "GPU-a", "NVIDIA L40S", 46068);
    gpu.shareable = true;
    gpu.capacities[0].policy =
        RequestPolicy{Mib(46068), {}, RequestPolicy::Range{Mib(1), std::nullopt, Mib(1)}};
    return NodeSlice("n1", {gpu});
  }
  static Claim Of(std::string amount) {
    Claim claim = OneGpu();
    claim.requests[0].choices[0].capacity = {{{"", "memory"}, *ParseQuantity(amount)}};
    return claim;
  }
};

TEST_F(Shared, CapacityIsRoundedAndAddedUp) {
  const Prediction one = Scene(Node()).Run({Of("1000000k")});
  ASSERT_EQ(one.kind, Prediction::Kind::kFits);
  EXPECT_TRUE(one.devices[0][0].shared);
  EXPECT_EQ(one.devices[0][0].consumed[0].amount, Mib(954)) << "up to the next MiB";
  EXPECT_EQ(Scene(Node()).Text({Of("20Gi"), Of("20Gi")}), "gpu=gpu-0 | gpu=gpu-0");
  EXPECT_EQ(Scene(Node()).Text({Of("20Gi"), Of("30Gi")}),
            "no: team/c gpu: 1 devices match, 1 without the capacity");
  EXPECT_EQ(Scene(Node()).HoldsShare("gpu-0", 26000).Text({Of("20Gi")}),
            "no: team/c gpu: 1 devices match, 1 without the capacity");
  EXPECT_EQ(Scene(Node()).HoldsShare("gpu-0", 25588).Text({Of("20Gi")}), "gpu=gpu-0");
  EXPECT_THAT(Scene(Node()).HoldsShare("gpu-0", 1).Text({OneGpu()}),
              HasSubstr("without the capacity"))
      << "who asks nothing gets all";
}

TEST_F(Shared, AnUnknownCapacityMatchesNoDevice) {
  Claim claim = OneGpu();
  claim.requests[0].choices[0].capacity = {{{"", "bandwidth"}, Quantity::Whole(1)}};
  EXPECT_THAT(Scene(Node()).Text({claim}), HasSubstr("1 without the capacity"));
}

TEST(Allocate, ErrorsAbortAndDoubtsAreSaid) {
  const auto with = [](std::string selector) {
    return ClaimOf("c", {Asks("gpu", Choice("gpu.nvidia.com", {std::move(selector)}))});
  };
  EXPECT_EQ(Scene(MixedNode()).Text({with("device.attributes['gpu.nvidia.com'].nvlink == 1")}),
            "aborts: team/c gpu: device gpu-2: no attribute nvlink");
  EXPECT_EQ(Scene(MixedNode())
                .Holds({"gpu-2"})
                .Text({with("device.attributes['gpu.nvidia.com'].nvlink == 1")}),
            "no: team/c gpu: no device matches")
      << "what is taken is not looked at";
  EXPECT_EQ(Scene(MixedNode()).Text({with("[1].exists(x, x == 1)")}),
            "unknown: team/c gpu: not supported exists()");
  EXPECT_THAT(Scene(MixedNode()).Holds({"gpu-2"}).Text({with("[1].exists(x, x == 1)")}),
              HasSubstr("no: team/c gpu"))
      << "whatever it says, there is no GPU";
  Claim stranger = OneGpu();
  stranger.requests[0].choices[0].device_class = "tpu.example.com";
  EXPECT_EQ(Scene(MixedNode()).Text({stranger}),
            "aborts: team/c gpu: there is no device class tpu.example.com");
}

TEST(Allocate, BoundsAreKept) {
  EXPECT_THAT(Scene(MixedNode()).Text({OneMig("1g.5gb", 33)}),
              HasSubstr("the claim asks for 33 devices, and 32 are allowed"));
  EXPECT_EQ(Scene(MixedNode()).Text({OneGpu()}, 1), "unknown: team/c gpu: the search was given up");
}

// Ordinary searches of a call take nothing of its steps; hard ones share what there is.
TEST(Allocate, TheSearchesOfOneCallShareTheirSteps) {
  const Slice node = MixedNode();
  const std::vector<const Slice*> slices = {&node};
  const NodeBooks books =
      BooksOf(PoolsOf(slices, {"n1"}), Occupancy(std::span<const Claim* const>()));
  Selectors selectors(NvidiaClasses());
  const Claim one = OneGpu();
  const std::vector<const Claim*> asking = {&one};
  StepBudget budget;
  for (int i = 0; i < 5'000; ++i) {
    ASSERT_EQ(Predict(books, asking, selectors, budget).kind, Prediction::Kind::kFits);
  }
  EXPECT_EQ(budget.left, StepBudget().left);
  // All choices of eight of sixteen are tried before the second claim is known to fail.
  std::vector<Device> gpus;
  for (int i = 0; i < 16; ++i)
    gpus.push_back(GpuDevice(fmt::format("g{}", i), fmt::format("GPU-{}", i), "H100", 81559));
  const Slice large = NodeSlice("n1", gpus);
  const std::vector<const Slice*> large_slices = {&large};
  const NodeBooks large_books =
      BooksOf(PoolsOf(large_slices, {"n1"}), Occupancy(std::span<const Claim* const>()));
  const Claim eight = ClaimOf("eight", {{"r", {Choice("gpu.nvidia.com", {}, 8)}}});
  const Claim nine = ClaimOf("nine", {{"r", {Choice("gpu.nvidia.com", {}, 9)}}});
  const std::vector<const Claim*> hard = {&eight, &nine};
  int cut = 0;
  for (int i = 0; i < 300; ++i) {
    const Prediction prediction = Predict(large_books, hard, selectors, budget);
    EXPECT_NE(prediction.kind, Prediction::Kind::kNoFit) << "it rules nothing out";
    cut += prediction.cut_short;
  }
  EXPECT_EQ(budget.left, 0);
  EXPECT_GE(cut, 297) << "two searches had ten thousand steps each";
}

TEST(Allocate, WhatIsAllocatedIsPassedOver) {
  const Claim done = Holding(OneGpu(), {Held("gpu", "n9", "gpu-2")});
  EXPECT_EQ(Scene(MixedNode()).Text({done, OneGpu()}), "gpu=gpu-2");
}

}  // namespace THIS_FILE
}  // namespace tranche::dra
