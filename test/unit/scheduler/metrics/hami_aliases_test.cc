// The gauges of HAMi's scheduler, as its dashboards ask for them.
#include "scheduler/metrics/hami_aliases.h"

#include <gtest/gtest.h>

#include <string>

#include "scheduler/metrics/metrics.h"

namespace tranche::metrics {
namespace THIS_FILE {

Device Share(int card, const std::string& uuid, int64_t mib, int64_t milli) {
  Device device;
  device.card = card;
  device.uuid = GpuUuid(uuid);
  device.memory = Mebibytes::Of(mib);
  device.milli = MilliGpu::Of(milli);
  return device;
}

GpuView Gpu(int index, const std::string& uuid, int64_t mib, int64_t free_mib) {
  GpuView gpu;
  gpu.index = index;
  gpu.uuid = GpuUuid(uuid);
  gpu.memory = Mebibytes::Of(mib);
  gpu.free_memory = Mebibytes::Of(free_mib);
  return gpu;
}

PodView Pod(const std::string& name, PodState state, std::vector<Device> devices) {
  PodView pod;
  pod.name = {"team", name};
  pod.state = state;
  pod.node = NodeName("n1");
  pod.containers = {"init", "main"};
  Allocation allocation;
  allocation.containers.push_back({"main", std::move(devices)});
  pod.allocation = std::move(allocation);
  return pod;
}

HamiRows OneNode() {
  HamiRows rows;
  NodeView node;
  node.name = NodeName("n1");
  node.model = "t4";
  node.gpus = {Gpu(0, "GPU-a", 16'000, 10'000), Gpu(1, "GPU-b", 16'000, 16'000)};
  rows.nodes.push_back(node);
  // The record of another scheduler names the card by its UUID alone.
  rows.pods = {Pod("p", PodState::kBound, {Share(0, "GPU-a", 4'000, 255)}),
               Pod("q", PodState::kReserved, {Share(9, "GPU-a", 2'000, 0)}),
               Pod("claimed", PodState::kClaimed, {Share(1, "GPU-b", 2'000, 0)})};
  return rows;
}

std::string Rendered(HamiRows rows) {
  Scrape scrape;
  scrape.hami = std::move(rows);
  return Metrics().Render(scrape);
}

bool HasLine(const std::string& page, const std::string& line) {
  return ("\n" + page).find("\n" + line + "\n") != std::string::npos;
}

TEST(HamiAliases, TellOfEveryCard) {
  const std::string page = Rendered(OneNode());
  const std::string a =
      R"(zone="vGPU",nodeid="n1",deviceuuid="GPU-a",deviceidx="0",devicetype="t4")";
  const std::string b =
      R"(zone="vGPU",nodeid="n1",deviceuuid="GPU-b",deviceidx="1",devicetype="t4")";
  for (const std::string& line :
       {"GPUDeviceMemoryLimit{" + a + "} 16777216000",
        "GPUDeviceMemoryAllocated{" + a + R"(,devicecores="100"} 6291456000)",
        "GPUDeviceSharedNum{" + a + "} 2", "GPUDeviceCoreAllocated{" + a + "} 26",
        "GPUDeviceCoreLimit{" + a + "} 100",
        "nodeGPUOverview{" + a +
            R"(,devicecores="100",sharedcontainers="2",devicememorylimit="16000"} 6291456000)",
        "nodeGPUMemoryPercentage{" + a + "} 0.375", "GPUDeviceSharedNum{" + b + "} 0",
        "nodeGPUMemoryPercentage{" + b + "} 0"}) {
    EXPECT_TRUE(HasLine(page, line)) << line << "\n" << page;
  }
}

TEST(HamiAliases, TellOfEveryContainerByItsPlaceInThePod) {
  HamiRows rows = OneNode();
  // Two instances of one card: one series, or the page could not be read.
  rows.pods.push_back(
      Pod("mig", PodState::kBound, {Share(1, "GPU-b", 1'000, 100), Share(1, "GPU-b", 1'000, 100)}));
  rows.pods.push_back(Pod("unknown", PodState::kBound, {Share(1, "", 1'000, 100)}));
  const std::string page = Rendered(std::move(rows));
  const auto labels = [](const std::string& pod, const std::string& uuid) {
    return R"({zone="vGPU",podnamespace="team",nodename="n1",podname=")" + pod +
           R"(",containeridx="1",deviceuuid=")" + uuid + "\"} ";
  };
  for (const std::string& line : {"vGPUMemoryAllocated" + labels("p", "GPU-a") + "4194304000",
                                  "vGPUCoreAllocated" + labels("p", "GPU-a") + "26",
                                  "vGPUMemoryAllocated" + labels("mig", "GPU-b") + "2097152000",
                                  "vGPUCoreAllocated" + labels("mig", "GPU-b") + "20"}) {
    EXPECT_TRUE(HasLine(page, line)) << line << "\n" << page;
  }
  EXPECT_EQ(page.find("podname=\"unknown\""), std::string::npos);
  EXPECT_EQ(page.find("podname=\"claimed\""), std::string::npos);
}

TEST(HamiAliases, TellCardsApartThatNobodyCan) {
  HamiRows rows;
  NodeView node;
  node.name = NodeName("n2");
  node.gpus = {Gpu(5, "", 0, 0), Gpu(0, "", 0, 0)};
  node.gpus[1].index.reset();
  rows.nodes.push_back(node);
  const std::string page = Rendered(std::move(rows));
  for (const char* index : {"0", "1"}) {
    EXPECT_NE(page.find(std::string(R"(deviceuuid="",deviceidx=")") + index + "\""),
              std::string::npos)
        << page;
  }
  EXPECT_EQ(page.find("nodeGPUMemoryPercentage"), std::string::npos) << "of nothing";
}

TEST(HamiAliases, TellWhatANamespaceHoldsOfTheSmallestOfItsQuotas) {
  HamiRows rows;
  const CapAmount used{Mebibytes::Of(3'000), 40};
  rows.caps = {{{"team", "narrow", Mebibytes::Of(4'000), std::nullopt}, used},
               {{"team", "wide", Mebibytes::Of(9'000), 100}, used}};
  const std::string page = Rendered(std::move(rows));
  const std::string team = R"(QuotaUsed{zone="vGPU",quotanamespace="team",quotaName=")";
  for (const std::string& line : {team + R"(nvidia.com/gpumem",limit="4000"} 3000)",
                                  team + R"(nvidia.com/gpucores",limit="100"} 40)"}) {
    EXPECT_TRUE(HasLine(page, line)) << line << "\n" << page;
  }
}

TEST(HamiAliases, AreNotThereUnlessAskedFor) {
  EXPECT_EQ(Metrics().Render(Scrape()).find("GPUDevice"), std::string::npos);
}

}  // namespace THIS_FILE
}  // namespace tranche::metrics
