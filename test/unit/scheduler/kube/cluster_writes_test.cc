// Statuses, views, conditions and events, written to a server over real sockets.
#include <gtest/gtest.h>

#include <atomic>

#include "test/unit/scheduler/kube/kube_fixture.h"

namespace tranche::kube {
namespace THIS_FILE {

using fakes::ApiRequest;
using fakes::ApiServer;
using fakes::Exchange;
using Kind = WriteResult::Kind;

constexpr const char* kEvents = "/apis/events.k8s.io/v1/events";
const Instant kWhen = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + Millis(7);

class ClusterWritesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.Install(kQuotas, "GPUQuotaList");
    server_.Install(kViews, "GPUQuotaViewList");
    server_.Install(kReclaims, "GPUReclaimList");
    cluster_ = std::make_unique<Cluster>(PlainOptions(server_.port()), events_);
    cluster_->Start();
  }
  WriteResult Write(const ObjectWrite& write) {
    return Written([&](auto done) { cluster_->Write(write, std::move(done)); });
  }
  WriteResult DeleteView(const NamespacedName& view) {
    return Written([&](auto done) { cluster_->DeleteView(view, std::move(done)); });
  }
  WriteResult SetWaiting(const WaitingWrite& write) {
    return Written([&](auto done) { cluster_->SetWaiting(write, std::move(done)); });
  }
  WriteResult Emit(const EventWrite& event) {
    return Written([&](auto done) { cluster_->Emit(event, std::move(done)); });
  }
  ConfigMapLookup ReadMap(const char* ns, const char* name, const char* key) {
    auto answered = std::make_shared<std::promise<ConfigMapLookup>>();
    cluster_->ReadConfigMap({ns, name}, key, [answered](ConfigMapLookup lookup) {
      answered->set_value(std::move(lookup));
    });
    return answered->get_future().get();
  }
  ApiRequest Last(const std::string& path) {
    const std::vector<ApiRequest> all = server_.Requests(path);
    return all.empty() ? ApiRequest() : all.back();
  }

  ApiServer server_;
  RecordingEvents events_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(ClusterWritesTest, AppliesAStatusUnderOurFieldManager) {
  server_.Put(kQuotas, {{"metadata", {{"name", "team-a"}, {"uid", "q1"}, {"generation", 4}}},
                        {"spec", {{"parent", "org"}}}});
  const WriteResult result = Write({"GPUQuota", "", "team-a", true, R"("status":{"used":"7"})"});
  EXPECT_EQ(result.kind, Kind::kDone) << result.message;
  const ApiRequest sent = Last(std::string(kQuotas) + "/team-a/status");
  EXPECT_EQ(sent.method, "PATCH");
  EXPECT_EQ(sent.headers.at("content-type"), "application/apply-patch+yaml");
  EXPECT_EQ(sent.query,
            (std::map<std::string, std::string>{{"fieldManager", "tranche"}, {"force", "true"}}));
  EXPECT_EQ(Json::parse(sent.body),
            Json::parse(R"({"apiVersion":"tranche.dev/v1alpha1","kind":"GPUQuota",
                            "metadata":{"name":"team-a"},"status":{"used":"7"}})"));
  const Json quota = server_.Object(kQuotas, "team-a");
  EXPECT_EQ(quota["status"]["used"], "7");
  EXPECT_EQ(quota["spec"]["parent"], "org");
}

TEST_F(ClusterWritesTest, IsRejectedForAStatusWithoutItsObject) {
  const WriteResult result = Write({"GPUQuota", "", "none", true, R"("status":{})"});
  EXPECT_EQ(result.kind, Kind::kRejected);
  EXPECT_EQ(result.http_code, 404);
}

TEST_F(ClusterWritesTest, CreatesAViewInItsNamespaceAndDeletesItAgain) {
  EXPECT_EQ(Write({"GPUQuotaView", "team", "view", false, ""}).kind, Kind::kDone);
  EXPECT_EQ(Write({"GPUQuotaView", "team", "view", true, R"("status":{"leaf":"a"})"}).kind,
            Kind::kDone);
  EXPECT_EQ(server_.Object(kViews, "team/view")["status"]["leaf"], "a");
  EXPECT_EQ(DeleteView({"team", "view"}).kind, Kind::kDone);
  EXPECT_TRUE(server_.Object(kViews, "team/view").is_null());
  const WriteResult again = DeleteView({"team", "view"});
  EXPECT_EQ(again.kind, Kind::kDone) << "gone already";
  EXPECT_EQ(again.http_code, 404);
}

TEST_F(ClusterWritesTest, CreatesAReclaimWritesItsStatusAndDeletesItAgain) {
  EXPECT_EQ(Write({"GPUReclaim", "", "r-1", false, R"("spec":{"rule":"Reclaim"})"}).kind,
            Kind::kDone);
  EXPECT_EQ(Write({"GPUReclaim", "", "r-1", true, R"("status":{"phase":"Evicting"})"}).kind,
            Kind::kDone);
  const Json reclaim = server_.Object(kReclaims, "r-1");
  EXPECT_EQ(reclaim["spec"]["rule"], "Reclaim");
  EXPECT_EQ(reclaim["status"]["phase"], "Evicting");
  for (int i = 0; i < 2; ++i) {  // the second time it is gone already
    EXPECT_EQ(Written([&](auto done) { cluster_->DeleteReclaim("r-1", std::move(done)); }).kind,
              Kind::kDone);
    EXPECT_TRUE(server_.Object(kReclaims, "r-1").is_null());
  }
}

TEST_F(ClusterWritesTest, NominatesANodeForThePodOfThatUid) {
  server_.Put(kPods, Pod("a", "u1"));
  const auto nominate = [&](const char* uid) {
    return Written([&](auto done) {
      cluster_->Nominate({"team", "a"}, PodUid(uid), NodeName("n1"), std::move(done));
    });
  };
  EXPECT_EQ(nominate("u2").kind, Kind::kRejected);
  EXPECT_FALSE(server_.Object(kPods, "team/a")["status"].contains("nominatedNodeName"));
  EXPECT_EQ(nominate("u1").kind, Kind::kDone);
  EXPECT_EQ(server_.Object(kPods, "team/a")["status"]["nominatedNodeName"], "n1");
  const ApiRequest sent = Last("/api/v1/namespaces/team/pods/a/status");
  EXPECT_EQ(sent.headers.at("content-type"), "application/strategic-merge-patch+json");
  EXPECT_EQ(Json::parse(sent.body),
            Json::parse(R"({"metadata":{"uid":"u1"},"status":{"nominatedNodeName":"n1"}})"));
}

TEST_F(ClusterWritesTest, SetsAndClearsTheConditionOfAWaitingPod) {
  server_.Put(kPods, Pod("a", "u1"));
  const auto waiting = [&] { return server_.Object(kPods, "team/a")["status"]["conditions"]; };
  EXPECT_EQ(
      SetWaiting({{"team", "a"}, PodUid("u1"), true, "WaitingForQuota", "short by 2", kWhen}).kind,
      Kind::kDone);
  EXPECT_EQ(waiting(), Json::parse(R"([{"type":"tranche.dev/Waiting","status":"True",
    "reason":"WaitingForQuota","message":"short by 2",
    "lastTransitionTime":"2026-03-01T00:00:00.007Z"}])"));
  EXPECT_EQ(SetWaiting({{"team", "a"}, PodUid("u1"), false, "Placed", "", kWhen}).kind,
            Kind::kDone);
  ASSERT_EQ(waiting().size(), 1u);
  EXPECT_EQ(waiting()[0]["status"], "False");
}

TEST_F(ClusterWritesTest, DoesNotTouchANamesakeOfAPod) {
  server_.Put(kPods, Pod("a", "u2"));
  const WriteResult result = SetWaiting({{"team", "a"}, PodUid("u1"), true, "R", "m", kWhen});
  EXPECT_EQ(result.kind, Kind::kRejected);
  EXPECT_FALSE(server_.Object(kPods, "team/a")["status"].contains("conditions"));
}

TEST_F(ClusterWritesTest, ARequeueOrNominationOutlivesAHiccupOfTheServer) {
  server_.Put(kPods, Pod("a", "u1"));
  const std::string path = "/api/v1/namespaces/team/pods/a/status";
  const auto hiccup = [&] {
    server_.OnNext("PATCH", path, [](const ApiRequest&, Exchange& exchange) { exchange.Drop(); });
    server_.OnNext("PATCH", path, [](const ApiRequest&, Exchange& exchange) {
      exchange.Answer(503, fakes::StatusBody(503, "ServiceUnavailable").dump());
    });
  };
  hiccup();
  EXPECT_EQ(Written([&](auto done) {
              cluster_->Requeue({"team", "a"}, PodUid("u1"), kWhen, std::move(done));
            }).kind,
            Kind::kDone);
  EXPECT_EQ(server_.Requests(path).size(), 3u);
  hiccup();
  EXPECT_EQ(Written([&](auto done) {
              cluster_->Nominate({"team", "a"}, PodUid("u1"), NodeName("n1"), std::move(done));
            }).kind,
            Kind::kDone);
  EXPECT_EQ(server_.Object(kPods, "team/a")["status"]["nominatedNodeName"], "n1");
}

TEST_F(ClusterWritesTest, ANewerNominationEndsTheTriesOfAnOlderOne) {
  server_.Put(kPods, Pod("a", "u1"));
  const std::string path = "/api/v1/namespaces/team/pods/a/status";
  server_.OnNext("PATCH", path, [](const ApiRequest&, Exchange& exchange) {
    exchange.Answer(503, fakes::StatusBody(503, "ServiceUnavailable").dump(),
                    {{"Retry-After", "1"}});
  });
  std::promise<WriteResult> first;
  cluster_->Nominate({"team", "a"}, PodUid("u1"), NodeName("n1"),
                     [&first](WriteResult result) { first.set_value(std::move(result)); });
  ASSERT_TRUE(Eventually([&] { return server_.Requests(path).size() == 1; }));
  EXPECT_EQ(Written([&](auto done) {
              cluster_->Nominate({"team", "a"}, PodUid("u1"), NodeName("n2"), std::move(done));
            }).kind,
            Kind::kDone);
  EXPECT_EQ(first.get_future().get().kind, Kind::kUnknown);
  EXPECT_EQ(server_.Object(kPods, "team/a")["status"]["nominatedNodeName"], "n2");
  EXPECT_EQ(server_.Requests(path).size(), 2u);
}

TEST_F(ClusterWritesTest, RequeuesAPod) {
  server_.Put(kPods, Pod("a", "u1"));
  EXPECT_EQ(Written([&](auto done) {
              cluster_->Requeue({"team", "a"}, PodUid("u1"), kWhen, std::move(done));
            }).kind,
            Kind::kDone);
  EXPECT_EQ(server_.Object(kPods, "team/a")["status"]["conditions"][0]["type"],
            "tranche.dev/RoomFreed");
}

TEST_F(ClusterWritesTest, SetsAndRemovesOneLabelOfANode) {
  Json node = Node("n1");
  node["metadata"]["labels"] = {{"zone", "a"}};
  server_.Put(kNodes, node);
  const auto label = [&](const char* name, const char* value) {
    return Written([&](auto done) {
      cluster_->LabelNode({NodeName(name), "nvidia.com/mig.config", value}, std::move(done));
    });
  };
  EXPECT_EQ(label("n1", "tranche-1").kind, Kind::kDone);
  const ApiRequest sent = Last("/api/v1/nodes/n1");
  EXPECT_EQ(sent.method, "PATCH");
  EXPECT_EQ(sent.headers.at("content-type"), "application/merge-patch+json");
  EXPECT_EQ(Json::parse(sent.body),
            Json::parse(R"({"metadata":{"labels":{"nvidia.com/mig.config":"tranche-1"}}})"));
  EXPECT_EQ(server_.Object(kNodes, "n1")["metadata"]["labels"],
            Json::parse(R"({"zone":"a","nvidia.com/mig.config":"tranche-1"})"));
  EXPECT_EQ(label("n1", "").kind, Kind::kDone);
  EXPECT_EQ(server_.Object(kNodes, "n1")["metadata"]["labels"], Json::parse(R"({"zone":"a"})"));
  EXPECT_EQ(label("n2", "tranche-1").http_code, 404);
}

TEST_F(ClusterWritesTest, MakesAConfigMapAndChangesOneKeyOfItUnlessSomebodyElseDid) {
  constexpr const char* kMaps = "/api/v1/configmaps";
  const auto read = [&] { return ReadMap("ops", "mig", "config.yaml"); };
  const auto put = [&](const std::string& text, const std::string& version) {
    return Written([&](auto done) {
      cluster_->PutConfigMap({"ops", "mig", "config.yaml", text, version}, std::move(done));
    });
  };
  EXPECT_EQ(read().kind, ConfigMapLookup::Kind::kMissing);
  EXPECT_EQ(put("a: 1\n", "").http_code, 201);
  EXPECT_EQ(put("a: 2\n", "").http_code, 409) << "it is there by now";
  const ConfigMapLookup first = read();
  ASSERT_EQ(first.kind, ConfigMapLookup::Kind::kFound);
  EXPECT_EQ(first.text, "a: 1\n");
  Json other = server_.Object(kMaps, "ops/mig");
  other["data"]["notes"] = "of somebody else";
  server_.Put(kMaps, other);
  EXPECT_EQ(put("a: 3\n", first.version).http_code, 409) << "it was changed between";
  EXPECT_EQ(put("a: 3\n", read().version).kind, Kind::kDone);
  EXPECT_EQ(server_.Object(kMaps, "ops/mig")["data"],
            Json::parse(R"({"config.yaml":"a: 3\n","notes":"of somebody else"})"));
  EXPECT_EQ(Last("/api/v1/namespaces/ops/configmaps/mig").headers.at("content-type"),
            "application/merge-patch+json");
}

TEST_F(ClusterWritesTest, AConfigMapThatCannotBeReadIsNotTakenForMissing) {
  server_.OnNext("GET", "/api/v1/namespaces/ops/configmaps/mig",
                 [](const ApiRequest&, Exchange& exchange) {
                   exchange.Answer(403, fakes::StatusBody(403, "Forbidden", "no right").dump());
                 });
  const ConfigMapLookup lookup = ReadMap("ops", "mig", "config.yaml");
  EXPECT_EQ(lookup.kind, ConfigMapLookup::Kind::kFailed);
  EXPECT_EQ(lookup.message, "403 no right");
}

TEST_F(ClusterWritesTest, EmitsEventsOfOneMomentUnderDifferentNames) {
  const EventWrite event = {"GPUQuota",  "",           "team-a", "q1", true,
                            "OverLimit", "Accounting", "note",   kWhen};
  EXPECT_EQ(Emit(event).kind, Kind::kDone);
  EXPECT_EQ(Emit(event).kind, Kind::kDone);
  const std::vector<ApiRequest> sent =
      server_.Requests("/apis/events.k8s.io/v1/namespaces/default/events");
  ASSERT_EQ(sent.size(), 2u);
  const std::string name = Json::parse(sent[1].body)["metadata"]["name"];
  const Json stored = server_.Object(kEvents, "default/" + name);
  EXPECT_EQ(stored["type"], "Warning");
  EXPECT_FALSE(stored["reportingInstance"].get<std::string>().empty());
}

TEST_F(ClusterWritesTest, DoNotHoldUpABinding) {
  server_.Put(kPods, Pod("a", "u1"));
  const EventWrite event = {"Pod", "team", "a", "u1", false, "R", "A", "n", kWhen};
  constexpr int kMany = 40;  // more than there are connections
  std::atomic<int> answered = 0;
  for (int i = 0; i < kMany; ++i) {
    server_.OnNext("POST", "/apis/events.k8s.io/v1/namespaces/team/events",
                   [](const ApiRequest&, Exchange& exchange) { exchange.WaitUntilStopped(); });
    cluster_->Emit(event, [&](const WriteResult&) { ++answered; });
  }
  BindingWrite write;
  write.pod = {"team", "a"};
  write.uid = PodUid("u1");
  write.node = NodeName("n1");
  EXPECT_EQ(BindAndWait(*cluster_, write).kind, Kind::kDone);
  EXPECT_EQ(answered, 0);
  cluster_->Stop();
  EXPECT_EQ(answered, kMany);
  EXPECT_EQ(Emit(event).kind, Kind::kNotSent);
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
