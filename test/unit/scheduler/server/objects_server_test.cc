// One pod, node or team by its name, and lists that are narrowed, as a running server answers them.
#include <string>
#include <vector>

#include "test/unit/scheduler/http/raw_client.h"
#include "test/unit/scheduler/server/live_server.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

class ObjectsServerTest : public LiveServer {
 protected:
  void SetUp() override {
    LiveServer::SetUp();
    Apply({{"apiVersion", "v1"},
           {"kind", "Namespace"},
           {"metadata", {{"name", "team-a"}, {"labels", {{"team", "a"}}}}}});
    Json quota = {{"apiVersion", "tranche.dev/v1alpha1"},
                  {"kind", "GPUQuota"},
                  {"metadata", {{"name", "alpha"}}}};
    quota["spec"]["namespaceSelector"]["matchLabels"]["team"] = "a";
    quota["spec"]["lines"] = Json::array({{{"model", "h100"}, {"nominal", {{"gpus", 4}}}}});
    Apply(quota);
    for (const char* name : {"gpu-1", "gpu-10", "gpu-2", "gpu.3"}) Apply(MakeNode(name, 2));
    runs = MakePod("runs", {{"nvidia.com/gpu", "1"}});
    Apply(runs);
    node = Schedule(runs, {"gpu-1", "gpu-10", "gpu-2", "gpu.3"});
    waits = MakePod("waits", {{"nvidia.com/gpu", "8"}});
    Apply(waits);
    Post("/scheduler/filter", {{"Pod", waits}, {"Nodes", nullptr}, {"NodeNames", {"gpu-1"}}});
  }

  Json runs;
  Json waits;
  std::string node;
};

TEST_F(ObjectsServerTest, APodAndANodeAreTheEntriesOfTheirLists) {
  const Json pods = Get("/api/v1/pods")["pods"];
  ASSERT_EQ(pods.size(), 2U);
  for (const Json& pod : pods) {
    EXPECT_EQ(Get("/api/v1/pods/team-a/" + pod["name"].get<std::string>()), pod);
  }
  const Json nodes = Get("/api/v1/nodes")["nodes"];
  ASSERT_EQ(nodes.size(), 4U);
  for (Json one : nodes) {
    // Lists have no readings, which are new every minute.
    for (Json& gpu : one["gpus"]) gpu["reading"] = nullptr;
    EXPECT_EQ(Get("/api/v1/nodes/" + one["name"].get<std::string>()), one);
  }
}

TEST_F(ObjectsServerTest, GangsAreFoundByNameAlsoWhereTheirNameHasASlash) {
  for (const char* const name : {"one", "two"}) {
    Json member = MakePod(name, {{"nvidia.com/gpu", "1"}});
    member["metadata"]["labels"] = {{"jobset.sigs.k8s.io/jobset-name", "train"}};
    Apply(member);
  }
  const Json gangs = Get("/api/v1/gangs")["gangs"];
  ASSERT_EQ(gangs.size(), 1U);
  EXPECT_EQ(Get("/api/v1/gangs/team-a/jobset%2Ftrain"), gangs[0]);
  const Json pods = Get("/api/v1/pods?gang=jobset%2Ftrain")["pods"];
  ASSERT_EQ(pods.size(), 2U);
  for (const Json& pod : pods) EXPECT_EQ(pod["gang"], "jobset/train");
  EXPECT_EQ(Get("/api/v1/pods?gang=")["total"], 2) << "those of none";
}

TEST_F(ObjectsServerTest, ANodeSaysWhereItStandsByTheFirstLabelThatTells) {
  const struct {
    const char* name;
    Json labels;
    Json rack;
    Json zone;
  } rows[] = {
      {"plain", Json::object(), nullptr, nullptr},
      {"zoned", {{"topology.kubernetes.io/zone", "eu-1a"}}, nullptr, "eu-1a"},
      {"racked", {{"topology.kubernetes.io/rack", "r7"}}, "r7", nullptr},
      {"cloud", {{"topology.k8s.aws/network-node-layer-3", "nn-3"}}, "nn-3", nullptr},
      {"both",
       {{"topology.kubernetes.io/rack", "r7"}, {"cloud.google.com/gce-topology-subblock", "s1"}},
       "r7",
       nullptr},
  };
  for (const auto& [name, labels, rack, zone] : rows) {
    Json one = MakeNode(name, 1);
    one["metadata"]["labels"].update(labels);
    Apply(one);
    const Json found = Get(std::string("/api/v1/nodes/") + name);
    EXPECT_EQ(found["rack"], rack) << name;
    EXPECT_EQ(found["zone"], zone) << name;
    EXPECT_EQ(found["nvlinkDomain"], nullptr) << name;
  }
  Json joined = MakeNode("joined", 4);
  joined["metadata"]["labels"]["nvidia.com/gpu.clique"] = "0b7c.3";
  Apply(joined);
  EXPECT_EQ(Get("/api/v1/nodes/joined")["nvlinkDomain"], "0b7c.3");
}

TEST_F(ObjectsServerTest, ATeamIsItsQuotaWithItsBudgetsAndReclaims) {
  Json team = Get("/api/v1/teams/alpha");
  EXPECT_EQ(team["budgets"], Json::array());
  EXPECT_EQ(team["reclaims"], Json::array());
  team.erase("budgets");
  team.erase("reclaims");
  const Json quotas = Get("/api/v1/quotas")["quotas"];
  ASSERT_EQ(quotas.size(), 1U);
  EXPECT_EQ(team, quotas[0]);
  EXPECT_EQ(team["lines"][0]["usedGpus"], 1);
}

TEST_F(ObjectsServerTest, ATeamHasTheBudgetsOfItsQuotaAndOfItsNamespaces) {
  const auto budget = [](const char* name, const Json& whose) {
    Json object = {{"apiVersion", "tranche.dev/v1alpha1"},
                   {"kind", "GPUBudget"},
                   {"metadata", {{"name", name}}}};
    object["spec"] = {{"gpuHours", 100}, {"window", {{"type", "Month"}}}};
    object["spec"].update(whose);
    return object;
  };
  Apply(budget("of-the-quota", {{"quotaRef", "alpha"}}));
  Apply(budget("of-a-namespace", {{"namespace", "team-a"}}));
  Apply(budget("of-another", {{"namespace", "team-b"}}));
  EXPECT_EQ(Get("/api/v1/budgets")["budgets"].size(), 3U);
  const Json budgets = Get("/api/v1/teams/alpha")["budgets"];
  std::vector<std::string> own;
  for (const Json& one : budgets) own.push_back(one["name"]);
  EXPECT_EQ(own, (std::vector<std::string>{"of-a-namespace", "of-the-quota"}));
}

TEST_F(ObjectsServerTest, ListsAreNarrowedAndSayHowManyThereAre) {
  Json list = Get("/api/v1/pods?state=waiting");
  ASSERT_EQ(list["pods"].size(), 1U);
  EXPECT_EQ(list["pods"][0]["name"], "waits");
  EXPECT_EQ(list["total"], 1);
  list = Get("/api/v1/pods?team=alpha&sort=-gpus&limit=1");
  ASSERT_EQ(list["pods"].size(), 1U);
  EXPECT_EQ(list["pods"][0]["name"], "runs");
  EXPECT_EQ(list["total"], 2);
  EXPECT_EQ(Get("/api/v1/pods?node=" + node)["total"], 1);
  EXPECT_FALSE(Get("/api/v1/pods").contains("total"));
}

TEST_F(ObjectsServerTest, WhatIsNotThereIsSaidInOneLine) {
  const struct {
    const char* target;
    int status;
    const char* error;
  } rows[] = {
      {"/api/v1/pods/team-a/nobody", 404, "no pod \"team-a/nobody\" is known"},
      {"/api/v1/pods/team-a/", 404, "expected /api/v1/pods/NAMESPACE/NAME, found \"team-a/\""},
      {"/api/v1/pods/team-a", 404, "expected /api/v1/pods/NAMESPACE/NAME, found \"team-a\""},
      {"/api/v1/pods/a/b/c", 404, "expected /api/v1/pods/NAMESPACE/NAME, found \"a/b/c\""},
      {"/api/v1/pods//runs", 404, "expected /api/v1/pods/NAMESPACE/NAME, found \"/runs\""},
      {"/api/v1/nodes/", 404, "expected /api/v1/nodes/NAME, found \"\""},
      {"/api/v1/nodes/gpu", 404, "no node \"gpu\" is known"},
      {"/api/v1/nodes/gpu-3", 404, "no node \"gpu-3\" is known"},
      {"/api/v1/nodes/%80", 404, "no node \"\uFFFD\" is known"},
      {"/api/v1/gangs/team-a/nobody", 404, "no gang \"team-a/nobody\" is known"},
      {"/api/v1/gangs/team-a", 404, "expected /api/v1/gangs/NAMESPACE/NAME, found \"team-a\""},
      {"/api/v1/reclaims/none", 404, "no reclaim \"none\" is known"},
      {"/api/v1/reclaims/a/b", 404, "expected /api/v1/reclaims/NAME, found \"a/b\""},
      {"/api/v1/teams/beta", 404, "no team \"beta\" is known"},
      {"/api/v1/teams/", 404, "expected /api/v1/teams/NAME, found \"\""},
      {"/api/v1/pods?limit=many", 400,
       "limit: expected a number from 1 to 1000000, found \"many\""},
  };
  for (const auto& [target, status, error] : rows) {
    const kube::SingleAnswer reply = Call("GET", target);
    EXPECT_EQ(reply.status, status) << target;
    EXPECT_EQ(Json::parse(reply.body, nullptr, false), Json({{"error", error}})) << target;
  }
}

TEST_F(ObjectsServerTest, BytesAreSavedForWhoTakesThem) {
  http::RawClient client(runtime->port());
  const auto ask = [&client](const std::string& fields) {
    return client.Ask("GET /api/v1/nodes HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n");
  };
  const http::RawReply plain = ask("");
  const http::RawReply packed = ask("Accept-Encoding: gzip\r\n");
  EXPECT_EQ(plain.head.find("Content-Encoding"), std::string::npos);
  EXPECT_NE(packed.head.find("Content-Encoding: gzip"), std::string::npos);
  EXPECT_NE(packed.head.find("Vary: Accept-Encoding"), std::string::npos);
  EXPECT_LT(packed.body.size() * 3, plain.body.size());
  const std::size_t tag = packed.head.find("ETag: ") + 6;
  const std::string etag = packed.head.substr(tag, packed.head.find("\r\n", tag) - tag);
  EXPECT_EQ(ask("Accept-Encoding: gzip\r\nIf-None-Match: " + etag + "\r\n").status, 304);
}

}  // namespace THIS_FILE
}  // namespace tranche
