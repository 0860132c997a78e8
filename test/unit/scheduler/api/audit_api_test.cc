// GET /api/v1/audit: what it tells, and who shares a look.
#include "scheduler/api/audit_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "test/unit/scheduler/controllers/bind_bench.h"

namespace tranche {
namespace THIS_FILE {

using Json = nlohmann::json;
using Answers = std::future<http::Response>;

class AuditApiTest : public BindBench {
 protected:
  void Make(AuditApi::Hooks hooks = {}) {
    audit_ = std::make_unique<AuditApi>(host, api, std::move(hooks));
    audit_->AddTo(router_);
  }
  Answers Ask() {
    const auto promise = std::make_shared<std::promise<http::Response>>();
    http::Request request;
    request.method = "GET";
    request.path = "/api/v1/audit";
    router_.Route(std::move(request),
                  [promise](http::Response response) { promise->set_value(std::move(response)); });
    return promise->get_future();
  }
  static Json Read(Answers answer) { return Json::parse(answer.get().body); }

  Router router_;
  std::unique_ptr<AuditApi> audit_;
};

TEST_F(AuditApiTest, BooksThatAgreeHaveNothingToTell) {
  Make({.set_aside = nullptr, .walks = [] { return int64_t{40}; }});
  EXPECT_EQ(Read(Ask()), Json::parse(R"({"at":"2025-12-18T00:00:00Z","walks":41,"faults":[],)"
                                     R"("setAside":[],"leftOut":0,"bookFaults":{}})"));
}

TEST_F(AuditApiTest, TellsWhatIsSetAsideAndWhatTheServerDoesNotHave) {
  Make({.set_aside =
            [] {
              return std::vector<AuditNote>{{AuditKind::kInvalidObject, "GPUQuota q", "no parent"}};
            },
        .walks = nullptr});
  host.cluster.Receive(NodeUnreadable{NodeName("odd"), "expected an object"});
  api.pods[{"team-a", "late"}] = GpuPod("late", "u2", 2);
  Bind("gpu-1", "u2", "late");
  api.pods.erase({"team-a", "late"});
  const Json answer = Read(Ask());
  ASSERT_EQ(answer["faults"].size(), 1U) << answer;
  EXPECT_EQ(answer["faults"][0]["kind"], "forgottenPod");
  EXPECT_EQ(answer["faults"][0]["where"], "team-a/late");
  ASSERT_EQ(answer["setAside"].size(), 2U) << answer;
  EXPECT_EQ(answer["setAside"][0],
            Json({{"kind", "unreadable"},
                  {"where", "odd"},
                  {"text", "the Node object cannot be read: expected an object"}}));
  EXPECT_EQ(answer["setAside"][1]["where"], "GPUQuota q");
  EXPECT_EQ(BoundPods(), 1) << "a question changes nothing";
}

// The look under way may have passed what they ask about.
TEST_F(AuditApiTest, ThoseWhoAskMeanwhileShareTheNextLook) {
  std::promise<void> begun, go_on;
  std::atomic<int> looks = 0;
  Make({.set_aside =
            [&] {
              if (++looks == 1) {
                begun.set_value();
                go_on.get_future().wait();
              }
              return std::vector<AuditNote>();
            },
        .walks = nullptr});
  Answers first = Ask();
  begun.get_future().wait();
  std::vector<Answers> others;
  for (std::size_t i = 0; i < AuditApi::kMostWaiting; ++i) others.push_back(Ask());
  EXPECT_EQ(Ask().get().status, 503) << "there is an end to it";
  go_on.set_value();
  EXPECT_EQ(Read(std::move(first))["walks"], 1);
  for (Answers& other : others) EXPECT_EQ(Read(std::move(other))["walks"], 2);
  EXPECT_EQ(looks, 2);
}

}  // namespace THIS_FILE
}  // namespace tranche
