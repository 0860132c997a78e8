// ProvisioningRequests at a server over real sockets: made after their templates, listed, deleted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/unit/scheduler/kube/kube_fixture.h"

namespace tranche::kube {
namespace THIS_FILE {

using fakes::ApiRequest;
using fakes::ApiServer;
using fakes::Exchange;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = WriteResult::Kind;
using ListKind = ProvisioningList::Kind;

constexpr const char* kRequests = "/apis/autoscaling.x-k8s.io/v1/provisioningrequests";
constexpr const char* kTemplates = "/api/v1/podtemplates";
constexpr const char* kMade = "/apis/autoscaling.x-k8s.io/v1/namespaces/team/provisioningrequests";

class ProvisioningTest : public ::testing::Test {
 protected:
  ProvisioningTest() {
    server_.Install(kTemplates, "PodTemplateList");
    cluster_ = std::make_unique<Cluster>(PlainOptions(server_.port()), events_);
    cluster_->Start();
    server_.Put(kPods, Member("worker-0", "u0", 8));
    server_.Put(kPods, Member("leader", "u1", 1));
  }
  static Json Member(const std::string& name, const std::string& uid, int gpus) {
    Json pod = Pod(name, uid);
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = gpus;
    return pod;
  }
  void Install() { server_.Install(kRequests, "ProvisioningRequestList"); }
  WriteResult Provision() {
    ProvisioningWrite write;
    write.name = {"team", "tranche-1"};
    write.gang = "run";
    write.provisioning_class = "best-effort-atomic-scale-up.autoscaling.x-k8s.io";
    write.sets = {{{"team", "worker-0"}, PodUid("u0"), 3}, {{"team", "leader"}, PodUid("u1"), 1}};
    return Written([&](auto done) { cluster_->Provision(std::move(write), std::move(done)); });
  }
  ProvisioningList List() {
    auto answered = std::make_shared<std::promise<ProvisioningList>>();
    cluster_->ListProvisioning(
        [answered](ProvisioningList list) { answered->set_value(std::move(list)); });
    return answered->get_future().get();
  }
  Json Request() { return server_.Object(kRequests, "team/tranche-1"); }
  Json Template(int index) {
    return server_.Object(kTemplates, "team/tranche-1-" + std::to_string(index));
  }
  void Refuses(const char* method, const std::string& path, int code) {
    server_.OnNext(method, path, [code](const ApiRequest&, Exchange& exchange) {
      exchange.Answer(code, fakes::StatusBody(code, "Forbidden", "not you").dump());
    });
  }

  ApiServer server_;
  RecordingEvents events_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(ProvisioningTest, ARequestComesAfterItsTemplatesAndTakesThemAlong) {
  Install();
  server_.OnNext("POST", kMade, [this](const ApiRequest& request, Exchange& exchange) {
    EXPECT_FALSE(Template(0).is_null() || Template(1).is_null());
    server_.Serve(request, exchange);
  });
  const WriteResult made = Provision();
  EXPECT_EQ(made.kind, Kind::kDone) << made.message;
  EXPECT_EQ(Request()["spec"]["podSets"], Json::parse(R"([
      {"podTemplateRef":{"name":"tranche-1-0"},"count":3},
      {"podTemplateRef":{"name":"tranche-1-1"},"count":1}])"));
  EXPECT_EQ(Template(0)["template"]["spec"]["containers"][0]["resources"],
            Json::parse(R"({"limits":{"nvidia.com/gpu":8}})"));
  EXPECT_EQ(Template(1)["metadata"]["ownerReferences"], Request()["metadata"]["ownerReferences"]);

  Json others = Request();
  others["metadata"]["name"] = "others";
  others["metadata"]["labels"] = {{"app.kubernetes.io/managed-by", "kueue"}};
  server_.Put(kRequests, others);
  const ProvisioningList list = List();
  ASSERT_EQ(list.kind, ListKind::kListed);
  ASSERT_EQ(list.found.size(), 1U);
  EXPECT_EQ(list.found[0].pods, 4);
  EXPECT_EQ(server_.Requests(kRequests).back().query.at("labelSelector"),
            "app.kubernetes.io/managed-by=tranche");

  EXPECT_EQ(Provision().http_code, 409);
  const WriteResult gone =
      Written([&](auto done) { cluster_->Unprovision(list.found[0], std::move(done)); });
  EXPECT_EQ(gone.kind, Kind::kDone) << gone.message;
  EXPECT_TRUE(Request().is_null() && Template(0).is_null() && Template(1).is_null());
  EXPECT_FALSE(server_.Object(kRequests, "team/others").is_null());
  EXPECT_EQ(Written([&](auto done) { cluster_->Unprovision(list.found[0], std::move(done)); }).kind,
            Kind::kDone)
      << "gone already";
}

TEST_F(ProvisioningTest, WithoutTheDefinitionThereIsNone) {
  EXPECT_EQ(List().kind, ListKind::kNoSuchKind);
  EXPECT_EQ(Provision().http_code, 404);
}

TEST_F(ProvisioningTest, WithoutTheRightNothingIsHalfDone) {
  Install();
  Refuses("GET", kRequests, 403);
  const ProvisioningList list = List();
  EXPECT_EQ(list.kind, ListKind::kForbidden);
  EXPECT_THAT(list.message, HasSubstr("not you"));
  Refuses("PATCH", "/api/v1/namespaces/team/podtemplates/tranche-1-0", 403);
  EXPECT_EQ(Provision().http_code, 403);
  EXPECT_TRUE(Request().is_null());
  Refuses("DELETE", std::string(kMade) + "/tranche-1", 403);
  EXPECT_EQ(Provision().kind, Kind::kDone);
  const ProvisioningFound found = List().found.at(0);
  EXPECT_EQ(Written([&](auto done) { cluster_->Unprovision(found, std::move(done)); }).http_code,
            403);
  EXPECT_FALSE(Template(0).is_null()) << "the request that stays keeps its templates";
}

TEST_F(ProvisioningTest, APodThatIsGoneOrAnotherMakesNoTemplate) {
  Install();
  server_.Put(kPods, Member("leader", "u9", 1));
  EXPECT_EQ(Provision().http_code, 409);
  server_.Delete(kPods, "team/leader");
  EXPECT_EQ(Provision().http_code, 404);
  Json large = Member("leader", "u1", 1);
  large["spec"]["containers"][0]["image"] = std::string(100'000, 'x');
  server_.Put(kPods, large);
  const WriteResult result = Provision();
  EXPECT_EQ(result.kind, Kind::kRejected);
  EXPECT_THAT(result.message, HasSubstr("bytes of a template"));
  EXPECT_TRUE(Request().is_null());
  cluster_->Stop();
  EXPECT_EQ(Provision().kind, Kind::kNotSent);
  EXPECT_EQ(List().kind, ListKind::kFailed);
}

TEST_F(ProvisioningTest, WhatCannotBeReadIsNobodysAnswer) {
  Install();
  ASSERT_EQ(Provision().kind, Kind::kDone);
  Json broken = Request();
  broken["metadata"]["name"] = "tranche-0";
  broken["status"]["conditions"] = "none";
  server_.Put(kRequests, broken);
  const ProvisioningList list = List();
  ASSERT_EQ(list.found.size(), 1U);
  EXPECT_EQ(list.found[0].name.name, "tranche-1");
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
