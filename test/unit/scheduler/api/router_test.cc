#include "scheduler/api/router.h"

#include <gtest/gtest.h>

namespace tranche {
namespace THIS_FILE {

TEST(RouterTest, AnErrorHasTheCodeOfItsKind) {
  const std::pair<absl::Status, int> rows[] = {
      {absl::OkStatus(), 200},
      {absl::InvalidArgumentError("from: expected an RFC 3339 time"), 400},
      {absl::NotFoundError("no ledger at F.db"), 404},
      {absl::DataLossError("the hash chain is broken"), 503},
      {absl::FailedPreconditionError("a ledger of a later version"), 503},
      {absl::UnavailableError("the ledger is busy"), 503},
      {absl::ResourceExhaustedError("too many"), 503},
  };
  for (const auto& [status, code] : rows) {
    EXPECT_EQ(CodeOf(status), code) << status;
    EXPECT_EQ(ErrorResponse(status).status, code) << status;
  }
  EXPECT_EQ(ErrorResponse(rows[2].first).body, R"({"error":"no ledger at F.db"})");
}

TEST(RouterTest, HeadIsAnsweredWhereGetIsAndMethodsThatAreAreNamed) {
  Router router;
  const auto answer = [](const http::Request& request) { return JsonResponse(request.method); };
  router.AddAnswer("GET", "/list", answer);
  router.AddAnswer("GET", "/below/", answer);
  router.AddAnswer("POST", "/ask", answer);
  const struct {
    const char* method;
    const char* path;
    int status;
    const char* allow;
  } rows[] = {
      {"GET", "/list", 200, ""},     {"HEAD", "/list", 200, ""},
      {"HEAD", "/below/x", 200, ""}, {"POST", "/list", 405, "GET, HEAD"},
      {"HEAD", "/ask", 405, "POST"}, {"HEAD", "/nothing", 404, ""},
  };
  for (const auto& [method, path, status, allow] : rows) {
    http::Request request;
    request.method = method;
    request.path = path;
    http::Response got;
    router.Route(std::move(request),
                 [&got](http::Response response) { got = std::move(response); });
    EXPECT_EQ(got.status, status) << method << " " << path;
    EXPECT_EQ(got.headers["Allow"], allow) << method << " " << path;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
