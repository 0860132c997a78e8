#include "scheduler/kube/transport/api_status.h"

#include <gtest/gtest.h>

namespace tranche::kube {
namespace THIS_FILE {

struct Row {
  const char* name;
  int status;
  const char* body;
  bool success;
  const char* message;
};
class ReadStatusTest : public ::testing::TestWithParam<Row> {};

TEST_P(ReadStatusTest, SaysAReasonAndNeverAnObject) {
  ApiAnswer answer;
  answer.transport = ApiAnswer::Transport::kAnswered;
  answer.status = GetParam().status;
  answer.body = GetParam().body;
  wire::LenientParser parser;
  const ApiStatus status = ReadStatus(parser, answer);
  EXPECT_EQ(status.success, GetParam().success);
  EXPECT_EQ(status.code, GetParam().status);
  EXPECT_EQ(status.message, GetParam().message);
}

constexpr const char* kMalformed =
    "expected JSON, found a malformed structure (brackets, commas, colons or text behind the end)";

INSTANTIATE_TEST_SUITE_P(
    Bodies, ReadStatusTest,
    ::testing::Values(
        Row{"Status", 403, R"({"kind":"Status","message":"no","reason":"Forbidden"})", false, "no"},
        Row{"ProxyText", 502, "Bad\nGateway", false, "Bad Gateway"},
        Row{"ObjectUnder200", 200, R"({"kind":"Pod","env":"secret"})", true, ""},
        Row{"CutOffUnder200", 200, R"({"kind":"PodList","env":"secret"}])", false, kMalformed},
        Row{"ObjectUnder500", 500, R"({"kind":"Pod","env":"secret"})", false, "HTTP 500"},
        Row{"CutOffUnder500", 500, R"( {"kind":"Pod","env":"secr)", false, "HTTP 500"}),
    [](const ::testing::TestParamInfo<Row>& row) { return row.param.name; });

}  // namespace THIS_FILE
}  // namespace tranche::kube
