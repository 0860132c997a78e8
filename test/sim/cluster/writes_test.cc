// Writes against the API server, as tables: what is sent, what is answered, what is stored.
#include "test/sim/cluster/writes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/sim/cluster/server_scene.h"

namespace tranche::sim {
namespace THIS_FILE {

constexpr const char* kMerge = "application/merge-patch+json";
constexpr const char* kStrategic = "application/strategic-merge-patch+json";
constexpr const char* kJsonPatch = "application/json-patch+json";
constexpr const char* kApply = "application/apply-patch+yaml";
constexpr const char* kPod = "/api/v1/namespaces/team/pods/p";

// "UID" and "VERSION" stand for those of pod p.
Json Filled(ServerScene& scene, std::string text) {
  const Json metadata = scene.Object("pods", "team/p").at("metadata");
  const auto fill = [&text](const std::string& word, const std::string& by) {
    for (std::size_t at; (at = text.find(word)) != std::string::npos;) {
      text.replace(at, word.size(), by);
    }
  };
  fill("UID", metadata.at("uid"));
  fill("VERSION", metadata.at("resourceVersion"));
  return text.empty() ? Json(nullptr) : Json::parse(text);
}

TEST(WritesTest, AnswersToWrites) {
  struct Row {
    const char* what;
    const char* method;
    std::string target;
    const char* type;
    const char* body;
    int code;
  };
  const std::string pods = "/api/v1/namespaces/team/pods";
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/team/leases";
  const std::string quotas = "/apis/tranche.dev/v1alpha1/gpuquotas";
  const std::vector<Row> rows = {
      {"a resource nobody serves", "POST", "/apis/x.dev/v1/things", "", "{}", 404},
      {"of another group", "PATCH", "/apis/tranche.dev/v1alpha1/pods/p", kMerge, "{}", 404},
      {"a body that is no object of its kind", "POST", leases, "", R"({"kind":"Pod"})", 400},
      {"made", "POST", leases, "", R"({"kind":"Lease","metadata":{"name":"l","namespace":"team"}})",
       201},
      {"made in a namespace that is not there", "POST",
       "/apis/coordination.k8s.io/v1/namespaces/none/leases", "",
       R"({"kind":"Lease","metadata":{"name":"l","namespace":"none"}})", 404},
      {"made with a version", "POST", leases, "",
       R"({"kind":"Lease","metadata":{"name":"l","namespace":"team","resourceVersion":"5"}})", 400},
      {"made again", "POST", pods, "",
       R"({"kind":"Pod","metadata":{"name":"p","namespace":"team"}})", 409},
      {"replaced, nothing there", "PUT", leases + "/none", "",
       R"({"metadata":{"name":"none","namespace":"team"}})", 404},
      {"patched, nothing there", "PATCH", pods + "/none", kMerge, "{}", 404},
      {"merge with the version", "PATCH", kPod, kMerge,
       R"({"metadata":{"resourceVersion":"VERSION","labels":{"a":"b"}}})", 200},
      {"merge with an old version", "PATCH", kPod, kMerge,
       R"({"metadata":{"resourceVersion":"1","labels":{"a":"b"}}})", 409},
      {"merge with another uid", "PATCH", kPod, kMerge,
       R"({"metadata":{"uid":"x","labels":{"a":"b"}}})", 422},
      {"a patch of no known form", "PATCH", kPod, "text/plain", "{}", 415},
      {"strategic for a custom resource", "PATCH", quotas + "/q", kStrategic, "{}", 415},
      {"JSON patch whose test fails", "PATCH", kPod, kJsonPatch,
       R"([{"op":"test","path":"/metadata/uid","value":"x"}])", 422},
      {"JSON patch", "PATCH", kPod, kJsonPatch,
       R"([{"op":"test","path":"/metadata/uid","value":"UID"},
           {"op":"add","path":"/metadata/annotations","value":{}},
           {"op":"add","path":"/metadata/annotations/a.b~1c","value":"d"}])",
       200},
      {"status of a pod with another uid", "PATCH", std::string(kPod) + "/status", kStrategic,
       R"({"metadata":{"uid":"x"},"status":{"phase":"Running"}})", 422},
      {"apply without a manager", "PATCH", quotas + "/q", kApply, "{}", 400},
      {"apply of a status, nothing there", "PATCH", quotas + "/none/status?fieldManager=t", kApply,
       "{}", 404},
      {"apply makes", "PATCH", quotas + "/new?fieldManager=t", kApply,
       R"({"kind":"GPUQuota","metadata":{"name":"new"},"spec":{}})", 201},
      {"delete with another uid", "DELETE", kPod, "", R"({"preconditions":{"uid":"x"}})", 409},
      {"delete with an old version", "DELETE", kPod, "",
       R"({"preconditions":{"resourceVersion":"1"}})", 409},
      {"delete, nothing there", "DELETE", pods + "/none", "", "", 404},
      {"delete", "DELETE", kPod, "", R"({"preconditions":{"uid":"UID"}})", 200},
      {"a method nobody knows", "PUT", leases, "", "{}", 405},
  };
  for (const Row& row : rows) {
    ServerScene scene;
    scene.PutPod("p", Json::object());
    scene.Put("gpuquotas", {{"metadata", {{"name", "q"}}}, {"spec", Json::object()}});
    const Reply reply = scene.Send(row.method, row.target, Filled(scene, row.body), row.type);
    EXPECT_EQ(reply.code, row.code) << row.what << ": " << reply.body;
  }
}

TEST(WritesTest, ALeaseIsReplacedOnlyByTheOneThatSawItLast) {
  ServerScene scene;
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/team/leases";
  Json lease = {{"kind", "Lease"},
                {"metadata", {{"name", "l"}, {"namespace", "team"}}},
                {"spec", {{"holderIdentity", "a"}}}};
  ASSERT_EQ(scene.Send("POST", leases, lease).code, 201);
  lease = scene.Object("leases", "team/l");
  Json other = lease;
  other["spec"]["holderIdentity"] = "b";
  lease["spec"]["renewTime"] = "now";
  EXPECT_EQ(scene.Send("PUT", leases + "/l", lease).code, 200);
  EXPECT_EQ(scene.Send("PUT", leases + "/l", other).code, 409);
  EXPECT_EQ(scene.Object("leases", "team/l")["spec"]["holderIdentity"], "a");
}

TEST(WritesTest, WhatChangesNothingMakesNoVersion) {
  ServerScene scene;
  scene.PutPod("p", Json::object(), "Pending", {{"labels", {{"a", "b"}}}});
  const uint64_t before = scene.api.store().version();
  EXPECT_EQ(scene.Send("PATCH", kPod, {{"metadata", {{"labels", {{"a", "b"}}}}}}, kMerge).code,
            200);
  EXPECT_EQ(scene.api.store().version(), before);
  EXPECT_EQ(scene.Send("PATCH", kPod, {{"metadata", {{"labels", {{"a", "c"}}}}}}, kMerge).code,
            200);
  EXPECT_EQ(scene.api.store().version(), before + 1);
}

TEST(WritesTest, StatusAndTheRestAreWrittenByDifferentPaths) {
  ServerScene scene;
  scene.Put("gpuquotas", {{"metadata", {{"name", "q"}}}, {"spec", {{"weight", 1}}}});
  const std::string path = "/apis/tranche.dev/v1alpha1/gpuquotas/q";
  const Json both = {{"kind", "GPUQuota"},
                     {"metadata", {{"name", "q"}}},
                     {"spec", {{"weight", 2}}},
                     {"status", {{"seen", true}}}};
  ASSERT_EQ(scene.Send("PATCH", path + "/status?fieldManager=t&force=true", both, kApply).code,
            200);
  EXPECT_EQ(scene.Object("gpuquotas", "q")["spec"]["weight"], 1);
  EXPECT_EQ(scene.Object("gpuquotas", "q")["status"]["seen"], true);
  EXPECT_EQ(scene.Object("gpuquotas", "q")["metadata"]["generation"], 1);
  ASSERT_EQ(
      scene.Send("PATCH", path, {{"spec", {{"weight", 3}}}, {"status", nullptr}}, kMerge).code,
      200);
  EXPECT_EQ(scene.Object("gpuquotas", "q")["spec"]["weight"], 3);
  EXPECT_EQ(scene.Object("gpuquotas", "q")["status"]["seen"], true);
  EXPECT_EQ(scene.Object("gpuquotas", "q")["metadata"]["generation"], 2);
}

TEST(WritesTest, AnApplyGivesUpWhatItLeavesOut) {
  ServerScene scene;
  const std::string path = "/apis/tranche.dev/v1alpha1/gpureclaims/r?fieldManager=t&force=true";
  const Json head = {{"kind", "GPUReclaim"}, {"metadata", {{"name", "r"}}}};
  Json first = head;
  first.update({{"spec", {{"a", 1}}}, {"extra", 1}});
  ASSERT_EQ(scene.Send("PATCH", path, first, kApply).code, 201);
  Json second = head;
  second["spec"] = {{"b", 2}};
  ASSERT_EQ(scene.Send("PATCH", path, second, kApply).code, 200);
  const Json stored = scene.Object("gpureclaims", "r");
  EXPECT_FALSE(stored.contains("extra"));
  EXPECT_EQ(stored["spec"], Json({{"b", 2}}));
}

TEST(WritesTest, WhatHasFinalizersGoesWithTheLastOfThem) {
  ServerScene scene;
  scene.Put("resourceclaims",
            {{"metadata",
              {{"name", "one"}, {"namespace", "team"}, {"finalizers", Json::array({"x/y"})}}}});
  const std::string path = "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims/one";
  EXPECT_EQ(scene.Send("DELETE", path).code, 200);
  Json claim = scene.Object("resourceclaims", "team/one");
  ASSERT_TRUE(claim.is_object());
  EXPECT_TRUE(claim.at("metadata").contains("deletionTimestamp"));
  claim["metadata"].erase("finalizers");
  EXPECT_EQ(scene.Send("PUT", path, claim).code, 200);
  EXPECT_TRUE(scene.Object("resourceclaims", "team/one").is_null());
}

}  // namespace THIS_FILE
}  // namespace tranche::sim
