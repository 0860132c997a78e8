// Objects that tell more of nodes and gangs, applied to the embedded cluster.
#include <gtest/gtest.h>

#include "test/unit/scheduler/embedded/cluster_fixture.h"

namespace tranche::embedded {
namespace THIS_FILE {

std::string Zones(const std::string& node, const std::string& zone = "node-0") {
  return fmt::format(
      "apiVersion: topology.node.k8s.io/v1alpha2\nkind: NodeResourceTopology\n"
      "metadata: {{name: {}}}\nzones: [{{name: {}, type: Node}}]\n---\n",
      node, zone);
}
std::string Slice(const std::string& name, const std::string& driver, const std::string& device,
                  const std::string& version = "v1") {
  return fmt::format(
      "apiVersion: resource.k8s.io/{}\nkind: ResourceSlice\nmetadata: {{name: {}}}\n"
      "spec: {{nodeName: n1, driver: {}, pool: {{name: n1, generation: 1}}, devices: [\n"
      "  {{name: {}, attributes: {{uuid: {{string: GPU-a}},\n"
      "    resource.kubernetes.io/pcieRoot: {{string: \"pci0000:44\"}}}}}}]}}\n---\n",
      version, name, driver, device);
}
std::string Group(const std::string& api_version, const std::string& name, int members) {
  return fmt::format(
      "apiVersion: {}\nkind: PodGroup\nmetadata: {{name: {}}}\nspec: {{minMember: {}}}\n---\n",
      api_version, name, members);
}
std::string Device(const std::string& node, const std::string& type, int minor = 0) {
  return fmt::format(
      "apiVersion: scheduling.koordinator.sh/v1alpha1\nkind: Device\nmetadata: {{name: {}}}\n"
      "spec: {{devices: [{{type: {}, id: GPU-a, minor: {}, health: true}}]}}\n---\n",
      node, type, minor);
}
constexpr const char* kVolcano = "scheduling.volcano.sh/v1beta1";
constexpr const char* kPlugins = "scheduling.x-k8s.io/v1alpha1";

TEST_F(EmbeddedCluster, HandsOverZonesSlicesAndGangSizes) {
  EXPECT_EQ(Applied(Zones("n1") + Slice("s", "gpu.nvidia.com", "gpu-0") +
                    Slice("t", "dra.net", "mlx5-0", "v1beta2") + Group(kVolcano, "a", 4) +
                    Group(kPlugins, "b", 2)),
            (Lines{"zones n1 1", "slices n1 gpu-0", "slices n1 gpu-0 mlx5-0",
                   "gang default volcano/a 4", "gang default podgroup/b 2"}));
  EXPECT_EQ(Applied(Slice("s", "gpu.nvidia.com", "gpu-0")), Lines{}) << "nothing new";
  EXPECT_EQ(Applied(Group(kVolcano, "a", 5)), Lines{"gang default volcano/a 5"});
  EXPECT_EQ(Stored("podgroups", "a")["spec"]["minMember"], 5);
  EXPECT_EQ(Stored("noderesourcetopologies", "n1")["zones"].size(), 1u);
  EXPECT_EQ(Stored("resourceslices", "t")["apiVersion"], "resource.k8s.io/v1beta2");
}

TEST_F(EmbeddedCluster, SaysWhenZonesSlicesAndGangSizesAreGone) {
  Applied(Zones("n1") + Slice("s", "gpu.nvidia.com", "gpu-0") + Group(kPlugins, "b", 2));
  EXPECT_EQ(Deleted(R"({"kind":"NodeResourceTopology","name":"n1"})"), Lines{"zones n1 gone"});
  EXPECT_EQ(Deleted(R"({"kind":"resourceslice","name":"s"})"), Lines{"slices n1"});
  EXPECT_EQ(Deleted(R"({"kind":"PodGroup","name":"b"})"), Lines{"gang default podgroup/b 0"});
}

TEST_F(EmbeddedCluster, HandsOverWhatKoordinatorSaysOfANode) {
  EXPECT_EQ(Applied(Device("n1", "gpu")), Lines{"agent n1 koordinator 1"});
  EXPECT_EQ(Stored("devices", "n1")["spec"]["devices"][0]["id"], "GPU-a");
  EXPECT_EQ(Applied(Device("n1", "rdma")), Lines{"agent n1 gone"}) << "no GPU among its devices";
  EXPECT_EQ(Deleted(R"({"kind":"Device","name":"n1"})"), Lines{"agent n1 gone"});
  EXPECT_EQ(ApplyError(Device("n1", "gpu", 64)),
            "document 1, Device n1: expected whole number from 0 to 63, found number 64, in "
            "spec.devices 0.minor");
}

TEST_F(EmbeddedCluster, TakesAPodGroupOfTheOtherApiGroupForAnotherGang) {
  Applied(Group(kVolcano, "a", 4));
  EXPECT_EQ(Applied(Group(kPlugins, "a", 3)),
            (Lines{"gang default volcano/a 0", "gang default podgroup/a 3"}));
  EXPECT_EQ(Deleted(R"({"kind":"PodGroup","name":"a"})"), Lines{"gang default podgroup/a 0"});
}

TEST_F(EmbeddedCluster, HandsOverTheSizesOfGroupsAndOwners) {
  EXPECT_EQ(Applied("apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: a}\n"
                    "spec: {schedulingPolicy: {gang: {minCount: 4}}}\n---\n"
                    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: b}\n"
                    "spec: {replicatedJobs: [{name: w, replicas: 2, template: {spec: "
                    "{parallelism: 3}}}]}\n---\n"
                    "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: c}\n"
                    "spec: {headGroupSpec: {}, workerGroupSpecs: [{groupName: w, replicas: 2}]}\n"),
            (Lines{"gang default group/a 4", "gang default jobset/b 6", "gang default ray/c 3"}));
  EXPECT_EQ(Deleted(R"({"kind":"JobSet","name":"b"})"), Lines{"gang default jobset/b 0"});
  EXPECT_EQ(ApplyError("apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: c}\n"
                       "spec: {workerGroupSpecs: [{groupName: w, replicas: -1}]}\n"),
            "RayCluster default/c: expected whole number from 0 to 10000, found number "
            "-1, in spec.replicas");
}

TEST_F(EmbeddedCluster, RefusesZonesSlicesAndPodGroupsThatCannotBeRead) {
  EXPECT_EQ(ApplyError(Zones("n1", "left")),
            "document 1, NodeResourceTopology n1: expected node-0 to node-1023, found \"left\", in "
            "object.zones name");
  EXPECT_EQ(ApplyError("apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\n"
                       "metadata: {name: s}\n"),
            "ResourceSlice s: expected object, found nothing, in object.spec");
  EXPECT_EQ(
      ApplyError(Group(kVolcano, "a", -1)),
      "document 1, PodGroup default/a: expected whole number from 0 to 10000, found number -1, in "
      "spec.minMember");
}

TEST_F(EmbeddedCluster, LeavesOtherGroupsKindsOfThoseNamesAlone) {
  EXPECT_EQ(Applied(Group("example.com/v1", "a", 4)), Lines{});
  EXPECT_FALSE(cluster_.Get("PodGroup", "default", "a").has_value());
}

}  // namespace THIS_FILE
}  // namespace tranche::embedded
