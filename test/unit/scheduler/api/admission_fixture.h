// Reviews of pods, asked of the admission API by its paths; what a patch makes of a pod.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "scheduler/api/admission_api.h"
#include "scheduler/metrics/metrics.h"

namespace tranche {

namespace test {
using Json = nlohmann::json;
}  // namespace test

inline std::string Decode64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned bits = 0;
  int held = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<unsigned>(digits.find(c));
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out += static_cast<char>(bits >> held & 0xFF);
  }
  return out;
}

// A pod whose one container has these limits.
inline test::Json Pod(const test::Json& limits, const test::Json& annotations = nullptr) {
  test::Json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}};
  pod["metadata"] = {{"name", "p"}, {"namespace", "team-a"}};
  if (!annotations.is_null()) pod["metadata"]["annotations"] = annotations;
  pod["spec"]["containers"] = test::Json::array({{{"name", "main"}, {"image", "x"}}});
  if (!limits.is_null()) pod["spec"]["containers"][0]["resources"]["limits"] = limits;
  return pod;
}

inline test::Json Review(const test::Json& pod, const std::string& operation = "CREATE",
                         const test::Json& before = nullptr, const std::string& user = "alice") {
  test::Json request = {{"uid", "review-1"},
                        {"kind", {{"group", ""}, {"version", "v1"}, {"kind", "Pod"}}},
                        {"operation", operation},
                        {"namespace", "team-a"},
                        {"userInfo", {{"username", user}, {"groups", {"system:authenticated"}}}},
                        {"object", pod}};
  if (!before.is_null()) request["oldObject"] = before;
  return {{"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"request", request}};
}

class AdmissionApiTest : public testing::Test {
 protected:
  void SetUp() override { Start(); }
  void Start() {
    router = Router();
    AddAdmissionApi(
        options,
        [this](const PodRequest& request, const dra::PodClaims& claims) {
          asked = request;
          asked_claims = claims;
          return AdmissionWord{request.asks_gpu() || claims_want_gpus, gates};
        },
        metrics, router);
  }

  http::Response Call(const std::string& path, const std::string& body) {
    http::Request request;
    request.method = "POST";
    request.path = path;
    request.body = body;
    request.body.reserve(body.size() + http::kBodyPadding);
    http::Response got;
    router.Route(std::move(request),
                 [&got](http::Response response) { got = std::move(response); });
    return got;
  }
  test::Json Ask(const std::string& path, const test::Json& review) {
    const http::Response response = Call(path, review.dump());
    EXPECT_EQ(response.status, 200) << response.body;
    const test::Json answer = test::Json::parse(response.body, nullptr, false);
    EXPECT_EQ(answer["apiVersion"], "admission.k8s.io/v1");
    EXPECT_EQ(answer["response"]["uid"], "review-1");
    return answer["response"];
  }
  // The pod as it would be created; null: refused.
  test::Json Mutated(const test::Json& pod, const std::string& path = "/admission/mutate") {
    last = Ask(path, Review(pod));
    if (!last["allowed"]) return nullptr;
    if (!last.contains("patch")) return pod;
    EXPECT_EQ(last["patchType"], "JSONPatch");
    return pod.patch(test::Json::parse(Decode64(last["patch"])));
  }
  // Why it is refused; empty: it is not.
  std::string Refusal(const test::Json& review, const std::string& path = "/admission/validate") {
    last = Ask(path, review);
    return last["allowed"] ? "" : last["status"]["message"].get<std::string>();
  }

  AdmissionOptions options;
  GateSet gates;
  bool claims_want_gpus = false;
  dra::PodClaims asked_claims;
  std::optional<PodRequest> asked;
  metrics::Metrics metrics;
  Router router;
  test::Json last;
};

}  // namespace tranche
