// Policy objects, read from a server over real sockets: what is handed over, when, and what
// happens where a kind is not installed or not ours to read.
#include <gtest/gtest.h>

#include "test/unit/scheduler/kube/kube_fixture.h"

namespace tranche::kube {
namespace THIS_FILE {

using fakes::ApiRequest;
using fakes::ApiServer;
using fakes::Exchange;
using fakes::StatusBody;
using Lines = std::vector<std::string>;

Json PolicyJson(const std::string& name, const std::string& uid, int generation, Json spec = {}) {
  Json object = {{"metadata", {{"name", name}, {"uid", uid}}}, {"spec", std::move(spec)}};
  if (generation > 0) object["metadata"]["generation"] = generation;
  return object;
}

class PolicyObjectsTest : public ::testing::Test {
 protected:
  void StartClient(Timing timing = QuickTiming()) {
    Options options = PlainOptions(server_.port());
    options.timing = timing;
    cluster_ = std::make_unique<Cluster>(options, events_);
    cluster_->Start();
  }
  void StartSynced() {
    StartClient();
    ASSERT_TRUE(events_.Saw("synced"));
  }
  void InstallAll() {
    for (const auto& [plural, kind] :
         {std::pair{"gpuquotas", "GPUQuotaList"}, std::pair{"gpubudgets", "GPUBudgetList"},
          std::pair{"gpuclasses", "GPUClassList"}, std::pair{"gpupolicies", "GPUPolicyList"},
          std::pair{"gpupools", "GPUPoolList"}, std::pair{"gpuprices", "GPUPriceList"},
          std::pair{"gpuquotaviews", "GPUQuotaViewList"},
          std::pair{"gpureclaims", "GPUReclaimList"}}) {
      server_.Install(std::string("/apis/tranche.dev/v1alpha1/") + plural, kind);
    }
  }
  void AnswerQuotas(int code, const std::string& body) {
    server_.OnNext("GET", kQuotas,
                   [=](const ApiRequest&, Exchange& exchange) { exchange.Answer(code, body); });
  }
  ResourceStatus StatusOf(const std::string& resource) const {
    return cluster_->status().at(resource);
  }

  ApiServer server_;
  RecordingEvents events_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(PolicyObjectsTest, IsHandedOverBeforeNodesAndPods) {
  InstallAll();
  server_.Put(kPods, Pod("a", "u1", "n1"));
  server_.Put(kNodes, Node("n1"));
  for (const char* plural : {"gpuquotas", "gpubudgets", "gpuclasses", "gpupolicies", "gpupools",
                             "gpuprices"}) {
    server_.Put(std::string("/apis/tranche.dev/v1alpha1/") + plural, PolicyJson("x", plural, 1));
  }
  server_.Put(kNamespaces, PolicyJson("team", "n", 0));
  server_.Put(kPriorityClasses, PolicyJson("high", "p", 1));
  // The slowest of them is waited for.
  server_.OnNext("GET", kQuotas, [this](const ApiRequest& request, Exchange& exchange) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    server_.Serve(request, exchange);
  });
  StartSynced();
  for (const char* line : {"GPUQuota x", "GPUBudget x", "GPUClass x", "GPUPolicy x", "GPUPool x",
                           "GPUPrice x", "Namespace team", "PriorityClass high"}) {
    EXPECT_EQ(events_.Count(line), 1) << line;
    EXPECT_LT(events_.Position(line), events_.Position("node n1")) << line;
  }
  EXPECT_EQ(events_.Count("settled"), 8) << "one list, one settlement";
  EXPECT_LT(events_.Position("node n1"), events_.Position("pod team/a u1 on n1"));
}

TEST_F(PolicyObjectsTest, WatchesResourceQuotasOnlyWhereAskedTo) {
  constexpr const char* kResourceQuotas = "/api/v1/resourcequotas";
  InstallAll();
  server_.Install(kResourceQuotas, "ResourceQuotaList");
  Json quota = PolicyJson("gpu", "r", 0, {{"hard", {{"limits.nvidia.com/gpumem", "1000"}}}});
  quota["metadata"]["namespace"] = "team";
  server_.Put(kResourceQuotas, quota);
  StartSynced();
  EXPECT_TRUE(server_.Requests(kResourceQuotas).empty());
  cluster_.reset();
  Options options = PlainOptions(server_.port());
  options.resource_quotas = true;
  cluster_ = std::make_unique<Cluster>(options, events_);
  cluster_->Start();
  EXPECT_TRUE(events_.Saw("ResourceQuota team/gpu"));
}

TEST_F(PolicyObjectsTest, ReachesTheEngineWholeButForManagedFields) {
  InstallAll();
  Json quota = PolicyJson("q", "u1", 3, {{"parent", "org"}});
  quota["metadata"]["managedFields"] = Json::array({{{"manager", "kubectl"}}});
  quota["metadata"]["labels"] = {{"a", "\"b\""}};
  server_.Put(kQuotas, quota);
  StartSynced();
  ASSERT_EQ(events_.PolicyObjects().size(), 1u);
  const PolicyObject object = events_.PolicyObjects().front();
  EXPECT_EQ(object.kind, "GPUQuota");
  EXPECT_EQ(object.ns, "");
  EXPECT_EQ(object.name, "q");
  EXPECT_EQ(object.uid, "u1");
  EXPECT_EQ(object.generation, 3);
  Json expected = server_.Object(kQuotas, "q");
  expected["metadata"].erase("managedFields");
  EXPECT_EQ(Json::parse(object.json), expected);
}

TEST_F(PolicyObjectsTest, SettlesAfterEveryEvent) {
  InstallAll();
  StartSynced();
  server_.Put(kQuotas, PolicyJson("q", "u1", 1));
  ASSERT_TRUE(events_.Saw("settled", 1));
  server_.Put(kQuotas, PolicyJson("q", "u1", 2));
  ASSERT_TRUE(events_.Saw("settled", 2));
  server_.Put(kQuotas, PolicyJson("q", "u2", 2));
  ASSERT_TRUE(events_.Saw("settled", 3));
  server_.Delete(kQuotas, "q");
  ASSERT_TRUE(events_.Saw("settled", 4));
  EXPECT_EQ(events_.Lines(),
            (Lines{"synced", "GPUQuota q", "settled", "GPUQuota q", "settled", "GPUQuota gone q",
                   "GPUQuota q", "settled", "GPUQuota gone q", "settled"}));
}

TEST_F(PolicyObjectsTest, SkipsWhatChangesTheStatusAlone) {
  InstallAll();
  server_.Put(kQuotas, PolicyJson("q", "u1", 1));
  server_.Put(kPriorityClasses, PolicyJson("high", "p", 1));
  StartSynced();
  Json quota = PolicyJson("q", "u1", 1);
  quota["status"] = {{"used", 1}};
  server_.Put(kQuotas, quota);
  server_.Put(kPriorityClasses, PolicyJson("high", "p", 1));  // no kind of ours: labels count
  ASSERT_TRUE(events_.Saw("PriorityClass high", 2));
  server_.Put(kQuotas, PolicyJson("q", "u1", 2));
  ASSERT_TRUE(events_.Saw("settled", 4));
  EXPECT_EQ(events_.Count("GPUQuota q"), 2);
  EXPECT_EQ(events_.PolicyObjects().back().generation, 2);
}

TEST_F(PolicyObjectsTest, TellsOfAViewOnceWhateverIsInIt) {
  InstallAll();
  Json view = PolicyJson("view", "v1", 1);
  view["metadata"]["namespace"] = "team";
  server_.Put(kViews, view);
  StartSynced();
  view["metadata"]["generation"] = 2;
  server_.Put(kViews, view);
  server_.Delete(kViews, "team/view");
  ASSERT_TRUE(events_.Saw("GPUQuotaView gone team/view"));
  EXPECT_EQ(events_.Count("GPUQuotaView team/view"), 1);
  EXPECT_EQ(events_.PolicyObjects().front().ns, "team");
}

TEST_F(PolicyObjectsTest, HandsAReclaimOverWholeAtTheStartAndThenKnowsIt) {
  InstallAll();
  Json reclaim = PolicyJson("r-1", "r1", 1, {{"rule", "Reclaim"}});
  reclaim["status"] = {{"phase", "Evicting"}};
  server_.Put(kReclaims, reclaim);
  server_.Put(kNodes, Node("n1"));
  StartSynced();
  EXPECT_LT(events_.Position("GPUReclaim r-1"), events_.Position("node n1"));
  EXPECT_EQ(Json::parse(events_.PolicyObjects().front().json)["status"]["phase"], "Evicting");
  reclaim["status"] = {{"phase", "Reserved"}};
  reclaim["metadata"]["generation"] = 2;
  server_.Put(kReclaims, reclaim);
  server_.Delete(kReclaims, "r-1");
  ASSERT_TRUE(events_.Saw("GPUReclaim gone r-1"));
  EXPECT_EQ(events_.Count("GPUReclaim r-1"), 1) << "what we wrote ourselves does not come back";
}

TEST_F(PolicyObjectsTest, HandsADisruptionBudgetOverWithEveryStatus) {
  server_.Put(kDisruptionBudgets, DisruptionBudget("web", "web", 1));
  StartSynced();
  server_.Put(kDisruptionBudgets, DisruptionBudget("web", "web", 0));
  ASSERT_TRUE(events_.Saw("settled", 2));
  EXPECT_EQ(events_.Count("PodDisruptionBudget team/web"), 2);
  const PolicyObject object = events_.PolicyObjects().back();
  EXPECT_EQ(object.kind, "PodDisruptionBudget");
  EXPECT_EQ(object.ns, "team");
  EXPECT_EQ(object.name, "web");
  EXPECT_EQ(Json::parse(object.json)["status"]["disruptionsAllowed"], 0);
  server_.Delete(kDisruptionBudgets, "team/web");
  EXPECT_TRUE(events_.Saw("PodDisruptionBudget gone team/web"));
}

TEST_F(PolicyObjectsTest, IsSyncedWithoutCustomResourcesAndFindsThemOnceInstalled) {
  server_.Put(kNodes, Node("n1"));
  StartSynced();
  EXPECT_TRUE(StatusOf("gpuquotas").absent);
  EXPECT_FALSE(StatusOf("gpuquotas").synced);
  EXPECT_TRUE(StatusOf("namespaces").synced);
  InstallAll();
  server_.Put(kQuotas, PolicyJson("q", "u9", 1));
  EXPECT_TRUE(events_.Saw("GPUQuota q"));
  EXPECT_TRUE(Eventually([this] { return StatusOf("gpuquotas").synced; }));
  EXPECT_FALSE(StatusOf("gpuquotas").absent);
  EXPECT_EQ(events_.Count("synced"), 1);
  EXPECT_EQ(cluster_->status().size(), 32u);
}

TEST_F(PolicyObjectsTest, GoesOnWithDefinitionsThatLackPoolsAndPrices) {
  server_.Install("/apis/tranche.dev/v1alpha1/gpuquotas", "GPUQuotaList");
  server_.Put(kQuotas, PolicyJson("q", "u1", 1));
  server_.Put(kNodes, Node("n1"));
  StartSynced();
  EXPECT_TRUE(StatusOf("gpupools").absent);
  EXPECT_TRUE(StatusOf("gpuprices").absent);
  EXPECT_EQ(events_.Count("GPUQuota q"), 1);
  server_.Install("/apis/tranche.dev/v1alpha1/gpupools", "GPUPoolList");
  server_.Put("/apis/tranche.dev/v1alpha1/gpupools", PolicyJson("p", "u2", 1));
  EXPECT_TRUE(events_.Saw("GPUPool p"));
}

TEST_F(PolicyObjectsTest, WaitsOutAPassingErrorAtTheStart) {
  InstallAll();
  server_.Put(kQuotas, PolicyJson("q", "u1", 1));
  server_.Put(kNodes, Node("n1"));
  AnswerQuotas(503, StatusBody(503, "ServiceUnavailable").dump());
  AnswerQuotas(502, "<html>Bad Gateway</html>");
  AnswerQuotas(404, "<html>no such route</html>");
  StartSynced();
  EXPECT_EQ(StatusOf("gpuquotas").failures, 3);
  EXPECT_LT(events_.Position("GPUQuota q"), events_.Position("node n1"));
}

TEST_F(PolicyObjectsTest, GoesOnWithoutWhatItMayNotRead) {
  server_.Put(kNodes, Node("n1"));
  server_.Put(kNamespaces, PolicyJson("team", "n", 0));
  for (const char* path : {kNamespaces, kQuotas, kPriorityClasses, kDisruptionBudgets}) {
    server_.OnNext("GET", path, [](const ApiRequest&, Exchange& exchange) {
      exchange.Answer(403, StatusBody(403, "Forbidden").dump());
    });
  }
  StartSynced();
  EXPECT_EQ(events_.Count("node n1"), 1);
  EXPECT_TRUE(events_.Saw("Namespace team")) << "once the rights are given";
}

TEST_F(PolicyObjectsTest, GivesUpWhatItKnowsOnlyWhenAbsenceIsSaidTwice) {
  InstallAll();
  server_.Put(kQuotas, PolicyJson("q", "u1", 1));
  StartSynced();
  ASSERT_TRUE(Eventually([this] { return server_.Requests(kQuotas).size() >= 2; }));
  AnswerQuotas(404, "404 page not found\n");
  server_.Compact();
  ASSERT_TRUE(Eventually([this] { return StatusOf("gpuquotas").relists == 1; }));
  EXPECT_EQ(events_.Count("GPUQuota gone q"), 0);
  AnswerQuotas(403, StatusBody(403, "Forbidden").dump());
  AnswerQuotas(404, "404 page not found\n");
  AnswerQuotas(404, StatusBody(404, "NotFound").dump());
  server_.Compact();
  ASSERT_TRUE(events_.Saw("GPUQuota gone q"));
  ASSERT_TRUE(events_.Saw("GPUQuota q", 2)) << "and it comes back with the next list";
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
