// Returning an error to the caller, and going on with a value.
#include "topology/base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace tranche {
namespace THIS_FILE {

absl::StatusOr<int> Half(int number) {
  if (number % 2 != 0) return absl::InvalidArgumentError("expected an even number");
  return number / 2;
}

absl::Status OnlyEven(int number, int& calls) {
  ++calls;
  TRANCHE_RETURN_IF_ERROR(Half(number).status());
  ++calls;
  return absl::OkStatus();
}

absl::StatusOr<int> Quarter(int number) {
  TRANCHE_ASSIGN_OR_RETURN(const int half, Half(number));
  int quarter = 0;
  TRANCHE_ASSIGN_OR_RETURN(quarter, Half(half));
  return quarter;
}

absl::StatusOr<std::string> Owned(absl::StatusOr<std::unique_ptr<std::string>> text) {
  TRANCHE_ASSIGN_OR_RETURN(const std::unique_ptr<std::string> owned, std::move(text));
  return *owned;
}

TEST(StatusTest, AnErrorReturnsAtOnceAndIsKept) {
  int calls = 0;
  EXPECT_EQ(OnlyEven(3, calls), absl::InvalidArgumentError("expected an even number"));
  EXPECT_EQ(calls, 1);
}

TEST(StatusTest, WithoutErrorTheFunctionGoesOn) {
  int calls = 0;
  EXPECT_TRUE(OnlyEven(4, calls).ok());
  EXPECT_EQ(calls, 2);
}

TEST(StatusTest, AValueIsDeclaredOrAssigned) {
  EXPECT_EQ(Quarter(12).value(), 3);
  EXPECT_EQ(Quarter(6).status(), absl::InvalidArgumentError("expected an even number"));
  EXPECT_EQ(Quarter(5).status(), absl::InvalidArgumentError("expected an even number"));
}

TEST(StatusTest, AValueThatCannotBeCopiedIsMoved) {
  EXPECT_EQ(Owned(std::make_unique<std::string>("text")).value(), "text");
  EXPECT_EQ(Owned(absl::NotFoundError("none")).status(), absl::NotFoundError("none"));
}

}  // namespace THIS_FILE
}  // namespace tranche
