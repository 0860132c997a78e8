#include "scheduler/api/router.h"

#include <gtest/gtest.h>

namespace tranche {
namespace {

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

}  // namespace
}  // namespace tranche
