// A team takes its GPUs back on a whole server: from the refusal to the Binding, and all that
// people see on the way.
#include <filesystem>
#include <fstream>
#include <string>

#include "test/unit/scheduler/server/live_server.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

Json Quota(const std::string& name, const Json& spec) {
  return {{"apiVersion", "tranche.dev/v1alpha1"},
          {"kind", "GPUQuota"},
          {"metadata", {{"name", name}}},
          {"spec", spec}};
}

Json TeamQuota(const std::string& name, int nominal) {
  return Quota(
      name,
      {{"parent", "org"},
       {"namespaceSelector", {{"matchLabels", {{"kubernetes.io/metadata.name", name}}}}},
       {"lines",
        {{{"model", "h100"}, {"nominal", {{"gpus", nominal}}}, {"borrowLimit", {{"gpus", 8}}}}}}});
}

Json PodOf(const std::string& team, const std::string& name, int gpus) {
  Json pod = MakePod(name, {{"nvidia.com/gpu", std::to_string(gpus)}});
  pod["metadata"]["namespace"] = team;
  return pod;
}

// team-a owns nothing and has borrowed both GPUs of the only node from team-b.
class Borrowed : public LiveServer {
 protected:
  void SetUp() override {
    LiveServer::SetUp();
    Apply(Quota("org", Json::object()));
    Apply(TeamQuota("team-a", 0));
    Apply(TeamQuota("team-b", 2));
    Apply(MakeNode("gpu-1", 2));
    for (const char* name : {"one", "two"}) {
      const Json pod = PodOf("team-a", name, 1);
      Apply(pod);
      ASSERT_EQ(Schedule(pod, {"gpu-1"}), "gpu-1");
    }
    Advance(2 * 3600);  // past every guard
  }
  void Advance(int64_t seconds) const { Post("/embedded/v1/clock", {{"advanceSeconds", seconds}}); }
  Json TheReclaim() const {
    const Json reclaims = Get("/api/v1/reclaims")["reclaims"];
    EXPECT_EQ(reclaims.size(), 1U) << reclaims;
    return reclaims.empty() ? Json() : reclaims[0];
  }
  Json PlanOf(const std::string& pod) const { return Get("/api/v1/explain/" + pod)["plan"]; }
  bool HasEvent(const std::string& reason, const std::string& about) const {
    const Json events = Get("/embedded/v1/objects?kind=Event");
    for (const Json& event : events["items"]) {
      if (event["reason"] == reason && event["regarding"]["name"] == about) return true;
    }
    return false;
  }
};

TEST_F(Borrowed, TeamGetsItsOwnBack) {
  const Json owner = PodOf("team-b", "serve", 1);
  const Json asked = Post("/api/v1/whatif", {{"pods", {owner}}})["pods"][0];
  EXPECT_EQ(asked["fits"], true) << "once its victim is gone";
  EXPECT_EQ(asked["rule"], "R1");
  ASSERT_EQ(asked["victims"].size(), 1U);
  EXPECT_EQ(Get("/api/v1/reclaims")["reclaims"], Json::array()) << "asking changes nothing";

  Apply(owner);
  EXPECT_EQ(Schedule(owner, {"gpu-1"}), "");
  Advance(0);
  const Json begun = TheReclaim();
  EXPECT_EQ(begun["for"], Json({{"namespace", "team-b"}, {"name", "serve"}}));
  EXPECT_EQ(begun["rule"], "R1");
  EXPECT_EQ(begun["phase"], "Evicting");
  ASSERT_EQ(begun["victims"].size(), 1U);
  EXPECT_EQ(begun["victims"][0]["pod"], asked["victims"][0]) << "as what-if had said";
  EXPECT_EQ(PlanOf("team-b/serve")["progress"], "0 of 1 gone");
  const std::string victim = begun["victims"][0]["pod"];
  EXPECT_EQ(PlanOf(victim)["role"], "victim");
  EXPECT_TRUE(HasEvent("Preempting", "serve"));
  EXPECT_TRUE(HasEvent("PreemptedByTranche", victim.substr(victim.find('/') + 1)));
  const Json object =
      Get("/embedded/v1/objects?kind=GPUReclaim&name=" + begun["name"].get<std::string>());
  EXPECT_EQ(object["status"]["phase"], "Evicting");
  EXPECT_EQ(Get("/embedded/v1/objects?kind=Pod&namespace=team-b&name=serve")["status"]
                                                                            ["nominatedNodeName"],
            "gpu-1");

  Advance(31);
  EXPECT_EQ(TheReclaim()["phase"], "Reserved");
  const Json thief = PodOf("team-a", "thief", 1);
  Apply(thief);
  EXPECT_EQ(Schedule(thief, {"gpu-1"}), "") << "the room is reserved";
  EXPECT_EQ(Schedule(owner, {"gpu-1"}), "gpu-1");
  EXPECT_EQ(TheReclaim()["phase"], "Done");
  const std::string page = Call("GET", "/metrics").body;
  for (const char* line : {
           R"(tranche_reclaim_total{from="team-a",rule="R1",to="team-b"} 1)",
           R"(tranche_evicted_pods_total{leaf="team-a",rule="R1"} 1)",
           R"(tranche_plan_search_total{quality="optimal"} 1)",
           R"(tranche_plan_duration_seconds_count{result="plan"} 1)",
           "tranche_reclaims_running 0",
       }) {
    EXPECT_NE(page.find(std::string("\n") + line + "\n"), std::string::npos) << line;
  }
}

TEST_F(Borrowed, OwnerThatIsDeletedMidwayGivesEverythingBack) {
  const Json owner = PodOf("team-b", "serve", 2);
  Apply(owner);
  EXPECT_EQ(Schedule(owner, {"gpu-1"}), "");
  Advance(0);
  EXPECT_EQ(TheReclaim()["victims"].size(), 2U);
  Post("/embedded/v1/delete",
       {{"kind", "Pod"}, {"metadata", {{"name", "serve"}, {"namespace", "team-b"}}}});
  Advance(31);
  EXPECT_EQ(TheReclaim()["phase"], "Aborted");
  EXPECT_EQ(TheReclaim()["reason"], "PreemptorGone");
  const Json other = PodOf("team-a", "other", 1);
  Apply(other);
  EXPECT_EQ(Schedule(other, {"gpu-1"}), "gpu-1");
}

// The objects of one server are the file of the next.
TEST_F(Borrowed, NextLifeGoesOnWithWhatWasBegun) {
  const Json owner = PodOf("team-b", "serve", 2);
  Apply(owner);
  EXPECT_EQ(Schedule(owner, {"gpu-1"}), "");
  Advance(0);
  ASSERT_EQ(TheReclaim()["phase"], "Evicting");
  Json all = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", Json::array()}};
  for (const char* kind : {"GPUQuota", "Node", "Pod", "GPUReclaim"}) {
    const Json some = Get(std::string("/embedded/v1/objects?kind=") + kind);
    for (const Json& object : some["items"]) all["items"].push_back(object);
  }
  const std::string path = testing::TempDir() + "tranche-next-life.json";
  std::ofstream(path) << all;
  const std::string name = TheReclaim()["name"];
  ServeConfig config;
  config.objects = {path};
  Launch(config);
  EXPECT_EQ(TheReclaim()["name"], name);
  EXPECT_EQ(TheReclaim()["phase"], "Evicting");
  EXPECT_EQ(Schedule(PodOf("team-a", "thief", 1), {"gpu-1"}), "");
  Advance(2 * 3600 + 31);  // the clock starts anew
  EXPECT_EQ(TheReclaim()["progress"], "2 of 2 gone");
  std::filesystem::remove(path);
}

TEST_F(Borrowed, ProtectedPodsStayAndExplainSaysSo) {
  Json budget = {{"apiVersion", "policy/v1"}, {"kind", "PodDisruptionBudget"}};
  budget["metadata"] = {{"name", "keep"}, {"namespace", "team-a"}};
  budget["spec"]["selector"] = Json::object();  // every pod of the namespace
  budget["spec"]["maxUnavailable"] = 0;
  budget["status"] = {{"disruptionsAllowed", 0}};
  Apply(budget);
  const Json owner = PodOf("team-b", "serve", 1);
  Apply(owner);
  EXPECT_EQ(Schedule(owner, {"gpu-1"}), "");
  Advance(0);
  EXPECT_EQ(Get("/api/v1/reclaims")["reclaims"], Json::array());
  EXPECT_EQ(PlanOf("team-b/serve")["blocked"]["code"], "PDBBlocked");
}

TEST_F(LiveServer, PreemptionNamesNoNodeWithoutVictims) {
  const Json none = {{"Pods", Json::array()}, {"NumPDBViolations", 0}};
  const Json some = {{"Pods", {{{"UID", "u-1"}}}}, {"NumPDBViolations", 0}};
  const Json answer =
      Post("/scheduler/preempt", {{"Pod", MakePod("web", {})},
                                  {"NodeNameToVictims", nullptr},
                                  {"NodeNameToMetaVictims", {{"gpu-1", none}, {"gpu-2", some}}}});
  EXPECT_EQ(answer["NodeNameToMetaVictims"], Json({{"gpu-2", some}}));
}

}  // namespace THIS_FILE
}  // namespace tranche
