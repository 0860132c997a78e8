// ProvisioningRequests and PodTemplates: what is written, and what is read back.
#include "scheduler/wire/workloads/provisioning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tranche::wire {
namespace THIS_FILE {

using Json = nlohmann::json;
using State = ProvisioningState;
using testing::ElementsAre;
using testing::HasSubstr;

Json TemplateOf(const std::string& pod) {
  Parser parser;
  const auto element = parser.Parse(pod);
  EXPECT_TRUE(element.ok()) << element.status();
  const auto made = PodTemplateOf(*element);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? Json::parse(*made) : Json();
}

constexpr const char* kPod = R"({
  "apiVersion":"v1","kind":"Pod",
  "metadata":{"name":"worker-0","uid":"u1","labels":{"index":"0"},
              "annotations":{"secret":"in an annotation"}},
  "spec":{
    "nodeName":null,"serviceAccountName":"trainer","hostname":"worker-0",
    "nodeSelector":{"pool":"gpu"},
    "tolerations":[{"key":"nvidia.com/gpu","operator":"Exists"}],
    "affinity":{"nodeAffinity":{"a":1}},
    "priorityClassName":"training","priority":1000,"schedulerName":"tranche",
    "schedulingGates":[{"name":"tranche.dev/gang"}],
    "initContainers":[{"name":"side","image":"s","restartPolicy":"Always","env":[{"name":"K"}]}],
    "containers":[{"name":"main","image":"trainer:1","command":["run","--token=secret"],
      "env":[{"name":"TOKEN","value":"secret"}],"volumeMounts":[{"name":"v","mountPath":"/v"}],
      "resources":{"limits":{"nvidia.com/gpu":"8"},"requests":{"memory":"1Ti"}}}],
    "volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}},
               {"name":"s","secret":{"secretName":"secret"}},{"name":"e","emptyDir":{}}]}})";

TEST(PodTemplates, HaveWhatSchedulersGoByAndNothingThatIsSecret) {
  EXPECT_EQ(TemplateOf(kPod), Json::parse(R"({
    "metadata":{},
    "spec":{
      "nodeSelector":{"pool":"gpu"},
      "affinity":{"nodeAffinity":{"a":1}},
      "tolerations":[{"key":"nvidia.com/gpu","operator":"Exists"}],
      "priorityClassName":"training","priority":1000,"schedulerName":"tranche",
      "initContainers":[{"name":"side","image":"s","restartPolicy":"Always"}],
      "containers":[{"name":"main","image":"trainer:1",
        "resources":{"limits":{"nvidia.com/gpu":"8"},"requests":{"memory":"1Ti"}}}],
      "volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"data"}}]}})"));
}

TEST(PodTemplates, KeepLabelsWherePodsLookAtEachOther) {
  for (const char* member :
       {R"("topologySpreadConstraints":[{"maxSkew":1}])", R"("affinity":{"podAntiAffinity":{}})"}) {
    const Json made = TemplateOf(std::string(R"({"metadata":{"labels":{"app":"a"}},"spec":{)") +
                                 member + R"(,"containers":[]}})");
    EXPECT_EQ(made["metadata"]["labels"], (Json{{"app", "a"}})) << member;
  }
}

TEST(PodTemplates, AreBounded) {
  const std::string pod = R"({"spec":{"containers":[{"name":"main","image":")" +
                          std::string(kMostTemplateBytes, 'x') + R"("}]}})";
  Parser parser;
  EXPECT_THAT(PodTemplateOf(*parser.Parse(pod)).status().message(),
              HasSubstr("expected at most 65536 bytes of a template"));
  for (const char* wrong : {"{}", R"({"spec":[]})", R"({"spec":{"containers":{}}})",
                            R"({"spec":{"containers":[1]}})", "[]"}) {
    EXPECT_FALSE(PodTemplateOf(*parser.Parse(wrong)).ok()) << wrong;
  }
}

ProvisioningWrite Write() {
  ProvisioningWrite write;
  write.name = {"team", "tranche-0123"};
  write.gang = "jobset/run\"7";
  write.provisioning_class = "best-effort-atomic-scale-up.autoscaling.x-k8s.io";
  write.sets = {{{"team", "leader"}, PodUid("u1"), 1}, {{"team", "worker-0"}, PodUid("u2"), 2}};
  return write;
}

TEST(ProvisioningObjectsTest, AreOwnedByThePodsTheyWereMadeOf) {
  const auto objects =
      EncodeProvisioning(Write(), {{R"({"spec":{"a":1}})", 1}, {R"({"spec":{"b":1}})", 2}});
  ASSERT_TRUE(objects.ok()) << objects.status();
  const Json metadata = Json::parse(R"({
    "name":"tranche-0123","namespace":"team",
    "labels":{"app.kubernetes.io/managed-by":"tranche"},
    "annotations":{"tranche.dev/gang":"jobset/run\"7"},
    "ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"leader","uid":"u1"},
                       {"apiVersion":"v1","kind":"Pod","name":"worker-0","uid":"u2"}]})");
  Json request = Json::parse(R"({
    "apiVersion":"autoscaling.x-k8s.io/v1","kind":"ProvisioningRequest",
    "spec":{"provisioningClassName":"best-effort-atomic-scale-up.autoscaling.x-k8s.io",
            "podSets":[{"podTemplateRef":{"name":"tranche-0123-0"},"count":1},
                       {"podTemplateRef":{"name":"tranche-0123-1"},"count":2}]}})");
  request["metadata"] = metadata;
  EXPECT_EQ(Json::parse(objects->request), request);
  ASSERT_EQ(objects->templates.size(), 2U);
  EXPECT_EQ(objects->templates[1].name, "tranche-0123-1");
  Json second =
      Json::parse(R"({"apiVersion":"v1","kind":"PodTemplate","template":{"spec":{"b":1}}})");
  second["metadata"] = metadata;
  second["metadata"]["name"] = "tranche-0123-1";
  EXPECT_EQ(Json::parse(objects->templates[1].json), second);
}

TEST(ProvisioningObjectsTest, EqualTemplatesAreOneSet) {
  const auto objects =
      EncodeProvisioning(Write(), {{R"({"a":1})", 1}, {R"({"b":1})", 2}, {R"({"a":1})", 4}});
  ASSERT_TRUE(objects.ok());
  EXPECT_EQ(objects->templates.size(), 2U);
  EXPECT_EQ(Json::parse(objects->request)["spec"]["podSets"][0]["count"], 5);
}

TEST(ProvisioningObjectsTest, MoreSetsThanTheApiTakesAreRefused) {
  std::vector<TemplateSet> sets;
  for (std::size_t i = 0; i < kMostPodSets; ++i) {
    sets.push_back({"{\"a\":" + std::to_string(i) + "}", 1});
  }
  EXPECT_TRUE(EncodeProvisioning(Write(), sets).ok());
  sets.push_back({R"({"b":1})", 1});
  EXPECT_THAT(EncodeProvisioning(Write(), sets).status().message(),
              HasSubstr("expected pods of 1 to 32 kinds"));
  EXPECT_FALSE(EncodeProvisioning(Write(), {}).ok());
}

absl::StatusOr<ProvisioningFound> Read(const std::string& text) {
  Parser parser;
  return DecodeProvisioning(*parser.Parse(text));
}

TEST(ProvisioningFoundTest, WhatIsWrittenIsReadBack) {
  const auto objects = EncodeProvisioning(Write(), {{R"({"a":1})", 1}, {R"({"b":1})", 2}});
  const auto found = Read(objects->request);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->name, Write().name);
  EXPECT_EQ(found->gang, Write().gang);
  EXPECT_EQ(found->provisioning_class, Write().provisioning_class);
  EXPECT_EQ(found->pods, 3);
  EXPECT_THAT(found->templates, ElementsAre("tranche-0123-0", "tranche-0123-1"));
  EXPECT_EQ(found->state, State::kAsked);
  EXPECT_EQ(found->since, std::nullopt);
  EXPECT_FALSE(found->deleting);
  Parser parser;
  EXPECT_TRUE(IsOurProvisioning(*parser.Parse(objects->request)));
  EXPECT_FALSE(IsOurProvisioning(
      *parser.Parse(R"({"metadata":{"labels":{"app.kubernetes.io/managed-by":"kueue"}}})")));
  EXPECT_FALSE(IsOurProvisioning(*parser.Parse("[]")));
}

// Templates of a request go with it: one that somebody else wrote under our label cannot have us
// delete others'.
TEST(ProvisioningFoundTest, TemplatesOfOthersAreNotTakenForOurs) {
  const auto found = Read(
      R"({"metadata":{"name":"tranche-0123","namespace":"team"},"spec":{"podSets":[
        {"podTemplateRef":{"name":"database"},"count":1},{"podTemplateRef":{"name":""},"count":1},
        {"podTemplateRef":{"name":"tranche-01234-0"},"count":1},
        {"podTemplateRef":{"name":"tranche-0123-1"},"count":1}]}})");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->templates, ElementsAre("tranche-0123-1"));
}

// Each row: conditions as "type=status", in the order cluster-autoscaler adds them
// (provisioningrequest/conditions/conditions.go, AddOrUpdateCondition), and what they mean.
TEST(ProvisioningFoundTest, TheStrongestConditionCounts) {
  const struct {
    std::vector<std::pair<const char*, const char*>> conditions;
    State state;
  } rows[] = {
      {{}, State::kAsked},
      {{{"Accepted", "False"}}, State::kAsked},
      {{{"Accepted", "True"}}, State::kAccepted},
      {{{"Accepted", "True"}, {"Provisioned", "False"}}, State::kNotYet},
      {{{"Accepted", "True"}, {"Provisioned", "True"}}, State::kProvisioned},
      {{{"Provisioned", "True"}, {"BookingExpired", "True"}}, State::kExpired},
      {{{"Provisioned", "True"}, {"CapacityRevoked", "True"}}, State::kRevoked},
      {{{"Provisioned", "False"}, {"Failed", "True"}}, State::kFailed},
      {{{"Provisioned", "True"}, {"BookingExpired", "True"}, {"Failed", "True"}}, State::kFailed},
      {{{"Provisioned", "True"}, {"Failed", "False"}}, State::kProvisioned},
      {{{"SomethingNew", "True"}}, State::kAsked}};
  for (const auto& row : rows) {
    Json request = {{"metadata", {{"name", "n"}, {"namespace", "team"}}}};
    request["status"]["conditions"] = Json::array();
    for (const auto& [type, status] : row.conditions) {
      request["status"]["conditions"].push_back({{"type", type},
                                                 {"status", status},
                                                 {"reason", "Why"},
                                                 {"message", std::string(1000, 'm')},
                                                 {"lastTransitionTime", "2026-03-01T12:00:00Z"}});
    }
    const auto found = Read(request.dump());
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->state, row.state) << request;
    if (row.state == State::kAsked) continue;
    EXPECT_EQ(found->reason, "Why");
    EXPECT_EQ(found->message.size(), 256U);
    EXPECT_EQ(found->since,
              std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + std::chrono::hours(12));
  }
}

TEST(ProvisioningFoundTest, WhatIsNoRequestIsRefused) {
  for (const char* wrong :
       {"[]", R"({"status":{"conditions":[{"type":1}]}})", R"({"status":{"conditions":{}}})",
        R"({"spec":{"podSets":[{"count":-1}]}})", R"({"spec":{"podSets":["a"]}})",
        R"({"metadata":{"name":5}})"}) {
    EXPECT_FALSE(Read(wrong).ok()) << wrong;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
