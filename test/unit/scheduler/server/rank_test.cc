// Where a waiting pod stands: GET /api/v1/rank and `tranche explain --rank`.
#include <sstream>
#include <string>

#include "scheduler/cli/cli.h"
#include "test/unit/scheduler/server/live_server.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

// Three teams of a tree with four GPUs, of which all are in use: blue borrows two, red none.
class RankServer : public LiveServer {
 protected:
  void SetUp() override {
    LiveServer::SetUp();
    Apply({{"apiVersion", "tranche.dev/v1alpha1"},
           {"kind", "GPUQuota"},
           {"metadata", {{"name", "org"}}},
           {"spec", Json::object()}});
    const std::pair<const char*, int> teams[] = {{"blue", 1}, {"red", 1}, {"green", 2}};
    for (const auto& [team, nominal] : teams) {
      Apply({{"apiVersion", "v1"},
             {"kind", "Namespace"},
             {"metadata", {{"name", team}, {"labels", {{"team", team}}}}}});
      Apply({{"apiVersion", "tranche.dev/v1alpha1"},
             {"kind", "GPUQuota"},
             {"metadata", {{"name", team}}},
             {"spec",
              {{"parent", "org"},
               {"namespaceSelector", {{"matchLabels", {{"team", team}}}}},
               {"lines",
                {{{"model", "h100"},
                  {"nominal", {{"gpus", nominal}}},
                  {"borrowLimit", {{"gpus", 4}}}}}}}}});
    }
    Apply(MakeNode("gpu-1", 4));
    for (const char* name : {"one", "two", "three"}) Ask("blue", name, "gpu-1");
    Ask("red", "one", "gpu-1");
  }

  void Ask(const std::string& ns, const std::string& name, const std::string& node) {
    Json pod = MakePod(name, {{"nvidia.com/gpu", "1"}});
    pod["metadata"]["namespace"] = ns;
    pod["metadata"]["uid"] = ns + "-" + name;
    Apply(pod);
    EXPECT_EQ(Schedule(pod, {"gpu-1"}), node) << ns << "/" << name;
    Post("/embedded/v1/clock", {{"advanceSeconds", 10}});
  }
  Json LineOf(const std::string& pod, const std::string& what) const {
    const Json rank = Get("/api/v1/rank/" + pod);
    for (const Json& line : rank["lines"]) {
      if (line["for"] == what) return line;
    }
    ADD_FAILURE() << pod << " waits for no " << what;
    return {};
  }
  std::string Print(const std::string& pod, int code = 0) const {
    std::ostringstream out, err;
    EXPECT_EQ(RunCommandLine({"explain", pod, "--rank", "--server", url()}, out, err), code)
        << err.str();
    return out.str();
  }
};

TEST_F(RankServer, TheTermThatDecidesIsNamed) {
  Ask("blue", "wants", "");
  Ask("blue", "wants-too", "");
  Ask("red", "wants", "");
  const Json red = LineOf("red/wants", "quota");
  EXPECT_EQ(red["position"], 1) << "it came last, and its team borrows least";
  EXPECT_EQ(red["waiting"], 3);
  EXPECT_TRUE(red["before"].is_null());
  EXPECT_TRUE(red["beforeBy"].is_null());
  EXPECT_EQ(red["after"]["name"], "wants");
  EXPECT_EQ(red["after"]["namespace"], "blue");
  EXPECT_EQ(red["afterBy"], "share");
  const Json blue = LineOf("blue/wants", "quota");
  EXPECT_EQ(blue["position"], 2);
  EXPECT_EQ(blue["before"]["leaf"], "red");
  EXPECT_EQ(blue["beforeBy"], "share");
  EXPECT_EQ(blue["after"]["name"], "wants-too");
  EXPECT_EQ(blue["afterBy"], "waitsSince");
  const Json last = LineOf("blue/wants-too", "quota");
  EXPECT_EQ(last["position"], 3);
  EXPECT_TRUE(last["after"].is_null());

  const Json rank = Get("/api/v1/rank/blue/wants");
  EXPECT_EQ(rank["waits"], true);
  const Json share = rank["pod"]["share"];
  EXPECT_EQ(share["borrowedGpus"], 2);
  EXPECT_EQ(share["weightOfAll"].get<int>(), 2 * share["weight"].get<int>());
  EXPECT_EQ(rank["team"]["name"], "blue");
  EXPECT_EQ(rank["team"]["pending"]["workloads"], 2);
  EXPECT_EQ(Get("/api/v1/rank/red/wants")["pod"]["share"]["borrowedGpus"], 0);

  const std::string text = Print("blue/wants");
  for (const char* part : {"Position 2 of 3 that wait for quota of this tree", "BEFORE: red/wants",
                           "AFTER: blue/wants-too", "borrows", "2 GPUs", "fair share"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

TEST_F(RankServer, WhoWaitsForNobodyStandsNowhere) {
  const Json running = Get("/api/v1/rank/blue/one");
  EXPECT_EQ(running["waits"], false);
  EXPECT_TRUE(running["lines"].empty());
  EXPECT_NE(Print("blue/one").find("the pod does not wait"), std::string::npos);
  EXPECT_EQ(Call("GET", "/api/v1/rank/blue/nobody").status, 404);
  EXPECT_EQ(Call("GET", "/api/v1/rank/blue").status, 404);
  Print("blue/nobody", 1);
}

}  // namespace THIS_FILE
}  // namespace tranche
