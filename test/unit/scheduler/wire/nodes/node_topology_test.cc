// NodeResourceTopology and ResourceSlice objects.
#include "scheduler/wire/nodes/node_topology.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/wire/nodes/node_slices.h"

namespace tranche::wire {
namespace THIS_FILE {

using ::testing::HasSubstr;

template <typename Decode>
auto Decoded(std::string_view json, Decode decode) -> decltype(decode(Element())) {
  Parser parser;
  const absl::StatusOr<Element> document = parser.Parse(json);
  if (!document.ok()) return document.status();
  return decode(*document);
}
absl::StatusOr<NodeZones> Zones(std::string_view json) { return Decoded(json, DecodeNodeZones); }
absl::StatusOr<NodeSlice> Slice(std::string_view json) {
  return Decoded(json, DecodeResourceSlice);
}
template <typename Value>
std::string ErrorOf(const absl::StatusOr<Value>& value) {
  return value.ok() ? "no error" : std::string(value.status().message());
}

std::string Zone(std::string_view name, std::string_view resources,
                 std::string_view type = "Node") {
  return fmt::format(R"({{"name":"{}","type":"{}","resources":[{}]}})", name, type, resources);
}
std::string Amounts(std::string_view name, std::string_view capacity, std::string_view available) {
  return fmt::format(R"({{"name":"{}","capacity":{},"allocatable":{},"available":{}}})", name,
                     capacity, capacity, available);
}

TEST(NodeZones, AreReadWithPolicyScopeGpusAndCpus) {
  const auto zones = Zones(
      fmt::format(R"({{"metadata":{{"name":"n1"}},"topologyPolicies":["None"],"attributes":[)"
                  R"({{"name":"topologyManagerPolicy","value":"single-numa-node"}},)"
                  R"({{"name":"topologyManagerScope","value":"pod"}},)"
                  R"({{"name":"nodeTopologyPodsFingerprint","value":"pfp0v001"}}],)"
                  R"("zones":[{},{},{}]}})",
                  Zone("node-10", Amounts("nvidia.com/gpu", R"("4")", "4") + "," +
                                      Amounts("cpu", R"("64")", R"("63500m")") + "," +
                                      Amounts("memory", R"("1Ti")", R"("1Ti")")),
                  Zone("node-2", Amounts("cpu", "64", R"("1")")), Zone("socket-0", "", "Socket")));
  ASSERT_TRUE(zones.ok()) << zones.status();
  EXPECT_EQ(zones->policy, NumaPolicy::kSingleNode);
  EXPECT_EQ(zones->scope, NumaScope::kPod);
  EXPECT_EQ(zones->zones, (std::vector<ZoneCounts>{
                              {2, 0, 0, MilliCpu::Of(64'000), MilliCpu::Of(1'000)},
                              {10, 4, 4, MilliCpu::Of(64'000), MilliCpu::Of(63'500)},
                          }));
}

TEST(NodeZones, TakeTheDeprecatedWordOnlyWhereNoAttributeSaysMore) {
  struct Case {
    std::string_view word;
    NumaPolicy policy;
    NumaScope scope;
  };
  for (const Case& one :
       {Case{"SingleNUMANodePodLevel", NumaPolicy::kSingleNode, NumaScope::kPod},
        Case{"SingleNUMANodeContainerLevel", NumaPolicy::kSingleNode, NumaScope::kContainer},
        Case{"Restricted", NumaPolicy::kRestricted, NumaScope::kContainer},
        Case{"RestrictedPodLevel", NumaPolicy::kRestricted, NumaScope::kPod},
        Case{"BestEffortContainerLevel", NumaPolicy::kBestEffort, NumaScope::kContainer},
        Case{"None", NumaPolicy::kNone, NumaScope::kContainer}}) {
    const auto zones = Zones(fmt::format(R"({{"topologyPolicies":["{}"]}})", one.word));
    ASSERT_TRUE(zones.ok()) << one.word << zones.status();
    EXPECT_EQ(zones->policy, one.policy) << one.word;
    EXPECT_EQ(zones->scope, one.scope) << one.word;
  }
  const auto both = Zones(R"({"topologyPolicies":["SingleNUMANodePodLevel"],)"
                          R"("attributes":[{"name":"topologyManagerPolicy","value":"restricted"},)"
                          R"({"name":"topologyManagerScope","value":"container"}]})");
  EXPECT_EQ(both->policy, NumaPolicy::kRestricted);
  EXPECT_EQ(both->scope, NumaScope::kContainer);
}

TEST(NodeZones, NameWhatTheyCannotRead) {
  struct Case {
    std::string json;
    std::string_view error;
  };
  std::string many = Zone("node-0", "");
  for (int i = 1; i <= 128; ++i) many += "," + Zone(fmt::format("node-{}", i), "");
  const auto with = [](const std::string& zones) {
    return fmt::format(R"({{"zones":[{}]}})", zones);
  };
  for (const Case& one :
       {Case{R"([])", "expected object, found array, in object"},
        Case{R"({"zones":{}})", "expected array, found object, in object.zones"},
        Case{R"({"topologyPolicies":["Odd"]})", R"(found "Odd", in object.topologyPolicies)"},
        Case{R"({"attributes":[{"name":"topologyManagerPolicy","value":"numa"}]})",
             R"(found "numa", in object.attributes topologyManagerPolicy)"},
        Case{R"({"attributes":[{"name":"topologyManagerScope","value":"node"}]})",
             R"(expected container or pod, found "node")"},
        Case{with(Zone("numa0", "")),
             R"(expected node-0 to node-1023, found "numa0", in object.zones name)"},
        Case{with(Zone("node-1024", "")), R"(found "node-1024")"},
        Case{with(Zone("node-1", "") + "," + Zone("node-1", "")), R"(found "node-1" again)"},
        Case{with(many), "expected at most 128 zones of type Node, found more"},
        Case{with(Zone("node-3", Amounts("nvidia.com/gpu", "8", R"("half")"))),
             R"(found text "half", in object.zones node-3 resources available)"},
        Case{with(Zone("node-3", R"({"name":"cpu","available":"1"})")),
             "found nothing, in object.zones node-3 resources capacity"}}) {
    EXPECT_THAT(ErrorOf(Zones(one.json)), HasSubstr(std::string(one.error))) << one.json;
  }
}

std::string SliceText(std::string_view driver, std::string_view devices, int generation = 1,
                      std::string_view place = R"("nodeName":"n1")") {
  return fmt::format(
      R"({{"metadata":{{"name":"s"}},"spec":{{{},"driver":"{}",)"
      R"("pool":{{"name":"n1","generation":{},"resourceSliceCount":1}},"devices":[{}]}}}})",
      place, driver, generation, devices);
}
std::string Gpu(std::string_view name, std::string_view uuid, std::string_view more = "") {
  return fmt::format(
      R"({{"name":"{}","attributes":{{"type":{{"string":"gpu"}},"uuid":{{"string":"{}"}}{}}}}})",
      name, uuid, more);
}
std::string Nic(std::string_view name, std::string_view attributes) {
  return fmt::format(R"({{"name":"{}","attributes":{{{}}}}})", name, attributes);
}
constexpr std::string_view kRoot44 = R"("resource.kubernetes.io/pcieRoot":{"string":"pci0000:44"})";

TEST(ResourceSlice, TellsOfWholeGpus) {
  const auto slice = Slice(
      SliceText("gpu.nvidia.com",
                Gpu("gpu-0", "GPU-a",
                    R"(,"resource.kubernetes.io/pcieRoot":{"string":"pci0000:44"},)"
                    R"("resource.kubernetes.io/pciBusID":{"string":"0000:45:00.0"},)"
                    R"("resource.kubernetes.io/numaNode":{"int":1})") +
                    "," + Gpu("gpu-1", "GPU-b", R"(,"numaNode":{"int":0})") + "," +
                    R"({"name":"gpu-1-mig-19-4-1","attributes":{"type":{"string":"mig"},)"
                    R"("uuid":{"string":"MIG-c"}}},)"
                    R"({"name":"gpu-2","attributes":{"gpu.nvidia.com/uuid":{"string":"GPU-d"},)"
                    R"("gpu.nvidia.com/numaNode":{"int":-1}}},{"name":"bare"})",
                7));
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_EQ(slice->node, NodeName("n1"));
  EXPECT_EQ(slice->driver, "gpu.nvidia.com");
  EXPECT_EQ(slice->pool, "n1");
  EXPECT_EQ(slice->generation, 7);
  EXPECT_EQ(slice->devices, (std::vector<SliceDevice>{
                                {GpuUuid("GPU-a"), "gpu-0", false, "pci0000:44", "0000:45:00.0", 1},
                                {GpuUuid("GPU-b"), "gpu-1", false, "", "", 0},
                                {GpuUuid("GPU-d"), "gpu-2", false, "", "", std::nullopt},
                            }));
}

TEST(ResourceSlice, OfTheBetaApiHasItsAttributesOneLevelDeeper) {
  const auto slice = Slice(SliceText(
      "gpu.nvidia.com", R"({"name":"gpu-0","basic":{"attributes":{"uuid":{"string":"GPU-a"}}}})"));
  ASSERT_TRUE(slice.ok()) << slice.status();
  ASSERT_EQ(slice->devices.size(), 1u);
  EXPECT_EQ(slice->devices[0].uuid, GpuUuid("GPU-a"));
}

TEST(ResourceSlice, OfAnotherDriverTellsOfNicsWhereItPublishesAPcieRoot) {
  const std::string root(kRoot44);
  const auto slice = Slice(SliceText(
      "dra.net",
      Nic("mlx5-0", root + R"(,"dra.net/numaNode":{"int":1},"rdma":{"bool":true})") + "," +
          Nic("eth0", root + R"(,"dra.net/rdma":{"bool":false})") + "," +
          Nic("lo", R"("dra.net/rdma":{"bool":true})") + "," +
          Nic("cpus", R"("resource.kubernetes.io/pcieRoot":{"strings":["pci0000:44"]})")));
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_EQ(slice->devices,
            (std::vector<SliceDevice>{{GpuUuid(), "mlx5-0", true, "pci0000:44", "", 1}}));
}

TEST(ResourceSlice, OfNoSingleNodeTellsNothing) {
  for (const std::string_view place :
       {R"("allNodes":true)", R"("nodeSelector":{})", R"("perDeviceNodeSelection":true)"}) {
    const auto slice = Slice(SliceText("dra.net", Nic("mlx5-0", kRoot44), 1, place));
    ASSERT_TRUE(slice.ok()) << slice.status();
    EXPECT_TRUE(slice->node.empty()) << place;
    EXPECT_TRUE(slice->devices.empty()) << place;
  }
}

TEST(ResourceSlice, NamesWhatItCannotRead) {
  struct Case {
    std::string json;
    std::string_view error;
  };
  std::string many = Nic("d", "");
  for (int i = 0; i < 128; ++i) many += "," + Nic("d", "");
  for (const Case& one :
       {Case{"{}", "expected object, found nothing, in object.spec"},
        Case{SliceText("d", many), "expected at most 128 devices, found 129, in spec.devices"},
        Case{SliceText("gpu.nvidia.com", Gpu("gpu-3", "GPU-a", R"(,"numaNode":{"int":4096})")),
             "found number 4096, in spec.devices gpu-3 numaNode.int"},
        Case{SliceText("d", Nic("x", R"("resource.kubernetes.io/pcieRoot":{"string":4})")),
             "expected text, found number 4, in spec.devices x "
             "resource.kubernetes.io/pcieRoot.string"},
        Case{SliceText("d", Nic("x", R"("resource.kubernetes.io/pcieRoot":"pci")")),
             "expected object, found text \"pci\", in spec.devices x"},
        Case{SliceText("d", "3"), "expected object, found number 3, in spec.devices"}}) {
    EXPECT_THAT(ErrorOf(Slice(one.json)), HasSubstr(std::string(one.error))) << one.json;
  }
}

NodeSlice Part(std::string_view node, std::string_view driver, std::string_view pool,
               int64_t generation, const std::vector<std::string>& devices) {
  NodeSlice slice{NodeName(node), std::string(driver), std::string(pool), generation, {}};
  for (const std::string& name : devices) {
    SliceDevice device;
    device.name = name;
    device.is_nic = driver != "gpu.nvidia.com";
    slice.devices.push_back(device);
  }
  return slice;
}

// "n1: gpu-0 mlx5-0; n2:"
std::string Told(NodeSlices& slices) {
  std::string out;
  for (const NodeSlices::Change& change : slices.TakeChanges()) {
    out += fmt::format("{}{}:", out.empty() ? "" : "; ", change.node.str());
    for (const SliceDevice& device : change.devices) out += " " + device.name;
  }
  return out;
}

TEST(NodeSlices, AreOneAnswerPerNodeWhateverOrderTheyComeIn) {
  NodeSlices one;
  NodeSlices other;
  one.Put("a", Part("n1", "dra.net", "p", 1, {"mlx5-1", "mlx5-0"}));
  one.Put("b", Part("n1", "gpu.nvidia.com", "n1", 1, {"gpu-1"}));
  one.Put("c", Part("n1", "gpu.nvidia.com", "n1", 1, {"gpu-0"}));
  one.Put("d", Part("n2", "a.net", "p", 1, {"x"}));
  other.Put("z", Part("n2", "a.net", "p", 1, {"x"}));
  other.Put("y", Part("n1", "gpu.nvidia.com", "n1", 1, {"gpu-0"}));
  other.Put("x", Part("n1", "gpu.nvidia.com", "n1", 1, {"gpu-1"}));
  other.Put("w", Part("n1", "dra.net", "p", 1, {"mlx5-0", "mlx5-1"}));
  const std::string told = Told(one);
  EXPECT_EQ(told, "n1: gpu-0 gpu-1 mlx5-0 mlx5-1; n2: x");
  EXPECT_EQ(Told(other), told);
  EXPECT_EQ(Told(one), "");
}

TEST(NodeSlices, CountOnlyTheNewestGenerationOfAPool) {
  NodeSlices slices;
  slices.Put("old", Part("n1", "gpu.nvidia.com", "n1", 1, {"gpu-0", "gpu-1"}));
  slices.Put("nic", Part("n1", "dra.net", "n1", 1, {"mlx5-0"}));
  EXPECT_EQ(Told(slices), "n1: gpu-0 gpu-1 mlx5-0");
  slices.Put("new", Part("n1", "gpu.nvidia.com", "n1", 2, {"gpu-0"}));
  EXPECT_EQ(Told(slices), "n1: gpu-0 mlx5-0");
  slices.Remove("old");
  EXPECT_EQ(Told(slices), "") << "it did not count any more";
}

TEST(NodeSlices, SayWhenNothingIsSaidAnyMore) {
  NodeSlices slices;
  slices.Put("cpus", Part("n1", "dra.cpu", "n1", 1, {}));
  EXPECT_EQ(Told(slices), "") << "nothing for us";
  slices.Put("a", Part("n1", "dra.net", "n1", 1, {"mlx5-0"}));
  EXPECT_EQ(Told(slices), "n1: mlx5-0");
  slices.Put("a", Part("n2", "dra.net", "n1", 1, {"mlx5-0"}));
  EXPECT_EQ(Told(slices), "n1:; n2: mlx5-0");
  slices.Remove("a");
  slices.Remove("cpus");
  slices.Remove("cpus");
  EXPECT_EQ(Told(slices), "n2:");
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
