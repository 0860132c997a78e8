// Returning an error to the caller in one line.
//
// Both macros evaluate their expression once and return from the function they stand in, which must
// return absl::Status or an absl::StatusOr. They keep the error as it is: where it wants more words
// (a path, a line), write the `if` out. Cost: that of the written-out `if`, and one move of the
// value; none where the declaration is a reference, which then refers to the kept result.
//
// Example:
//   TRANCHE_RETURN_IF_ERROR(journal.Append(entry));
//   TRANCHE_ASSIGN_OR_RETURN(const int64_t amount, ParseWholeQuantity(text));
#pragma once

#include <utility>

#include "absl/status/status.h"

#define TRANCHE_RETURN_IF_ERROR(...)                                                    \
  do {                                                                                  \
    if (absl::Status tranche_error = (__VA_ARGS__); !tranche_error.ok()) [[unlikely]] { \
      return tranche_error;                                                             \
    }                                                                                   \
  } while (false)

// Declares a variable in the scope around it, so it never is the only statement of an `if`.
#define TRANCHE_ASSIGN_OR_RETURN(declaration, ...) \
  TRANCHE_ASSIGN_OR_RETURN_AS(TRANCHE_JOINED(tranche_result_, __LINE__), declaration, __VA_ARGS__)

#define TRANCHE_ASSIGN_OR_RETURN_AS(result, declaration, ...) \
  auto result = (__VA_ARGS__);                                \
  if (!result.ok()) [[unlikely]] {                            \
    return std::move(result).status();                        \
  }                                                           \
  declaration = *std::move(result)

#define TRANCHE_JOINED(left, right) TRANCHE_JOINED_NOW(left, right)
#define TRANCHE_JOINED_NOW(left, right) left##right
