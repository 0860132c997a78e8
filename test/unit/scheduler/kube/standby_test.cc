// What keeps a standby from writing, and how it gets the newest state when it begins to lead.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "test/unit/scheduler/kube/kube_fixture.h"

namespace tranche::kube {
namespace THIS_FILE {

using fakes::ApiRequest;
using fakes::ApiServer;
using fakes::Exchange;
using Kind = WriteResult::Kind;

Json OwnReclaim(const std::string& phase) {
  return {{"kind", "GPUReclaim"},
          {"metadata", {{"name", "r1"}, {"uid", "uid-r1"}, {"generation", 1}}},
          {"status", {{"phase", phase}}}};
}

class StandbyTest : public ::testing::Test {
 protected:
  void Start() {
    server_.Install(kReclaims, "GPUReclaimList");
    Options options = PlainOptions(server_.port());
    options.may_write = [this] { return may_write_.load(); };
    options.follow = true;
    cluster_ = std::make_unique<Cluster>(std::move(options), events_);
    cluster_->Start();
  }
  std::atomic<bool> may_write_ = false;
  ApiServer server_;
  RecordingEvents events_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(StandbyTest, SendsNothingWithoutTheRightToWrite) {
  server_.Put(kPods, Pod("a", "uid-a"));
  Start();
  const BindingWrite write{{"team", "a"}, PodUid("uid-a"), NodeName("n1"), {}};
  const WriteResult refused = BindAndWait(*cluster_, write);
  EXPECT_EQ(refused.kind, Kind::kNotSent);
  EXPECT_TRUE(server_.Requests("/api/v1/namespaces/team/pods/a/binding").empty());
  // Reading is no write.
  EXPECT_EQ(GetAndWait(*cluster_, {"team", "a"}, PodUid("uid-a")).kind, PodLookup::Kind::kFound);

  may_write_ = true;
  EXPECT_EQ(BindAndWait(*cluster_, write).kind, Kind::kDone);
  const auto sent = server_.Requests("/api/v1/namespaces/team/pods/a/binding");
  ASSERT_EQ(sent.size(), 1U);
  // The server is told until when it makes sense.
  const std::string timeout = sent[0].query.at("timeout");
  EXPECT_TRUE(timeout.ends_with("ms")) << timeout;
  EXPECT_GT(std::stoi(timeout), 0);
  EXPECT_LE(std::stoi(timeout), 4'000);
}

TEST_F(StandbyTest, TheRightIsAskedForAtTheLastMomentAlsoOfASecondTry) {
  server_.Put(kPods, Pod("a", "uid-a"));
  Start();
  may_write_ = true;
  server_.OnNext("POST", "/api/v1/namespaces/team/pods/a/binding",
                 [this](const ApiRequest&, Exchange& exchange) {
                   may_write_ = false;  // lost while the server asks us to wait
                   exchange.Answer(429, fakes::StatusBody(429, "TooManyRequests").dump());
                 });
  const WriteResult result =
      BindAndWait(*cluster_, {{"team", "a"}, PodUid("uid-a"), NodeName("n1"), {}});
  EXPECT_EQ(result.kind, Kind::kNotSent);
  EXPECT_EQ(server_.Requests("/api/v1/namespaces/team/pods/a/binding").size(), 1U);
}

TEST_F(StandbyTest, RefreshListsAnewAndTellsWhatNoEventTold) {
  server_.Put(kPods, Pod("a", "uid-a"));
  Start();
  ASSERT_TRUE(events_.Saw("synced"));
  const std::size_t lists = server_.Requests(kPods).size();
  server_.PutSilently(kPods, Pod("a", "uid-a", "n1"));  // an event on its way
  std::atomic<bool> done = false;
  cluster_->Refresh([&done] { done = true; });
  ASSERT_TRUE(Eventually([&] { return done.load(); }));
  EXPECT_TRUE(events_.Saw("pod team/a uid-a on n1"));
  EXPECT_GT(server_.Requests(kPods).size(), lists);
}

TEST_F(StandbyTest, RefreshBeforeTheFirstListsAreInWaitsForThem) {
  Start();
  std::atomic<bool> done = false;
  cluster_->Refresh([&done] { done = true; });
  ASSERT_TRUE(Eventually([&] { return done.load(); }));
  EXPECT_TRUE(events_.Saw("synced"));
}

TEST_F(StandbyTest, FollowsRecordsOfAnotherLeaderUntilItLeadsItself) {
  server_.Install(kReclaims, "GPUReclaimList");
  server_.Put(kReclaims, OwnReclaim("Evicting"));
  Start();
  ASSERT_TRUE(events_.Saw("synced"));
  const auto told = [this] { return events_.Count("GPUReclaim r1"); };
  EXPECT_EQ(told(), 1);
  server_.Put(kReclaims, OwnReclaim("Waiting"));
  EXPECT_TRUE(Eventually([&] { return told() == 2; }));
  std::atomic<bool> done = false;
  cluster_->Refresh([&done] { done = true; });
  ASSERT_TRUE(Eventually([&] { return done.load(); }));
  const auto before = told();
  server_.Put(kReclaims, OwnReclaim("Done"));  // our own word comes back
  server_.Put(kPods, Pod("marker", "uid-marker"));
  ASSERT_TRUE(events_.Saw("pod team/marker uid-marker"));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(told(), before);
}

TEST_F(StandbyTest, FollowsCheckpointsThatAnotherLeaderWritesIntoStatuses) {
  const auto budget = [](int entry) -> Json {
    return {{"kind", "GPUBudget"},
            {"metadata", {{"name", "b1"}, {"uid", "uid-b1"}, {"generation", 1}}},
            {"status", {{"checkpoint", {{"entry", entry}}}}}};
  };
  const std::string budgets = "/apis/tranche.dev/v1alpha1/gpubudgets";
  server_.Install(budgets, "GPUBudgetList");
  server_.Put(budgets, budget(1));
  Start();
  ASSERT_TRUE(events_.Saw("synced"));
  const auto told = [this] { return events_.Count("GPUBudget b1"); };
  EXPECT_EQ(told(), 1);
  server_.Put(budgets, budget(2));
  ASSERT_TRUE(Eventually([&] { return told() == 2; }));
  EXPECT_EQ(Json::parse(events_.PolicyObjects().back().json)["status"]["checkpoint"]["entry"], 2);
  std::atomic<bool> done = false;
  cluster_->Refresh([&done] { done = true; });
  ASSERT_TRUE(Eventually([&] { return done.load(); }));
  const auto before = told();
  server_.Put(budgets, budget(3));  // our own word comes back
  server_.Put(kPods, Pod("marker", "uid-marker"));
  ASSERT_TRUE(events_.Saw("pod team/marker uid-marker"));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(told(), before);
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
