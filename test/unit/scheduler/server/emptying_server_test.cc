// A node that runs little is emptied on a whole server: from the advice to the node that takes pods
// again, and all that people see on the way.
#include <string>

#include "test/unit/scheduler/server/live_server.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

Json Declared(const std::string& kind, const std::string& name, const Json& spec) {
  return {{"apiVersion", "tranche.dev/v1alpha1"},
          {"kind", kind},
          {"metadata", {{"name", name}}},
          {"spec", spec}};
}

Json Team(const std::string& name, int nominal) {
  return Declared(
      "GPUQuota", name,
      {{"parent", "org"},
       {"namespaceSelector", {{"matchLabels", {{"kubernetes.io/metadata.name", name}}}}},
       {"lines",
        {{{"model", "h100"}, {"nominal", {{"gpus", nominal}}}, {"borrowLimit", {{"gpus", 8}}}}}}});
}

// Something makes it anew.
Json OwnedPod(const std::string& name, int gpus) {
  Json pod = MakePod(name, {{"nvidia.com/gpu", std::to_string(gpus)}});
  pod["metadata"]["ownerReferences"] = {{{"apiVersion", "apps/v1"},
                                         {"kind", "ReplicaSet"},
                                         {"name", "rs"},
                                         {"uid", "uid-rs"},
                                         {"controller", true}}};
  return pod;
}

// team-a has three GPUs of its own on gpu-1, and one that it borrowed on gpu-2.
class LittleWork : public LiveServer {
 protected:
  void SetUp() override {
    LiveServer::SetUp();
    Apply(Declared("GPUQuota", "org", Json::object()));
    Apply(Team("team-a", 3));
    Apply(Team("team-b", 5));
    Apply(MakeNode("gpu-1", 4));
    Apply(MakeNode("gpu-2", 4));
    Place("own", 3, "gpu-1");
    Advance(60);
    Place("more", 1, "gpu-2");
    Advance(2 * 3600);  // past every guard
  }
  void Place(const std::string& name, int gpus, const std::string& node) {
    const Json pod = OwnedPod(name, gpus);
    Apply(pod);
    ASSERT_EQ(Schedule(pod, {node}), node);
  }
  void Policy(const std::string& consolidate) {
    Apply(Declared("GPUPolicy", "fleet", {{"consolidate", consolidate}}));
    Advance(31);
  }
  void Advance(int64_t seconds) const { Post("/embedded/v1/clock", {{"advanceSeconds", seconds}}); }
  // Why the node takes no pods; null: it does.
  Json Closed(const std::string& node) const {
    const Json nodes = Get("/api/v1/nodes")["nodes"];
    for (const Json& one : nodes) {
      if (one["name"] == node) return one["closed"];
    }
    return "no such node";
  }
  // Notes of the events about it, in one text.
  std::string Told(const std::string& about, const std::string& reason) const {
    std::string notes;
    const Json events = Get("/embedded/v1/objects?kind=Event");
    for (const Json& event : events["items"]) {
      if (event["reason"] != reason || event["regarding"]["name"] != about) continue;
      notes += event["note"].get<std::string>() + "\n";
    }
    return notes;
  }
  void ExpectOnPage(const std::string& line) const {
    const std::string page = Call("GET", "/metrics").body;
    EXPECT_NE(page.find("\n" + line + "\n"), std::string::npos) << line;
  }
};

TEST_F(LittleWork, ItsNodeIsEmptiedKeptEmptyAndGivenBack) {
  const Json advised = Get("/api/v1/advice")["consolidate"];
  ASSERT_EQ(advised.size(), 1U) << advised;
  EXPECT_EQ(advised[0]["node"], "gpu-2");
  EXPECT_EQ(advised[0]["moves"][0]["to"], "gpu-1");

  Policy("On");
  EXPECT_EQ(Told("gpu-2", "Consolidation"),
            "it is emptied, as other nodes have room for its 1 pod: team-a/more to gpu-1; no new "
            "GPU pods come\n");
  ExpectOnPage("tranche_node_emptyings_pending 1");
  EXPECT_FALSE(Closed("gpu-2").is_null());
  Advance(0);
  EXPECT_NE(Told("more", "NodeEmptiedSoon").find("the pod will be evicted at"), std::string::npos);
  EXPECT_EQ(Get("/api/v1/reclaims")["reclaims"], Json::array());

  Advance(600);
  const Json reclaims = Get("/api/v1/reclaims")["reclaims"];
  ASSERT_EQ(reclaims.size(), 1U);
  EXPECT_EQ(reclaims[0]["rule"], "Consolidate");
  EXPECT_EQ(reclaims[0]["victims"][0]["pod"], "team-a/more");
  EXPECT_NE(Told("more", "NodeEmptied").find("Node gpu-2 is emptied"), std::string::npos);
  Advance(31);
  Place("again", 1, "gpu-1");
  Advance(31);
  EXPECT_NE(Told("gpu-2", "Consolidation").find("it is empty, and kept so for 20 minutes"),
            std::string::npos);
  EXPECT_FALSE(Closed("gpu-2").is_null());

  Advance(1200);
  ExpectOnPage("tranche_node_emptyings_pending 0");
  ExpectOnPage(R"(tranche_node_emptyings_total{outcome="kept"} 1)");
  EXPECT_TRUE(Closed("gpu-2").is_null());
  Place("late", 1, "gpu-2");
}

TEST_F(LittleWork, ItStaysWhereThePolicySaysNothing) {
  Policy("Off");
  Advance(3600);
  Advance(3600);
  EXPECT_EQ(Get("/api/v1/reclaims")["reclaims"], Json::array());
  EXPECT_EQ(Told("gpu-2", "Consolidation"), "");
}

TEST_F(LittleWork, WhoWaitsForTheNodeEndsIt) {
  Policy("On");
  const Json large = OwnedPod("large", 3);
  Apply(large);
  EXPECT_EQ(Schedule(large, {"gpu-1", "gpu-2"}), "");
  Advance(30);
  ExpectOnPage("tranche_node_emptyings_pending 1");
  Advance(31);
  EXPECT_NE(Told("gpu-2", "Consolidation").find("team-a/large waits for its GPUs"),
            std::string::npos);
  EXPECT_EQ(Schedule(large, {"gpu-1", "gpu-2"}), "gpu-2");
  Advance(3000);
  EXPECT_EQ(Get("/api/v1/reclaims")["reclaims"], Json::array());
}

}  // namespace THIS_FILE
}  // namespace tranche
