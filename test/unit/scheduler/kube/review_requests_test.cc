// What reviews ask and what their answers prove; the reviewer against a server that plays along.
#include "scheduler/kube/reviews/review_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scheduler/kube/reviews/reviewer.h"
#include "test/fakes/api_server.h"

namespace tranche::kube {
namespace THIS_FILE {

using fakes::Json;

constexpr const char* kTokenPath = "/apis/authentication.k8s.io/v1/tokenreviews";
constexpr const char* kAccessPath = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

ApiAnswer Answered(int status, const std::string& body) {
  ApiAnswer answer;
  answer.transport = ApiAnswer::Transport::kAnswered;
  answer.status = status;
  answer.body = body;
  return answer;
}

std::string TokenReview(const Json& status) {
  return Json({{"kind", "TokenReview"}, {"status", status}}).dump();
}

const Json kAda = {{"username", "ada"},
                   {"uid", "7"},
                   {"groups", {"staff", "system:authenticated"}},
                   {"extra", {{"scopes", {"a", "b"}}}}};

TEST(ReviewRequests, AskAsTheApiServerUnderstands) {
  const ApiRequest token = TokenReviewRequest("t0ken", {"tranche"}, {});
  EXPECT_EQ(token.method, "POST");
  EXPECT_EQ(token.target, kTokenPath);
  EXPECT_EQ(Json::parse(token.body),
            Json({{"apiVersion", "authentication.k8s.io/v1"},
                  {"kind", "TokenReview"},
                  {"spec", {{"token", "t0ken"}, {"audiences", {"tranche"}}}}}));
  EXPECT_FALSE(Json::parse(TokenReviewRequest("t", {}, {}).body)["spec"].contains("audiences"));

  ReviewedUser user = {"ada", "7", {"staff"}, {{"scopes", {"a"}}}};
  const ApiRequest access =
      AccessReviewRequest(user, {"get", "tranche.dev", "gpuquotaviews", "team-a", ""}, {});
  EXPECT_EQ(access.target, kAccessPath);
  EXPECT_EQ(Json::parse(access.body)["spec"], Json({{"user", "ada"},
                                                    {"uid", "7"},
                                                    {"groups", {"staff"}},
                                                    {"extra", {{"scopes", {"a"}}}},
                                                    {"resourceAttributes",
                                                     {{"verb", "get"},
                                                      {"group", "tranche.dev"},
                                                      {"resource", "gpuquotaviews"},
                                                      {"namespace", "team-a"}}}}));
  user = {"bob", "", {}, {}};
  const ApiRequest path = AccessReviewRequest(user, {"get", "", "", "", "/metrics"}, {});
  EXPECT_EQ(
      Json::parse(path.body)["spec"],
      Json({{"user", "bob"}, {"nonResourceAttributes", {{"path", "/metrics"}, {"verb", "get"}}}}));
}

TEST(ReviewRequests, WhoHoldsAToken) {
  const auto read = [](const Json& status, const std::vector<std::string>& audiences = {}) {
    return ReadTokenReview(Answered(201, TokenReview(status)), audiences);
  };
  const auto ada = read({{"authenticated", true}, {"user", kAda}});
  ASSERT_TRUE(ada.ok() && ada->has_value()) << ada.status();
  EXPECT_EQ(**ada, (ReviewedUser{
                       "ada", "7", {"staff", "system:authenticated"}, {{"scopes", {"a", "b"}}}}));
  for (const Json& nobody : {Json({{"authenticated", false}, {"user", kAda}}),
                             Json({{"error", "the token has expired"}}), Json({{"user", kAda}}),
                             Json({{"authenticated", "true"}, {"user", kAda}})}) {
    const auto found = read(nobody);
    ASSERT_TRUE(found.ok()) << nobody;
    EXPECT_FALSE(found->has_value()) << nobody;
  }
  // A server that does not say whom the token is for has not looked.
  EXPECT_FALSE(read({{"authenticated", true}, {"user", kAda}}, {"tranche"})->has_value());
  EXPECT_FALSE(
      read({{"authenticated", true}, {"user", kAda}, {"audiences", {"other"}}}, {"tranche"})
          ->has_value());
  EXPECT_TRUE(
      read({{"authenticated", true}, {"user", kAda}, {"audiences", {"x", "tranche"}}}, {"tranche"})
          ->has_value());
  // No user is not nobody, and neither is one that is larger than what is kept.
  EXPECT_FALSE(read({{"authenticated", true}, {"user", Json::object()}}).ok());
  Json large = kAda;
  large["groups"].push_back(std::string(kMostUserBytes, 'g'));
  EXPECT_FALSE(read({{"authenticated", true}, {"user", large}}).ok());
}

TEST(ReviewRequests, WhatProvesNothingIsNoAnswer) {
  ApiAnswer lost;
  lost.error = "connection refused";
  for (const ApiAnswer& answer :
       {lost, Answered(500, "oops"), Answered(201, ""), Answered(201, "[]"),
        Answered(200, R"({"kind":"Status","status":{"allowed":true,"authenticated":true}})"),
        Answered(201, R"({"kind":"TokenReview"})"),
        Answered(429, R"({"kind":"Status","message":"the token t0ken"})")}) {
    EXPECT_TRUE(absl::IsUnavailable(ReadTokenReview(answer, {}).status())) << answer.body;
    EXPECT_TRUE(absl::IsUnavailable(ReadAccessReview(answer).status())) << answer.body;
    EXPECT_THAT(std::string(ReadTokenReview(answer, {}).status().message()),
                testing::Not(testing::HasSubstr("t0ken")));
  }
  // The administrator is told which right is missing.
  EXPECT_THAT(
      std::string(
          ReadAccessReview(Answered(403, R"({"message":"cannot create"})")).status().message()),
      testing::HasSubstr("403: cannot create"));
  const auto may = [](const char* status) {
    return *ReadAccessReview(
        Answered(201, std::string(R"({"kind":"SubjectAccessReview","status":)") + status + "}"));
  };
  EXPECT_TRUE(may(R"({"allowed":true})"));
  EXPECT_FALSE(may(R"({"allowed":false})"));
  EXPECT_FALSE(may(R"({"allowed":true,"denied":true})"));
  EXPECT_FALSE(may(R"({"allowed":"true"})"));
  EXPECT_FALSE(may("{}"));
}

TEST(Reviewer, AsksAServerAndEndsWithIt) {
  auto server = std::make_unique<fakes::ApiServer>();
  Options options;
  options.credentials.host = "127.0.0.1";
  options.credentials.port = server->port();
  options.credentials.tls = false;
  // A standby may not write, and asks all the same.
  options.may_write = [] { return false; };
  Reviewer reviewer(options, {});
  const auto who = [&reviewer] {
    std::promise<absl::StatusOr<std::optional<ReviewedUser>>> heard;
    reviewer.WhoIs("t0ken", [&heard](auto user) { heard.set_value(std::move(user)); });
    return heard.get_future().get();
  };
  EXPECT_TRUE(absl::IsUnavailable(who().status())) << "before the start";
  reviewer.Start();
  server->OnNext("POST", kTokenPath, [](const fakes::ApiRequest&, fakes::Exchange& exchange) {
    exchange.Answer(201, TokenReview({{"authenticated", true}, {"user", kAda}}));
  });
  const auto ada = who();
  ASSERT_TRUE(ada.ok() && ada->has_value()) << ada.status();
  EXPECT_EQ((*ada)->name, "ada");
  server->OnNext("POST", kAccessPath, [](const fakes::ApiRequest&, fakes::Exchange& exchange) {
    exchange.Answer(201, R"({"kind":"SubjectAccessReview","status":{"allowed":true}})");
  });
  std::promise<absl::StatusOr<bool>> may;
  reviewer.May(**ada, {"list", "tranche.dev", "gpuquotas", "", ""},
               [&may](const absl::StatusOr<bool>& said) { may.set_value(said); });
  EXPECT_TRUE(*may.get_future().get());
  // The server is gone.
  server.reset();
  EXPECT_TRUE(absl::IsUnavailable(who().status()));
  reviewer.Stop();
  reviewer.Stop();
  EXPECT_TRUE(absl::IsUnavailable(who().status()));
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
