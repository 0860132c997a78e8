#include "scheduler/api/api_json.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scheduler/api/api.h"

namespace tranche {
namespace THIS_FILE {

using Json = nlohmann::json;

NodeView EightCards(const std::string& name) {
  NodeView node;
  node.name = NodeName(name);
  node.model = "h100";
  node.ready = true;
  for (int i = 0; i < 8; ++i) {
    GpuView gpu;
    gpu.memory = Mebibytes::Of(81'559);
    gpu.free_milli = MilliGpu::Of(500);
    gpu.free_memory = Mebibytes::Of(40'000);
    gpu.pods.push_back(
        {{"team-a", "train"}, PodUid("u1"), MilliGpu::Of(500), Mebibytes::Of(41'559)});
    node.gpus.push_back(gpu);
  }
  return node;
}

TEST(ApiJsonTest, NodeHasTheKeysOfTheContract) {
  NodeView node = EightCards("n");
  node.gpus.resize(1);
  GpuView mig;
  mig.index = 1;
  mig.uuid = GpuUuid("GPU-1");
  mig.numa = 0;
  mig.is_mig = true;
  mig.mig = {{"1g.10gb", 3, 1, {"team-a/train"}}, {"1g.10gb", 4, 1, {}}};
  node.gpus.push_back(mig);
  const Json got = Json::parse(EncodeNodes(std::vector<NodeView>{node}))["nodes"][0];
  EXPECT_EQ(got["knowledge"], "counts");
  EXPECT_EQ(got["closed"], nullptr);
  EXPECT_EQ(got["gpus"][0]["index"], nullptr);
  EXPECT_EQ(got["gpus"][0]["uuid"], nullptr);
  EXPECT_EQ(got["gpus"][0]["mig"], nullptr);
  EXPECT_EQ(got["gpus"][0]["freeMilli"], 500);
  EXPECT_EQ(got["gpus"][0]["pods"][0],
            Json({{"pod", "team-a/train"}, {"uid", "u1"}, {"milli", 500}, {"mib", 41'559}}));
  EXPECT_EQ(got["gpus"][1]["uuid"], "GPU-1");
  EXPECT_EQ(got["gpus"][1]["mig"][0]["pod"], "team-a/train");
  EXPECT_EQ(got["gpus"][1]["mig"][0]["start"], 3);
  EXPECT_EQ(got["gpus"][1]["mig"][1]["pod"], nullptr);
}

TEST(ApiJsonTest, DevicesAreNamedOnlyWhereTheyAreKnown) {
  PodView pod;
  pod.name = {"team-a", "train"};
  pod.state = PodState::kBound;
  pod.allocation.emplace();
  pod.allocation->epoch = 7;
  Device device;
  device.card = 3;
  device.uuid = GpuUuid("GPU-3");
  device.mig = MigDevice{"1g.10gb", 4, 1};
  pod.allocation->containers = {{"main", {device}}};
  for (const Knowledge knowledge : {Knowledge::kCounts, Knowledge::kPredicted, Knowledge::kExact}) {
    pod.allocation->knowledge = knowledge;
    const Json got = Json::parse(EncodePods(std::vector<PodView>{pod}))["pods"][0];
    const bool known = knowledge != Knowledge::kCounts;
    EXPECT_EQ(got["knowledge"], KnowledgeName(knowledge));
    EXPECT_EQ(got["epoch"], 7);
    EXPECT_EQ(got["devices"][0]["index"], known ? Json(3) : Json());
    EXPECT_EQ(got["devices"][0]["uuid"], known ? Json("GPU-3") : Json());
    EXPECT_EQ(got["devices"][0]["migProfile"], "1g.10gb");
    EXPECT_EQ(got["devices"][0]["migStart"], 4);
    EXPECT_EQ(got["reason"], nullptr);
    for (const char* key : {"leaf", "class", "quotaState"}) {
      EXPECT_TRUE(got.contains(key) && got[key].is_null()) << key;
    }
  }
}

TEST(ApiJsonTest, ReasonCarriesCodeTextDetailAndTime) {
  PodView pod;
  pod.reason = Reason::kNoRoom;
  pod.detail = "expected 2, found 1 \"free\"";
  const Json got = Json::parse(EncodePods(std::vector<PodView>{pod}))["pods"][0]["reason"];
  EXPECT_EQ(got, Json({{"code", "NoRoom"},
                       {"text", "no node has enough free GPU capacity"},
                       {"detail", "expected 2, found 1 \"free\""},
                       {"eligibleAt", nullptr}}));
}

TEST(ApiJsonTest, AWaitingPodSaysWhatAnAutoscalerWasAskedForItsGang) {
  ProvisioningFound found;
  found.name = {"team-a", "tranche-1"};
  found.state = ProvisioningState::kNotYet;
  found.since = Instant(std::chrono::hours(24));
  found.reason = "CapacityNotFound";
  found.message = "no capacity";
  ApiSources sources;
  std::string asked;
  sources.provisioning = [&](const std::string& ns, const std::string& gang) {
    asked = ns + "/" + gang;
    return std::optional(found);
  };
  PodView pod;
  pod.name = {"team-a", "p"};
  EXPECT_FALSE(NotesOf(sources, pod, nullptr).provisioning) << "of no gang";
  pod.gang = "run";
  const Json got = Json::parse(EncodePod(pod, NotesOf(sources, pod, nullptr)));
  EXPECT_EQ(asked, "team-a/run");
  EXPECT_EQ(got["provisioning"],
            Json({{"request", "tranche-1"},
                  {"state", "not_yet"},
                  {"since", "1970-01-02T00:00:00Z"},
                  {"text",
                   "the autoscaler found no room for all of its pods, and tries again "
                   "(CapacityNotFound: no capacity)"}}));
  Explanation explanation;
  explanation.pod = pod;
  EXPECT_EQ(
      Json::parse(EncodeExplanation(explanation, NotesOf(sources, pod, nullptr)))["provisioning"],
      got["provisioning"]);
  pod.state = PodState::kBound;
  EXPECT_FALSE(NotesOf(sources, pod, nullptr).provisioning) << "it waits for nothing";
}

TEST(ApiJsonTest, LargeFleetIsEncodedFast) {
  std::vector<NodeView> nodes;
  for (int i = 0; i < 5'000; ++i) nodes.push_back(EightCards("node-" + std::to_string(i)));
  const auto started = std::chrono::steady_clock::now();
  const std::string text = EncodeNodes(nodes);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - started);
  EXPECT_EQ(Json::parse(text)["nodes"].size(), 5'000U);
  RecordProperty("milliseconds", static_cast<int>(took.count()));
  // 100 ms is the aim of a release build; sanitizers, counters and a busy machine take their share.
  EXPECT_LT(took.count(), 20'000);
}

}  // namespace THIS_FILE
}  // namespace tranche
