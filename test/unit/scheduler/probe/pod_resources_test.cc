#include "scheduler/probe/pod_resources.h"

#include <gmock/gmock.h>

#include "test/unit/scheduler/probe/proto_text.h"

namespace tranche::probe {
namespace THIS_FILE {

using ::testing::HasSubstr;

std::string Devices(const std::string& resource, const std::vector<std::string>& ids) {
  std::string message = Bytes(1, resource);
  for (const std::string& id : ids) message += Bytes(2, id);
  return Bytes(2, message + Bytes(3, Bytes(1, Number(1, 1))));  // with its NUMA node
}

std::string Container(const std::string& name, const std::string& devices) {
  const std::string cpus = Number(3, 4) + Bytes(3, Varint(5));  // one by one and packed
  return Bytes(3, devices + cpus + Bytes(1, name) + Bytes(4, Bytes(1, "memory")));
}

std::string Pod(const std::string& ns, const std::string& name, const std::string& containers) {
  return Bytes(1, containers + Bytes(1, name) + Bytes(2, ns));
}

TEST(PodResourcesTest, GivesNvidiaDevicesInOrder) {
  const std::string message =
      Pod("team", "train",
          Container("main", Devices("nvidia.com/gpu", {"GPU-b", "GPU-a"}) +
                                Devices("rdma/hca", {"mlx5_0"})) +
              Container("aside", "")) +
      Pod("team", "serve",
          Container("main", Devices("nvidia.com/mig-1g.10gb", {"MIG-1"}) +
                                Devices("nvidia.com/gpu.shared", {"GPU-c::3"}))) +
      Pod("a", "idle", Container("main", ""));
  const std::vector<ContainerDevices> expected = {
      {"team", "serve", "main", "nvidia.com/gpu.shared", {"GPU-c::3"}},
      {"team", "serve", "main", "nvidia.com/mig-1g.10gb", {"MIG-1"}},
      {"team", "train", "main", "nvidia.com/gpu", {"GPU-a", "GPU-b"}}};
  const auto decoded = DecodePodResources(message);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, expected);
}

TEST(PodResourcesTest, DevicesSplitByNumaNodeAreOneEntry) {
  const auto decoded =
      DecodePodResources(Pod("team", "train",
                             Container("main", Devices("nvidia.com/gpu", {"GPU-c"}) +
                                                   Devices("nvidia.com/gpu", {"GPU-b", "GPU-a"}))));
  const std::vector<ContainerDevices> expected = {
      {"team", "train", "main", "nvidia.com/gpu", {"GPU-a", "GPU-b", "GPU-c"}}};
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, expected);
}

TEST(PodResourcesTest, AnEmptyAnswerIsANodeWithoutPods) {
  const auto decoded = DecodePodResources("");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_TRUE(decoded->empty());
}

TEST(PodResourcesTest, RefusesWhatNoKubeletSays) {
  const std::string devices = Devices("nvidia.com/gpu", {"GPU-a"});
  const struct {
    std::string message, error;
  } table[] = {
      {Bytes(1, "\x0a\x09") + "x", "as many bytes as announced"},
      {Bytes(1, Bytes(3, "\x0b")), "a wire type"},
      {Bytes(1, Bytes(3, Bytes(2, "\x80"))), "a number"},
      {Pod("team", "two words", Container("main", devices)), "a pod name"},
      {Pod("team", "train", Container("a\nb", devices)), "a container name"},
      {Pod("team", "train", Container("main", Devices("nvidia.com/\x01", {}))), "a resource name"},
      {Pod("team", "train", Container("main", Devices("nvidia.com/gpu", {"\xc3\xa4"}))),
       "a device id"},
      {Pod("team", "train", Container("main", Devices("nvidia.com/gpu", {std::string(400, 'a')}))),
       "at most 317"},
  };
  for (const auto& row : table) {
    const auto decoded = DecodePodResources(row.message);
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(decoded.status().message()), HasSubstr(row.error));
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::probe
