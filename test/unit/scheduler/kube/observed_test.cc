// What NodeResourceTopology, ResourceSlice and PodGroup objects on a server say of nodes and gangs,
// over real sockets. None of these kinds need be there.
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <set>
#include <sstream>

#include "test/unit/scheduler/kube/kube_fixture.h"

namespace tranche::kube {
namespace THIS_FILE {

using fakes::ApiRequest;
using fakes::ApiServer;
using fakes::Exchange;
using fakes::StatusBody;
using Lines = std::vector<std::string>;

constexpr const char* kZones = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies";
constexpr const char* kSlices = "/apis/resource.k8s.io/v1/resourceslices";
constexpr const char* kDevices = "/apis/scheduling.koordinator.sh/v1alpha1/devices";
constexpr const char* kVolcanoGroups = "/apis/scheduling.volcano.sh/v1beta1/podgroups";
constexpr const char* kNativeGroups = "/apis/scheduling.k8s.io/v1beta1/podgroups";
constexpr const char* kJobSets = "/apis/jobset.x-k8s.io/v1alpha2/jobsets";
constexpr const char* kEvents = "/api/v1/events";
constexpr const char* kPluginGroups = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups";

Json Meta(const std::string& name, const std::string& ns = "") {
  Json metadata = {{"name", name}, {"uid", "uid-" + name}};
  if (!ns.empty()) metadata["namespace"] = ns;
  return metadata;
}

Json Zones(const std::string& node, int count) {
  Json zones = Json::array();
  for (int i = 0; i < count; ++i) {
    zones.push_back({{"name", fmt::format("node-{}", i)}, {"type", "Node"}});
  }
  return {{"metadata", Meta(node)}, {"zones", std::move(zones)}};
}

Json Slice(const std::string& name, const std::string& node, const std::string& driver,
           const std::vector<std::string>& devices) {
  Json list = Json::array();
  for (const std::string& device : devices) {
    list.push_back({{"name", device},
                    {"attributes",
                     {{"uuid", {{"string", device}}},
                      {"resource.kubernetes.io/pcieRoot", {{"string", "pci0000:44"}}}}}});
  }
  return {{"metadata", Meta(name)},
          {"spec",
           {{"nodeName", node},
            {"driver", driver},
            {"pool", {{"name", node}, {"generation", 1}, {"resourceSliceCount", 1}}},
            {"devices", std::move(list)}}}};
}

Json Device(const std::string& node, int gpus) {
  Json list = Json::array();
  for (int i = 0; i < gpus; ++i) list.push_back({{"type", "gpu"}, {"minor", i}, {"health", true}});
  return {{"metadata", Meta(node)}, {"spec", {{"devices", std::move(list)}}}};
}

Json Group(const std::string& name, int members) {
  return {{"metadata", Meta(name, "team")}, {"spec", {{"minMember", members}}}};
}

class ObservedTest : public ::testing::Test {
 protected:
  void StartSynced() {
    cluster_ = std::make_unique<Cluster>(PlainOptions(server_.port()), events_);
    cluster_->Start();
    ASSERT_TRUE(events_.Saw("synced"));
  }
  void InstallAll() {
    server_.Install(kZones, "NodeResourceTopologyList");
    server_.Install(kSlices, "ResourceSliceList");
    server_.Install(kDevices, "DeviceList");
    server_.Install(kVolcanoGroups, "PodGroupList");
    server_.Install(kPluginGroups, "PodGroupList");
  }
  void PutOneOfEach() {
    server_.Put(kZones, Zones("n1", 2));
    server_.Put(kSlices, Slice("s", "n1", "gpu.nvidia.com", {"gpu-0"}));
    server_.Put(kDevices, Device("n1", 2));
    server_.Put(kVolcanoGroups, Group("train", 4));
    server_.Put(kPluginGroups, Group("train", 8));
  }
  ResourceStatus StatusOf(const std::string& resource) const {
    return cluster_->status().at(resource);
  }

  ApiServer server_;
  RecordingEvents events_;
  std::unique_ptr<Cluster> cluster_;
};

const Lines kOneOfEach = {"zones n1 2", "slices n1 gpu-0", "agent n1 koordinator 2",
                          "gang team volcano/train 4", "gang team podgroup/train 8"};

TEST_F(ObservedTest, IsHandedOverBeforeNodes) {
  InstallAll();
  PutOneOfEach();
  server_.Put(kNodes, Node("n1"));
  StartSynced();
  for (const std::string& line : kOneOfEach) {
    EXPECT_EQ(events_.Count(line), 1) << line;
    EXPECT_LT(events_.Position(line), events_.Position("node n1")) << line;
  }
  EXPECT_EQ(events_.Count("settled"), 0) << "these objects do not steer";
}

TEST_F(ObservedTest, TellsTheSizesOfGroupsAndOwners) {
  server_.Install(kNativeGroups, "PodGroupList");
  server_.Install(kJobSets, "JobSetList");
  server_.Put(kNativeGroups, {{"metadata", Meta("train", "team")},
                              {"spec", {{"schedulingPolicy", {{"gang", {{"minCount", 3}}}}}}}});
  server_.Put(
      kJobSets,
      {{"metadata", Meta("run", "team")},
       {"spec",
        {{"replicatedJobs",
          Json::array(
              {{{"name", "w"}, {"replicas", 2}, {"template", {{"spec", Json::object()}}}}})}}}});
  StartSynced();
  EXPECT_EQ(events_.Count("gang team group/train 3"), 1);
  EXPECT_EQ(events_.Count("gang team jobset/run 2"), 1);
  server_.Delete(kJobSets, "team/run");
  EXPECT_TRUE(events_.Saw("gang team jobset/run 0"));
}

// The server gives to each of the two watches what it asks for; this one gives everything to both.
TEST_F(ObservedTest, TellsForWhichPodsNodesAreRaised) {
  const auto event = [](const std::string& name, const std::string& reason) {
    return Json{{"metadata", Meta(name, "team")},
                {"involvedObject", {{"kind", "Pod"}, {"uid", "uid-of-" + name}}},
                {"reason", reason},
                {"firstTimestamp", "2026-01-02T03:04:05Z"},
                {"message", "Pod should schedule on: nodeclaim/gpu-1"}};
  };
  server_.Install(kEvents, "EventList");
  server_.Put(kEvents, event("a", "TriggeredScaleUp"));
  server_.Put(kEvents, event("b", "Nominated"));
  server_.Put(kEvents, event("c", "NotTriggerScaleUp"));
  StartSynced();
  EXPECT_EQ(events_.Count("node raised for uid-of-a"), 2);
  EXPECT_EQ(events_.Count("node raised for uid-of-b"), 2);
  EXPECT_EQ(events_.Count("node raised for uid-of-c"), 0);
  server_.Put(kEvents, event("d", "Nominated"));
  EXPECT_TRUE(events_.Saw("node raised for uid-of-d"));
  server_.Put(kEvents, {{"metadata", Meta("e", "team")}, {"reason", 7}});
  server_.Put(kEvents, event("f", "Nominated"));
  EXPECT_TRUE(events_.Saw("node raised for uid-of-f")) << "one bad event costs one event";
  std::set<std::string> asked;
  for (const ApiRequest& request : server_.Requests(kEvents)) {
    const auto selector = request.query.find("fieldSelector");
    asked.insert(selector == request.query.end() ? "everything" : selector->second);
  }
  EXPECT_EQ(asked, (std::set<std::string>{"involvedObject.kind=Pod,reason=Nominated",
                                          "involvedObject.kind=Pod,reason=TriggeredScaleUp"}));
}

TEST_F(ObservedTest, FollowsEveryChangeAndSaysWhatIsGone) {
  InstallAll();
  PutOneOfEach();
  StartSynced();
  server_.Put(kZones, Zones("n1", 1));
  ASSERT_TRUE(events_.Saw("zones n1 1"));
  server_.Put(kVolcanoGroups, Group("train", 5));
  ASSERT_TRUE(events_.Saw("gang team volcano/train 5"));
  server_.Delete(kZones, "n1");
  ASSERT_TRUE(events_.Saw("zones n1 gone"));
  server_.Delete(kSlices, "s");
  ASSERT_TRUE(events_.Saw("slices n1"));
  server_.Delete(kVolcanoGroups, "team/train");
  ASSERT_TRUE(events_.Saw("gang team volcano/train 0"));
  server_.Delete(kPluginGroups, "team/train");
  ASSERT_TRUE(events_.Saw("gang team podgroup/train 0"));
  server_.Put(kDevices, Device("n1", 1));
  ASSERT_TRUE(events_.Saw("agent n1 koordinator 1"));
  server_.Delete(kDevices, "n1");
  ASSERT_TRUE(events_.Saw("agent n1 gone"));
}

TEST_F(ObservedTest, SaysWhatAFreshListDoesNotHaveAnyMore) {
  InstallAll();
  PutOneOfEach();
  StartSynced();
  server_.DeleteSilently(kZones, "n1");
  server_.DeleteSilently(kSlices, "s");
  server_.DeleteSilently(kVolcanoGroups, "team/train");
  server_.Compact();
  for (const char* line : {"zones n1 gone", "slices n1", "gang team volcano/train 0"}) {
    EXPECT_TRUE(events_.Saw(line)) << line;
  }
  EXPECT_EQ(events_.Count("gang team podgroup/train 0"), 0);
}

TEST_F(ObservedTest, CombinesTheSlicesOfANodeAndTellsAListOnce) {
  InstallAll();
  server_.Put(kSlices, Slice("a", "n1", "dra.net", {"mlx5-1", "mlx5-0"}));
  server_.Put(kSlices, Slice("b", "n1", "gpu.nvidia.com", {"gpu-0", "gpu-1"}));
  server_.Put(kSlices, Slice("c", "n2", "gpu.nvidia.com", {"gpu-0"}));
  server_.Put(kSlices, Slice("d", "", "dra.net", {"of-all-nodes"}));
  StartSynced();
  EXPECT_EQ(events_.Lines(),
            (Lines{"slices n1 gpu-0 gpu-1 mlx5-0 mlx5-1", "slices n2 gpu-0", "synced"}));
  server_.Delete(kSlices, "b");
  EXPECT_TRUE(events_.Saw("slices n1 mlx5-0 mlx5-1"));
}

TEST_F(ObservedTest, KeepsWhatWasSaidWhenAnObjectCannotBeReadAnyMore) {
  InstallAll();
  PutOneOfEach();
  StartSynced();
  Json zones = Zones("n1", 1);
  zones["zones"][0]["name"] = "left";
  server_.Put(kZones, zones);
  ASSERT_TRUE(Eventually([this] { return StatusOf("noderesourcetopologies").undecodable == 1; }));
  EXPECT_EQ(events_.Count("zones n1 gone"), 0);
  server_.Put(kZones, Zones("n1", 3));
  EXPECT_TRUE(events_.Saw("zones n1 3"));
}

TEST_F(ObservedTest, IsFoundOnceItsKindIsInstalled) {
  server_.Put(kNodes, Node("n1"));
  StartSynced();
  for (const char* resource :
       {"noderesourcetopologies", "resourceslices", "devices.scheduling.koordinator.sh",
        "podgroups.scheduling.volcano.sh", "podgroups.scheduling.x-k8s.io"}) {
    EXPECT_TRUE(StatusOf(resource).absent) << resource;
    EXPECT_EQ(StatusOf(resource).failures, 0) << resource << ": no failure to complain of";
  }
  InstallAll();
  PutOneOfEach();
  for (const std::string& line : kOneOfEach) EXPECT_TRUE(events_.Saw(line)) << line;
}

TEST_F(ObservedTest, IsDoneWithoutWhereItMayNotBeReadWhichIsLoggedOnce) {
  std::ostringstream log;
  const std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
  InstallAll();
  PutOneOfEach();
  for (const char* path : {kZones, kSlices, kDevices, kVolcanoGroups, kPluginGroups}) {
    for (int i = 0; i < 3; ++i) {
      server_.OnNext("GET", path, [](const ApiRequest&, Exchange& exchange) {
        exchange.Answer(403, StatusBody(403, "Forbidden").dump());
      });
    }
  }
  StartSynced();
  for (const std::string& line : kOneOfEach) {
    EXPECT_TRUE(events_.Saw(line)) << "once the rights are given: " << line;
  }
  cluster_->Stop();
  spdlog::set_default_logger(before);
  const std::string text = log.str();
  const std::string warning = "resourceslices: list: 403";
  ASSERT_NE(text.find(warning), std::string::npos) << text;
  EXPECT_EQ(text.find(warning), text.rfind(warning)) << text;
}

TEST_F(ObservedTest, DoesNotHoldUpTheStartWhileItFails) {
  InstallAll();
  PutOneOfEach();
  server_.Put(kNodes, Node("n1"));
  const auto refuse = [](const ApiRequest&, Exchange& exchange) {
    exchange.Answer(500, StatusBody(500, "InternalError").dump());
  };
  server_.OnNext("GET", kZones, refuse);
  // The second try is answered when all else is through.
  server_.OnNext("GET", kZones, [this, refuse](const ApiRequest& request, Exchange& exchange) {
    EXPECT_TRUE(events_.Saw("synced"));
    refuse(request, exchange);
  });
  StartSynced();
  EXPECT_EQ(events_.Count("node n1"), 1);
  EXPECT_TRUE(events_.Saw("zones n1 2"));
  EXPECT_EQ(StatusOf("noderesourcetopologies").failures, 2);
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
