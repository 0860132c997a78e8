// HAMi's device lists on pods. Source: request-dialects section 4.3.
#include "scheduler/wire/hami.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scheduler/wire/json.h"

namespace tranche::wire {
namespace {

using Annotations = std::map<std::string, std::string>;

const std::vector<ContainerInfo> kTwoApps = {{"a", ContainerRole::kApp, 1},
                                             {"b", ContainerRole::kApp, 1}};
const std::vector<ContainerInfo> kInitAndApps = {{"warm", ContainerRole::kInit, 0},
                                                 {"log", ContainerRole::kSidecar, 1},
                                                 {"a", ContainerRole::kApp, 0},
                                                 {"b", ContainerRole::kApp, 2}};

Device Share(std::string_view uuid, int64_t milli, int64_t mib) {
  Device device;
  device.uuid = GpuUuid(uuid);
  device.milli = MilliGpu::Of(milli);
  device.memory = Mebibytes::Of(mib);
  return device;
}

Allocation Exact(std::vector<ContainerDevices> containers) {
  Allocation allocation;
  allocation.knowledge = Knowledge::kExact;
  allocation.containers = std::move(containers);
  return allocation;
}

Annotations Bind(const std::vector<ContainerInfo>& containers, const Allocation& allocation,
                 int minor) {
  PodRequest request;
  request.containers = containers;
  return HamiBindingAnnotations(request, allocation, "n1", minor,
                                ParseTime("2026-01-02T03:04:05.999Z").value());
}

TEST(HamiBinding, WritesTheKeysTheAgentReads) {
  const Allocation two_on_one_card =
      Exact({{"a", {Share("GPU-0fc3", 0, 3000)}}, {"b", {Share("GPU-0fc3", 0, 5000)}}});
  const std::string list = "GPU-0fc3,NVIDIA,3000,0:;GPU-0fc3,NVIDIA,5000,0:;";
  EXPECT_EQ(Bind(kTwoApps, two_on_one_card, 8), (Annotations{
                                                    {"hami.io/vgpu-node", "n1"},
                                                    {"hami.io/vgpu-time", "1767323045"},
                                                    {"hami.io/vgpu-devices-to-allocate", list},
                                                    {"hami.io/vgpu-devices-allocated", list},
                                                    {"hami.io/bind-phase", "allocating"},
                                                    {"hami.io/bind-time", "1767323045"},
                                                }));
}

TEST(HamiBinding, GivesInitContainersSlotsFromMinorNineOn) {
  const Allocation on_last = Exact({{"b", {Share("GPU-a", 300, 8000), Share("GPU-b", 300, 8000)}}});
  const std::string devices = "GPU-a,NVIDIA,8000,30:GPU-b,NVIDIA,8000,30:;";
  const std::string key = "hami.io/vgpu-devices-allocated";
  EXPECT_EQ(Bind(kInitAndApps, on_last, 4).at(key), ";" + devices);
  EXPECT_EQ(Bind(kInitAndApps, on_last, 8).at(key), ";" + devices);
  EXPECT_EQ(Bind(kInitAndApps, on_last, 9).at(key), ";;;" + devices);
  EXPECT_EQ(Bind(kInitAndApps, on_last, 10).at(key), ";;;" + devices);
  const Allocation on_sidecar = Exact({{"log", {Share("GPU-a", 1000, 9)}}});
  EXPECT_EQ(Bind(kInitAndApps, on_sidecar, 9).at(key), ";GPU-a,NVIDIA,9,100:;;;");
}

TEST(HamiBinding, RoundsCoresDownButNeverToNoLimit) {
  struct Row {
    int64_t milli;
    std::string_view cores;
  };
  for (const Row& row :
       {Row{0, "0"}, Row{1, "1"}, Row{9, "1"}, Row{125, "12"}, Row{999, "99"}, Row{1000, "100"}}) {
    const Allocation allocation = Exact({{"a", {Share("G", row.milli, 1)}}});
    EXPECT_EQ(Bind(kTwoApps, allocation, 10).at("hami.io/vgpu-devices-allocated"),
              fmt::format("G,NVIDIA,1,{}:;;", row.cores));
  }
}

TEST(HamiBinding, WritesMigInstancesAsJsonFromMinorTenOn) {
  Device slice = Share("GPU-a", 142, 9728);
  slice.mig = MigDevice{"1g.10gb", 0, 1};
  Device other = slice;
  other.mig = MigDevice{"1g.10gb", 6, 1};
  const Allocation allocation = Exact({{"b", {slice, other}}});
  const std::string key = "hami.io/vgpu-mig-allocations";
  EXPECT_EQ(Bind(kInitAndApps, allocation, 10).at(key),
            R"([{"containerIndex":3,"deviceIndex":0,"gpuUUID":"GPU-a","profile":"1g.10gb",)"
            R"("placement":{"start":0,"size":1}},)"
            R"({"containerIndex":3,"deviceIndex":1,"gpuUUID":"GPU-a","profile":"1g.10gb",)"
            R"("placement":{"start":6,"size":1}}])");
  EXPECT_EQ(Bind(kInitAndApps, allocation, 9).count(key), 0u);
  EXPECT_EQ(Bind(kTwoApps, Exact({}), 10).count(key), 0u);
}

TEST(HamiDevices, ReadsBackWhatABindingSays) {
  const Allocation written = Exact(
      {{"a", {Share("GPU-a", 300, 8000), Share("GPU-b", 0, 1)}}, {"b", {Share("GPU-a", 1000, 0)}}});
  for (const std::vector<ContainerInfo>& containers : {kTwoApps, kInitAndApps}) {
    for (const int minor : {4, 8, 9, 10}) {
      const absl::StatusOr<Allocation> read = ParseHamiDevices(
          Bind(containers, written, minor).at("hami.io/vgpu-devices-allocated"), containers);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(*read, written) << minor;
    }
  }
}

TEST(HamiDevices, TellsSlotsOfInitContainersByTheLength) {
  struct Row {
    std::string_view text;
    std::string_view holder;
  };
  for (const Row& row : {
           Row{"GPU-a,NVIDIA,1,1:;;", "a"},  // app containers only
           Row{";GPU-a,NVIDIA,1,1:;", "b"},
           Row{"GPU-a,NVIDIA,1,1:;;;;", "warm"},  // init containers first
           Row{";GPU-a,NVIDIA,1,1:;;;", "log"},
           Row{";;GPU-a,NVIDIA,1,1:;;", "a"},
       }) {
    const absl::StatusOr<Allocation> read = ParseHamiDevices(row.text, kInitAndApps);
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ(read->containers.size(), 1u);
    EXPECT_EQ(read->containers[0].container, row.holder) << row.text;
  }
  EXPECT_TRUE(ParseHamiDevices(";;", kTwoApps)->containers.empty());
}

TEST(HamiDevices, NamesContainerDeviceAndValueThatAreWrong) {
  struct Row {
    std::string_view text;
    std::string_view message;
  };
  for (const Row& row : {
           Row{"", "expected devices of 2 or 2 containers, found 0, in \"\""},
           Row{";", "expected devices of 2 or 2 containers, found 1, in \";\""},
           Row{";;;", "expected devices of 2 or 2 containers, found 3, in \";;;\""},
           Row{";;x", "expected \";\" behind every container, found \"x\", in the device list"},
           Row{"GPU-a,NVIDIA,1,1;;",
               "expected \":\" behind every device, found \"GPU-a,NVIDIA,1,1\", in container "
               "\"a\""},
           Row{"GPU-a,NVIDIA,1:;;",
               "expected uuid,NVIDIA,<MiB>,<percent of cores>, found \"GPU-a,NVIDIA,1\", in device "
               "0 of container \"a\""},
           Row{";GPU-a,NVIDIA,1,1:GPU-b,DCU,1,1:;",
               "expected the device type NVIDIA, found \"DCU\", in device 1 of container \"b\""},
           Row{",NVIDIA,1,1:;;", "expected a uuid, found \"\", in device 0 of container \"a\""},
           Row{"GPU-a,NVIDIA,-1,1:;;",
               "expected memory in MiB, found \"-1\", in device 0 of container \"a\""},
           Row{"GPU-a,NVIDIA,2147483648,1:;;",
               "expected memory in MiB, found \"2147483648\", in device 0 of container \"a\""},
           Row{"GPU-a,NVIDIA,1,101:;;",
               "expected cores from 0 to 100 percent, found \"101\", in device 0 of container "
               "\"a\""},
           Row{"GPU-a[0-1],NVIDIA,1,1:;;",
               "expected a uuid without MIG template, found \"GPU-a[0-1]\", in device 0 of "
               "container \"a\""},
       }) {
    const absl::StatusOr<Allocation> read = ParseHamiDevices(row.text, kTwoApps);
    ASSERT_FALSE(read.ok()) << row.text;
    EXPECT_EQ(std::string(read.status().message()), row.message);
  }
}

TEST(HamiDevices, RefusesMoreDevicesThanAMachineHas) {
  std::string text;
  for (int i = 0; i < 65; ++i) text += "GPU-a,NVIDIA,1,1:";
  EXPECT_FALSE(ParseHamiDevices(text + ";;", kTwoApps).ok());
}

}  // namespace
}  // namespace tranche::wire
