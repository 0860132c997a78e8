// What /api/openapi.json says of the API is what a running server answers.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "test/fakes/json_schema.h"
#include "test/fakes/places.h"
#include "test/unit/scheduler/server/live_server.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

using testing::ElementsAre;

// The cluster of the quickstart, with its pods.
class OpenApi : public LiveServer {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("openapi-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    const std::string quickstart = fakes::SourceFolder() + "/scheduler/quickstart/";
    ServeConfig config;
    config.objects = {quickstart + "fleet.yaml", quickstart + "teams.yaml"};
    config.ledger = folder_ / "ledger.db";
    Launch(config);
    const Json nodes = Get("/api/v1/nodes")["nodes"];
    for (const Json& node : nodes) nodes_.push_back(node["name"]);
    std::ifstream in(quickstart + "pods.json");
    const Json workloads = Json::parse(in).at("workloads");
    for (const Json& workload : workloads) {
      for (int i = 0; i < workload["count"]; ++i) Run(workload, i);
    }
    description_ = Get("/api/openapi.json");
  }
  void TearDown() override {
    LiveServer::TearDown();
    std::filesystem::remove_all(folder_);
  }

  void Run(const Json& workload, int number) {
    Json pod = MakePod(workload["name"].get<std::string>() + "-" + std::to_string(number), {});
    pod["metadata"]["namespace"] = workload["team"];
    pod["metadata"]["annotations"] = workload.value("annotations", Json::object());
    Json& limits = pod["spec"]["containers"][0]["resources"]["limits"] = Json::object();
    const Json asked = workload.value("limits", Json::object());
    for (const auto& [key, value] : asked.items()) limits[key] = value.dump();
    if (workload.contains("priorityClass")) {
      pod["spec"]["priorityClassName"] = workload["priorityClass"];
    }
    Apply(pod);
    Json refusal;
    if (Schedule(pod, nodes_, &refusal).empty()) waiting_ = pod;
  }

  // What does not fit of an answer.
  std::vector<std::string> Faults(const std::string& path, const std::string& method,
                                  const Json& answer) {
    const Json& schema = description_.at("paths")
                             .at(path)
                             .at(method)
                             .at("responses")
                             .at("200")
                             .at("content")
                             .at("application/json")
                             .at("schema");
    return test::SchemaCheck(description_).Faults(schema, answer);
  }

  std::filesystem::path folder_;
  std::vector<std::string> nodes_;
  Json waiting_;  // the last pod that found no node
  Json description_;
};

TEST_F(OpenApi, DescribesEveryAnswer) {
  Post("/embedded/v1/clock", {{"advanceSeconds", 120}});
  ASSERT_TRUE(waiting_.is_object()) << "the quickstart has pods that wait";
  const std::string waits = waiting_["metadata"]["namespace"].get<std::string>() + "/" +
                            waiting_["metadata"]["name"].get<std::string>();
  const Json bound = Get("/api/v1/pods")["pods"][0];
  const std::string runs =
      bound["namespace"].get<std::string>() + "/" + bound["name"].get<std::string>();
  const std::string budget = Get("/api/v1/budgets")["budgets"][0]["name"];
  const std::string team = bound["leaf"];
  const std::string explain = "/api/v1/explain/{namespace}/{pod}";
  const std::pair<std::string, std::string> table[] = {
      {"/api/v1/nodes", "/api/v1/nodes"},
      {"/api/v1/pods", "/api/v1/pods"},
      {"/api/v1/gangs", "/api/v1/gangs"},
      {"/api/v1/events", "/api/v1/events?limit=20"},
      {"/api/v1/reclaims", "/api/v1/reclaims"},
      {"/api/v1/quotas", "/api/v1/quotas"},
      {"/api/v1/budgets", "/api/v1/budgets"},
      {"/api/v1/burndown/{budget}", "/api/v1/burndown/" + budget},
      {"/api/v1/ledger", "/api/v1/ledger"},
      {"/api/v1/ledger/series", "/api/v1/ledger/series"},
      {"/api/v1/ledger/bill", "/api/v1/ledger/bill?by=model"},
      {"/api/v1/ledger/bill", "/api/v1/ledger/bill?by=owner"},
      {"/api/v1/ledger/bill", "/api/v1/ledger/bill?by=label:example.com/project"},
      {"/api/v1/ledger/statement", "/api/v1/ledger/statement?by=label:project"},
      {"/api/v1/ledger/statement", "/api/v1/ledger/statement?by=pool"},
      {"/api/v1/opencost/allocation", "/api/v1/opencost/allocation?window=7d&includeIdle=true"},
      {"/api/v1/opencost/allocation/compute",
       "/api/v1/opencost/allocation/compute?window=2d&step=1d&aggregate=pod"},
      {"/api/v1/opencost/allocation", "/api/v1/opencost/allocation?window=7d&aggregate=controller"},
      {"/api/v1/ledger/held", "/api/v1/ledger/held"},
      {explain, "/api/v1/explain/" + waits},
      {explain, "/api/v1/explain/" + runs},
      {"/api/v1/forecast", "/api/v1/forecast"},
      {"/api/v1/forecast/{namespace}/{name}", "/api/v1/forecast/" + waits},
      {"/api/v1/forecast/{namespace}/{name}", "/api/v1/forecast/" + runs},
      {"/api/v1/advice", "/api/v1/advice"},
      {"/api/v1/audit", "/api/v1/audit"},
      {"/version", "/version"},
      {"/api/v1/nodes/{name}", "/api/v1/nodes/" + nodes_.front()},
      {"/api/v1/pods/{namespace}/{name}", "/api/v1/pods/" + runs},
      {"/api/v1/pods", "/api/v1/pods?state=placed&sort=-gpus&limit=3"},
      {"/api/v1/teams/{name}", "/api/v1/teams/" + team},
  };
  for (const auto& [path, target] : table) {
    EXPECT_THAT(Faults(path, "get", Get(target)), ElementsAre()) << target;
  }
  EXPECT_FALSE(Get("/api/v1/reclaims")["reclaims"].empty()) << "one team takes GPUs back there";
  Json fits = MakePod("fits", {{"nvidia.com/gpu", "1"}}),
       never = MakePod("never", {{"nvidia.com/gpu", "64"}});
  const Json question = {{"pods", {fits, never, waiting_}}};
  EXPECT_THAT(Faults("/api/v1/whatif", "post", Post("/api/v1/whatif", question)), ElementsAre());
  const Json edits = {{"delete", {{{"kind", "Node"}, {"name", nodes_.front()}}}}};
  EXPECT_THAT(Faults("/api/v1/plan", "post", Post("/api/v1/plan", edits)), ElementsAre());
}

TEST_F(OpenApi, DescribesRefusals) {
  const Json& schema = description_.at("components").at("schemas").at("Error");
  for (const char* target : {"/api/v1/explain/team-a/nobody", "/api/v1/burndown/none",
                             "/api/v1/ledger?from=never", "/api/v1/nothing"}) {
    const kube::SingleAnswer reply = Call("GET", target);
    EXPECT_GE(reply.status, 400) << target;
    EXPECT_THAT(test::SchemaCheck(description_).Faults(schema, Json::parse(reply.body)),
                ElementsAre())
        << target;
  }
}

// The check itself is no yes to everything.
TEST_F(OpenApi, ACheckFindsWhatDoesNotFit) {
  const Json good = Get("/api/v1/nodes");
  const std::pair<const char*, std::string> table[] = {
      {R"({"op":"replace","path":"/nodes/0/name","value":7})", "/nodes/0/name: expected"},
      {R"({"op":"remove","path":"/nodes/0/gpus/0/freeMilli"})", "the member \"freeMilli\""},
      {R"({"op":"add","path":"/nodes/0/colour","value":"red"})",
       "description of the member \"colour\""},
      {R"({"op":"replace","path":"/nodes/0/knowledge","value":"guessed"})", "expected one of"},
      {R"({"op":"replace","path":"/nodes/0/gpus/0/index","value":"0"})", "/index: expected"},
  };
  for (const auto& [change, named] : table) {
    const std::vector<std::string> faults =
        Faults("/api/v1/nodes", "get", good.patch(Json::array({Json::parse(change)})));
    ASSERT_EQ(faults.size(), 1U) << change;
    EXPECT_THAT(faults[0], testing::HasSubstr(named));
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
