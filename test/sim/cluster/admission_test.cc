// The webhook as the API server calls it: whom it is asked about, what its answers do, and that its
// silence stops nothing.
#include "test/sim/cluster/admission.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "test/sim/cluster/server_scene.h"

namespace tranche::sim {
namespace THIS_FILE {

class Webhook : public TrancheEndpoint {
 public:
  void Send(Actor, Request request, SimTime, std::function<void(Reply)> done) override {
    asked.push_back(request.target);
    if (silent) return;
    const Json review = Json::parse(request.body).at("request");
    users.push_back(review.at("userInfo").at("username"));
    Json word = {{"uid", review.at("uid")}, {"allowed", allowed}};
    if (!patch.empty()) word["patch"] = absl::Base64Escape(patch);
    if (!allowed) word["status"] = {{"message", "no"}};
    done({200, true, Json({{"response", word}}).dump(), {}});
  }

  std::vector<std::string> asked;
  std::vector<std::string> users;
  bool silent = false;
  bool allowed = true;
  std::string patch;
};

struct Scene : ServerScene {
  Scene() {
    api.admission().set_endpoint(&hook);
    Put("namespaces",
        {{"metadata", {{"name", "team"}, {"labels", {{"tranche.dev/schedule", "true"}}}}}});
    Put("namespaces",
        {{"metadata", {{"name", "hami"}, {"labels", {{"tranche.dev/schedule", "hami"}}}}}});
    Put("namespaces",
        {{"metadata", {{"name", "out"}, {"labels", {{"tranche.dev/admission", "ignore"}}}}}});
    Put("namespaces", {{"metadata", {{"name", "plain"}}}});
  }
  int Make(const std::string& ns, const Json& labels = Json::object()) {
    return Send("POST", "/api/v1/namespaces/" + ns + "/pods",
                {{"kind", "Pod"},
                 {"metadata", {{"name", "p"}, {"namespace", ns}, {"labels", labels}}},
                 {"spec", {{"containers", Json::array({{{"name", "main"}}})}}}})
        .code;
  }
  Webhook hook;
};

TEST(AdmissionTest, IsAskedWhereTheChartSaysSo) {
  struct Row {
    const char* ns;
    Json labels;
    std::vector<std::string> asked;
  };
  const Json none = Json::object();
  const Json ignore = {{"tranche.dev/admission", "ignore"}};
  for (const Row& row :
       std::vector<Row>{{"team", none, {"/admission/mutate", "/admission/validate"}},
                        {"hami", none, {"/admission/mutate/hami", "/admission/validate"}},
                        {"plain", none, {"/admission/validate"}},
                        {"out", none, {}},
                        // A pod may leave itself out of being changed, not of being checked.
                        {"team", ignore, {"/admission/validate"}}}) {
    Scene scene;
    EXPECT_EQ(scene.Make(row.ns, row.labels), 201) << row.ns;
    EXPECT_EQ(scene.hook.asked, row.asked) << row.ns;
  }
}

TEST(AdmissionTest, PatchesAndRefuses) {
  Scene scene;
  scene.hook.patch = R"([{"op":"add","path":"/spec/schedulerName","value":"gpu-scheduler"}])";
  EXPECT_EQ(scene.Make("team"), 201);
  EXPECT_EQ(scene.Object("pods", "team/p")["spec"]["schedulerName"], "gpu-scheduler");
  scene.hook.allowed = false;
  EXPECT_EQ(scene.Make("plain"), 403);
  EXPECT_EQ(scene.Make("hami"), 400);
}

TEST(AdmissionTest, ItsSilenceStopsNothing) {
  Scene scene;
  scene.hook.silent = true;
  scene.api.Do(scene.client, {"user",
                              "POST",
                              SplitPath("/api/v1/namespaces/plain/pods"),
                              "application/json",
                              {{"kind", "Pod"},
                               {"metadata", {{"name", "p"}, {"namespace", "plain"}}},
                               {"spec", {{"containers", Json::array()}}}}});
  scene.loop.RunUntil(std::chrono::seconds(4), 1'000);
  EXPECT_TRUE(scene.Object("pods", "plain/p").is_null());
  scene.loop.RunUntil(std::chrono::seconds(6), 1'000);
  EXPECT_FALSE(scene.Object("pods", "plain/p").is_null());
}

TEST(AdmissionTest, ChangedPodsAreAskedAboutWhereAnnotationsChange) {
  Scene scene;
  scene.Make("plain");
  scene.hook.asked.clear();
  const char* merge = "application/merge-patch+json";
  const std::string pod = "/api/v1/namespaces/plain/pods/p";
  EXPECT_EQ(scene.Send("PATCH", pod, {{"metadata", {{"labels", {{"a", "b"}}}}}}, merge).code, 200);
  EXPECT_TRUE(scene.hook.asked.empty());
  EXPECT_EQ(scene.Send("PATCH", pod, {{"metadata", {{"annotations", {{"a", "b"}}}}}}, merge).code,
            200);
  EXPECT_EQ(scene.hook.asked.size(), 1U);
  // By its user the webhook tells Tranche, agents and people apart.
  EXPECT_EQ(scene.hook.users.back(), "system:serviceaccount:tranche-system:tranche");
  scene.hook.allowed = false;
  EXPECT_EQ(scene.Send("PATCH", pod, {{"metadata", {{"annotations", {{"a", "c"}}}}}}, merge).code,
            403);
}

}  // namespace THIS_FILE
}  // namespace tranche::sim
