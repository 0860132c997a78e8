// Reviews of unusual depth, size and content: a forged result is seen whatever stands beside it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "scheduler/api/admission_api.h"

namespace tranche {
namespace THIS_FILE {

using testing::HasSubstr;

std::string Deep(int levels) {
  std::string text = "1";
  for (int i = 0; i < levels; ++i) text = R"({"f:a":)" + text + "}";
  return text;
}

const char* const kForged = R"("annotations":{"tranche.dev/allocation":"{}"})";
const char* const kHonest = R"("annotations":{})";
const char* const kContainers = R"([{"name":"c","resources":{"limits":{"nvidia.com/gpu":"1"}}}])";

struct Row {
  const char* name;
  const char* operation;
  const char* annotations;
  std::string beside;  // members of metadata
  std::string containers;
  bool allowed;
};
class AdmissionShapesTest : public testing::TestWithParam<Row> {};

TEST_P(AdmissionShapesTest, IsJudgedForForgedResults) {
  const Row& row = GetParam();
  const auto pod = [&](const std::string& annotations) {
    return fmt::format(R"({{"metadata":{{"name":"p",{},{}}},"spec":{{"containers":{}}}}})",
                       row.beside, annotations, row.containers);
  };
  http::Request request;
  request.method = "POST";
  request.path = "/admission/validate";
  request.body = fmt::format(
      R"({{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"r",)"
      R"("kind":{{"group":"","version":"v1","kind":"Pod"}},"operation":"{}","namespace":"n",)"
      R"("userInfo":{{"username":"alice"}},"object":{},"oldObject":{}}}}})",
      row.operation, pod(row.annotations), pod(kHonest));
  request.body.reserve(request.body.size() + http::kBodyPadding);
  metrics::Metrics metrics;
  Router router;
  AddAdmissionApi(
      {}, [](const PodRequest&, const dra::PodClaims&) { return AdmissionWord(); }, metrics,
      router);
  http::Response got;
  router.Route(std::move(request), [&got](http::Response response) { got = std::move(response); });
  ASSERT_EQ(got.status, 200) << got.body;
  EXPECT_THAT(got.body, HasSubstr(row.allowed ? R"("allowed":true)" : R"("allowed":false)"));
}

INSTANTIATE_TEST_SUITE_P(
    Reviews, AdmissionShapesTest,
    testing::Values(
        Row{"Deep", "CREATE", kForged, R"("managedFields":[)" + Deep(70) + "]", kContainers, false},
        Row{"DeepHonest", "CREATE", kHonest, R"("managedFields":[)" + Deep(70) + "]", kContainers,
            true},
        Row{"DeeperUpdate", "UPDATE", kForged, R"("managedFields":[)" + Deep(5'000) + "]",
            kContainers, false},
        Row{"HugeNumber", "CREATE", kForged, R"("managedFields":[99999999999999999999,1e999])",
            kContainers, false},
        Row{"Large", "CREATE", kForged, R"("labels":{"x":")" + std::string(9'000'000, 'x') + "\"}",
            kContainers, false},
        Row{"LargeUpdate", "UPDATE", kForged,
            R"("labels":{"x":")" + std::string(9'000'000, 'x') + "\"}", kContainers, false},
        Row{"NoPodWeCanRead", "CREATE", kForged, R"("labels":{})", "7", false}),
    [](const testing::TestParamInfo<Row>& row) { return row.param.name; });

}  // namespace THIS_FILE
}  // namespace tranche
