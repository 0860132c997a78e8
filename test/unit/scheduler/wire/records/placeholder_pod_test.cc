#include "scheduler/wire/records/placeholder_pod.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "scheduler/wire/pods/pod_decode.h"

namespace tranche::wire {
namespace THIS_FILE {

using PlainJson = nlohmann::json;

PodFacts Decoded(const PlainJson& pod) {
  Parser parser;
  const std::string text = pod.dump();
  const absl::StatusOr<Element> document = parser.Parse(text);
  EXPECT_TRUE(document.ok()) << text;
  absl::StatusOr<PodFacts> facts = DecodePod(*document);
  EXPECT_TRUE(facts.ok()) << facts.status();
  return *std::move(facts);
}

PlaceholderOrder Order() {
  Device device;
  device.card = 2;
  device.milli = kWholeGpu;
  device.memory = Mebibytes::Of(16384);
  Allocation record;
  record.epoch = 7;
  record.containers = {{kPlaceholderTeller, {device}}, {kPlaceholderHolder, {device}}};
  return {{kPlaceholderNamespace, "reserve-1"}, NodeName("gpu-1"), record};
}

PlainJson Made() {
  PlainJson pod = PlainJson::parse(EncodePlaceholder(Order(), "registry/tranche:1"));
  pod["metadata"]["uid"] = "u1";
  return pod;
}

PlainJson Said(const PlainJson& message, int code = 0) {
  PlainJson pod = Made();
  pod["status"]["initContainerStatuses"] = {
      {{"name", "tell"}, {"state", {{"terminated", {{"exitCode", code}, {"message", message}}}}}}};
  return pod;
}

TEST(PlaceholderPodTest, WhatIsMadeIsReadAsMade) {
  const PodFacts pod = Decoded(Made());
  ASSERT_TRUE(pod.placeholder);
  EXPECT_EQ(pod.placeholder->told, GpuUuid());
  EXPECT_EQ(pod.node, NodeName("gpu-1"));
  EXPECT_EQ(pod.allocation, Order().record);
  EXPECT_EQ(pod.request.asks.size(), 2U);
  ASSERT_EQ(pod.request.pool_needs.size(), 1U);
  EXPECT_EQ(pod.request.pool_needs[0].count, 1);
}

TEST(PlaceholderPodTest, ItNeedsNoRightAndNoRoot) {
  const PlainJson spec = Made()["spec"];
  EXPECT_EQ(spec["automountServiceAccountToken"], false);
  EXPECT_EQ(spec["securityContext"]["runAsNonRoot"], true);
  for (const char* list : {"initContainers", "containers"}) {
    const PlainJson& container = spec[list][0];
    EXPECT_EQ(container["securityContext"]["allowPrivilegeEscalation"], false);
    EXPECT_EQ(container["securityContext"]["capabilities"]["drop"], PlainJson({"ALL"}));
    EXPECT_EQ(container["image"], "registry/tranche:1");
    EXPECT_EQ(container["resources"]["limits"]["nvidia.com/gpu"], "1");
  }
}

TEST(PlaceholderPodTest, OnlyATerminationMessageWithOneDeviceTellsACard) {
  const struct {
    PlainJson message;
    int code;
    const char* told;
  } cases[] = {
      {"GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448", 0, "GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448"},
      {"GPU-a\n", 0, "GPU-a"},
      {"3", 0, "3"},
      {"GPU-a", 1, ""},
      {"GPU-a,GPU-b", 0, ""},
      {"all", 0, ""},
      {"", 0, ""},
      {"GPU-", 0, ""},
      {"GPU-a;rm", 0, ""},
      {17, 0, ""},
  };
  for (const auto& [message, code, told] : cases) {
    EXPECT_EQ(Decoded(Said(message, code)).placeholder->told, GpuUuid(told)) << message;
  }
}

TEST(PlaceholderPodTest, OthersCannotPoseAsOne) {
  const auto is_placeholder = [](const char* pointer, const PlainJson& value) {
    PlainJson pod = Said("GPU-a");
    pod[PlainJson::json_pointer(pointer)] = value;
    return Decoded(pod).placeholder.has_value();
  };
  EXPECT_FALSE(is_placeholder("/metadata/namespace", "team-a"));
  EXPECT_FALSE(is_placeholder("/metadata/labels/tranche.dev~1keeper", "false"));
  EXPECT_FALSE(is_placeholder("/spec/serviceAccountName", "default"));
  EXPECT_TRUE(is_placeholder("/spec/serviceAccountName", "tranche-reserve"));
}

PlainJson Share(const PlainJson& env) {
  return {{"metadata",
           {{"name", "p"},
            {"namespace", "team-a"},
            {"annotations", {{"tranche.dev/gpu-fraction", "0.5"}}}}},
          {"spec", {{"containers", {{{"name", "main"}, {"env", env}}}}}}};
}

TEST(PlaceholderPodTest, APodFollowsWhereItsContainerSeesWhatIsWritten) {
  const PlainJson ours = VisibleDevicesEnv();
  const PlainJson fixed = {{"name", "NVIDIA_VISIBLE_DEVICES"}, {"value", "all"}};
  const PlainJson other = {{"name", "MODEL"}, {"value", "llama"}};
  PlainJson elsewhere = ours;
  elsewhere["valueFrom"]["fieldRef"]["fieldPath"] = "metadata.annotations['mine']";
  const struct {
    PlainJson env;
    bool follows;
  } cases[] = {
      {{other, ours}, true}, {{fixed, ours}, true}, {{ours, fixed}, false},
      {{elsewhere}, false},  {{other}, false},      {nullptr, false},
  };
  for (const auto& [env, follows] : cases) {
    EXPECT_EQ(Decoded(Share(env)).request.follows_placeholder, follows) << env;
  }
  // Where the kubelet is asked for a GPU its plugin says what is seen.
  PlainJson counted = Share({ours});
  counted["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1";
  EXPECT_FALSE(Decoded(counted).request.follows_placeholder);
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
