// Forecasts and plans of a running server.
#include <gmock/gmock.h>

#include "test/unit/scheduler/server/live_server.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

using testing::HasSubstr;

class ForesightApi : public LiveServer {
 protected:
  static Json Team(int gpus) {
    return {{"apiVersion", "tranche.dev/v1alpha1"},
            {"kind", "GPUQuota"},
            {"metadata", {{"name", "team-a"}}},
            {"spec",
             {{"namespaceSelector", {{"matchLabels", {{"kubernetes.io/metadata.name", "team-a"}}}}},
              {"lines", Json::array({{{"model", "h100"}, {"nominal", {{"gpus", gpus}}}}})}}}};
  }
  static Json Pod(const std::string& name, const std::string& runtime = "") {
    std::map<std::string, std::string> annotations;
    if (!runtime.empty()) annotations["tranche.dev/expected-runtime"] = runtime;
    return MakePod(name, {{"nvidia.com/gpu", "8"}}, annotations);
  }
  Json Forecast(const std::string& name) { return Get("/api/v1/forecast/team-a/" + name); }
  void Advance(int seconds) { Post("/embedded/v1/clock", {{"advanceSeconds", seconds}}); }
};

TEST_F(ForesightApi, APodStartsWhenWhatRunsHasDeclaredToEnd) {
  Apply(MakeNode("n1", 8));
  const Json runs = Pod("runs", "2h");
  Apply(runs);
  ASSERT_EQ(Schedule(runs, {"n1"}), "n1");
  Advance(1'800);
  const Json waits = Pod("waits", "1h");
  Apply(waits);
  EXPECT_EQ(Schedule(waits, {"n1"}), "");
  const Json forecast = Forecast("waits");
  const std::string at = forecast["p50"];
  EXPECT_EQ(forecast["p10"], at);
  EXPECT_EQ(forecast["p90"], at);
  EXPECT_EQ(forecast["earliest"], at);
  EXPECT_THAT(forecast["because"].get<std::string>(), HasSubstr("declare"));
  // The answer does not move with the time that passes.
  Advance(600);
  EXPECT_EQ(Forecast("waits")["p50"], at);
  EXPECT_THAT(Get("/api/v1/explain/team-a/waits")["forecast"]["p50"], at);
  EXPECT_THAT(Get("/api/v1/pods/team-a/waits")["forecast"]["p50"], at);
  EXPECT_EQ(Get("/api/v1/forecast")["forecasts"][0]["name"], "waits");
  const Json placed = Forecast("runs");
  EXPECT_TRUE(placed["p50"].is_null());
  EXPECT_EQ(placed["because"], "it has its place on n1");
  EXPECT_THAT(Call("GET", "/metrics").body, HasSubstr("tranche_expected_start_seconds"));
}

TEST_F(ForesightApi, UnknownPodsAreNotFound) {
  EXPECT_EQ(Call("GET", "/api/v1/forecast/team-a/nobody").status, 404);
  EXPECT_EQ(Call("GET", "/api/v1/forecast/team-a").status, 404);
  EXPECT_EQ(Call("GET", "/api/v1/forecast/team-a/a/b").status, 404);
}

TEST_F(ForesightApi, APlanTellsWhatAnEditWouldDoAndChangesNothing) {
  Apply(MakeNode("n1", 8));
  Apply(MakeNode("n2", 8));
  Apply(Team(8));
  const Json runs = Pod("runs"), waits = Pod("waits");
  Apply(runs);
  ASSERT_NE(Schedule(runs, {"n1", "n2"}), "");
  Apply(waits);
  EXPECT_EQ(Schedule(waits, {"n1", "n2"}), "");
  const Json none = Post("/api/v1/plan", {{"objects", Json::array()}});
  EXPECT_EQ(none["waits"], Json({"team-a/waits"}));
  EXPECT_EQ(none["starts"], Json::array());
  const Json more = Post("/api/v1/plan", {{"objects", {Team(16)}}});
  EXPECT_EQ(more["starts"], Json({"team-a/waits"}));
  EXPECT_EQ(more["waits"], Json::array());
  EXPECT_EQ(Get("/api/v1/pods/team-a/waits")["state"], "pending");
  const std::string node = Get("/api/v1/pods/team-a/runs")["node"];
  const Json less = Post("/api/v1/plan", {{"delete", {{{"kind", "Node"}, {"name", node}}}}});
  EXPECT_EQ(less["evicted"], Json({"team-a/runs"}));
}

TEST_F(ForesightApi, EditsThatAreWrongAreRefused) {
  const std::string unknown = R"({"delete":[{"kind":"Node","name":"n9"}]})";
  EXPECT_EQ(Call("POST", "/api/v1/plan", unknown).status, 400);
  EXPECT_THAT(Call("POST", "/api/v1/plan", unknown).body, HasSubstr("n9"));
  EXPECT_EQ(Call("POST", "/api/v1/plan", "{").status, 400);
  EXPECT_EQ(Call("GET", "/api/v1/plan").status, 405);
}

class EditReviewsApi : public ForesightApi {
 protected:
  // A team of 16 GPUs holds them all, with pods of 8.
  void SetUp() override {
    ForesightApi::SetUp();
    Apply(MakeNode("n1", 8));
    Apply(MakeNode("n2", 8));
    Apply(Shrinking(16));
    for (const char* name : {"a", "b"}) {
      const Json pod = Pod(name);
      Apply(pod);
      EXPECT_NE(Schedule(pod, {"n1", "n2"}), "");
    }
  }
  // The team, which has to give back what it holds beyond so many.
  static Json Shrinking(int gpus, const std::string& accepts = "") {
    Json team = Team(gpus);
    team["spec"]["reclaim"]["onShrink"] = "Reclaim";
    if (!accepts.empty()) {
      team["metadata"]["annotations"]["tranche.dev/accept-evictions"] = accepts;
    }
    return team;
  }
  void DeclarePolicy(const std::string& evicting_edits) {
    Apply({{"apiVersion", "tranche.dev/v1alpha1"},
           {"kind", "GPUPolicy"},
           {"metadata", {{"name", "all"}}},
           {"spec", {{"evictingEdits", evicting_edits}}}});
  }
  // "allowed", "allowed: WARNING", "refused: MESSAGE"
  std::string Review(const std::string& operation, const Json& object, const Json& before = {},
                     const std::string& user = "admin") {
    Json request = {{"uid", "u"}, {"operation", operation}, {"object", object}};
    request["userInfo"] = {{"username", user}};
    request["kind"] = {{"group", "tranche.dev"}, {"version", "v1alpha1"}, {"kind", "GPUQuota"}};
    request["oldObject"] = before;
    const Json answer = Post(
        "/admission/edits",
        {{"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"request", request}});
    const Json& response = answer["response"];
    EXPECT_EQ(response["uid"], "u");
    if (!response["allowed"].get<bool>()) {
      return "refused: " + response["status"]["message"].get<std::string>();
    }
    std::string text = "allowed";
    for (const Json& warning : response.value("warnings", Json::array())) {
      text += ": " + warning.get<std::string>();
    }
    return text;
  }
};

TEST_F(EditReviewsApi, WhoeverEditsIsToldHowManyPodsLeave) {
  const Json now = Shrinking(16);
  EXPECT_EQ(Review("UPDATE", Shrinking(8), now),
            "allowed: 1 pod would be evicted at once; tranche plan -f says which");
  EXPECT_EQ(Review("UPDATE", Shrinking(0), now),
            "allowed: 2 pods would be evicted at once; tranche plan -f says which");
  EXPECT_EQ(Review("UPDATE", Shrinking(24), now), "allowed");
  EXPECT_EQ(Review("UPDATE", Shrinking(8), Shrinking(8)), "allowed") << "nothing changes";
  EXPECT_EQ(Review("DELETE", Json(), now), "allowed") << "nobody is left to give back to";
  EXPECT_EQ(Get("/api/v1/reclaims")["reclaims"], Json::array()) << "nothing was done";
}

TEST_F(EditReviewsApi, APolicyHasItRefusedUntilItIsAgreedTo) {
  DeclarePolicy("Refuse");
  const Json now = Shrinking(16);
  EXPECT_EQ(Review("UPDATE", Shrinking(0), now),
            "refused: expected an edit that evicts nobody, or the annotation "
            "tranche.dev/accept-evictions: \"2\" on the object (GPUPolicy evictingEdits), found 2 "
            "pods that would be evicted at once; tranche plan -f says which");
  EXPECT_THAT(Review("UPDATE", Shrinking(0, "1"), now), HasSubstr("refused: "));
  EXPECT_EQ(Review("UPDATE", Shrinking(0, "2"), now),
            "allowed: 2 pods would be evicted at once; tranche plan -f says which");
  EXPECT_EQ(Review("UPDATE", Shrinking(24), now), "allowed");
  EXPECT_THAT(Call("GET", "/metrics").body,
              HasSubstr(R"(outcome="refused",reason="Evicts",webhook="edits"} 2)"));
}

TEST_F(EditReviewsApi, WhoEditedIsAmongWhatHappened) {
  const auto edits = [this] {
    std::string texts;
    const Json answer = Get("/api/v1/events?kind=Edited");
    for (const Json& event : answer["events"]) {
      texts += event["leaf"].dump() + " " + event["text"].get<std::string>() + "\n";
    }
    return texts;
  };
  const std::string before = edits();
  const std::string name = Shrinking(16)["metadata"]["name"];
  Review("UPDATE", Shrinking(24), Shrinking(16), "alice");
  EXPECT_EQ(edits(), before) << "it has not come true yet";
  Apply(Shrinking(24));
  const std::string after = edits();
  ASSERT_TRUE(after.starts_with(before)) << after;
  EXPECT_THAT(after, HasSubstr("16 -> 24, by alice as its review says"));
  EXPECT_THAT(after.substr(before.size()),
              testing::StartsWith("\"" + name + "\" GPUQuota " + name));
  Post("/embedded/v1/delete", {{"kind", "GPUQuota"}, {"name", name}});
  EXPECT_THAT(edits(), testing::EndsWith("GPUQuota " + name + ": deleted\n"));
}

TEST_F(EditReviewsApi, WhatCannotBeJudgedIsAllowedAndSaidSo) {
  DeclarePolicy("Refuse");
  Json orphan = Shrinking(0);
  orphan["spec"]["parent"] = "nobody";
  EXPECT_THAT(Review("CREATE", orphan), HasSubstr("allowed: Tranche could not tell what this "
                                                  "evicts: "));
  EXPECT_EQ(Call("POST", "/admission/edits", "{}").status, 400);
  EXPECT_EQ(Call("POST", "/admission/edits", "no").status, 400);
}

}  // namespace THIS_FILE
}  // namespace tranche
