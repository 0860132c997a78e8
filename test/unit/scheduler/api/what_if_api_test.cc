// Questions about pods that do not exist: how many may be asked, one at a time, and how the engine
// is shared meanwhile.
#include "scheduler/api/what_if_api.h"

#include <gtest/gtest.h>

#include <future>
#include <string>

#include "scheduler/wire/json/json_value.h"
#include "test/unit/scheduler/server/live_server.h"

namespace tranche {
namespace THIS_FILE {

using test::Json;

class HandMovedClock : public Clock {
 public:
  Instant Now() const override { return Instant(std::chrono::hours(1)); }
};

std::string PodList(int count) {
  Json pods = Json::array();
  for (int i = 0; i < count; ++i) {
    pods.push_back(MakePod("p" + std::to_string(i), {{"nvidia.com/gpu", "1"}}));
  }
  return Json{{"pods", pods}}.dump();
}

class WhatIfApiTest : public testing::Test {
 protected:
  http::Response Ask(WhatIfLimits limits, int pods, bool verified) {
    WhatIfApi api(host_, limits);
    Router router;
    api.AddTo(router);
    http::Request request;
    request.method = "POST";
    request.path = "/api/v1/whatif";
    request.body = PodList(pods);
    request.body.reserve(request.body.size() + http::kBodyPadding);
    request.verified = verified;
    std::promise<http::Response> answer;
    router.Route(std::move(request),
                 [&answer](http::Response response) { answer.set_value(std::move(response)); });
    return answer.get_future().get();
  }

  HandMovedClock clock_;
  EngineHost host_{EngineOptions{}, clock_, nullptr, [] { return true; }};
};

TEST_F(WhatIfApiTest, HowManyPodsMayBeAskedAboutDependsOnWhoAsks) {
  const struct {
    int pods;
    bool verified;
    int status;
  } rows[] = {{50, false, 200}, {51, false, 400}, {51, true, 200}, {1'001, true, 400}};
  for (const auto& [pods, verified, status] : rows) {
    EXPECT_EQ(Ask({}, pods, verified).status, status) << pods;
  }
  EXPECT_NE(Ask({}, 51, false).body.find("at most 50 without a token"), std::string::npos);
}

TEST_F(WhatIfApiTest, AnAnswerThatCostsTooMuchIsGivenUpWithAdvice) {
  WhatIfLimits limits;
  limits.hold = std::chrono::nanoseconds(0);
  limits.whole = std::chrono::nanoseconds(0);
  const http::Response answer = Ask(limits, 3, /*verified=*/false);
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("given up after 1 of 3 pods"), std::string::npos) << answer.body;
  EXPECT_EQ(answer.headers.at("Retry-After"), "1");
}

TEST_F(WhatIfApiTest, OneAtATime) {
  WhatIfApi api(host_);
  Router router;
  api.AddTo(router);
  const auto ask = [&router](http::Responder respond) {
    http::Request request;
    request.method = "POST";
    request.path = "/api/v1/whatif";
    request.body = PodList(1);
    request.body.reserve(request.body.size() + http::kBodyPadding);
    router.Route(std::move(request), std::move(respond));
  };
  std::promise<int> first;
  int second = 0;
  // While the engine is held here the first question cannot be over.
  host_.With([&](Engine&, Instant) {
    ask([&first](const http::Response& response) { first.set_value(response.status); });
    ask([&second](const http::Response& response) { second = response.status; });
  });
  EXPECT_EQ(second, 429);
  EXPECT_EQ(first.get_future().get(), 200);
  std::promise<int> third;
  ask([&third](const http::Response& response) { third.set_value(response.status); });
  EXPECT_EQ(third.get_future().get(), 200);
}

}  // namespace THIS_FILE
}  // namespace tranche
