// A broken promise between pieces of our own code: print it and stop the process.
//
// Never used for input from outside (that is an absl::Status) nor for "does not fit" (a value).
// The forms with two operands (TRANCHE_CHECK_EQ, _NE, _LT, _LE, _GT, _GE) print both values as
// well. Their operands must have no side effects: a failed check evaluates them again to print
// them.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

namespace tranche {

// Print to standard error and abort.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& left, const std::string& right);

// A value as a failed check prints it: a number, the number of an enumerator or index, a count of a
// unit, or text.
template <typename T>
std::string CheckedValue(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return CheckedValue(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return std::to_string(value);
  } else if constexpr (requires { value.count(); }) {
    return CheckedValue(value.count());
  } else if constexpr (requires { value.number(); }) {
    return CheckedValue(value.number());
  } else if constexpr (requires { value.str(); }) {
    return value.str();
  } else {
    return std::string(std::string_view(value));
  }
}

}  // namespace tranche

#define TRANCHE_CHECK(condition)                            \
  do {                                                      \
    if (!(condition)) [[unlikely]] {                        \
      tranche::CheckFailed(__FILE__, __LINE__, #condition); \
    }                                                       \
  } while (false)

#define TRANCHE_CHECK_OP(left, op, right)                                              \
  do {                                                                                 \
    if (!((left)op(right))) [[unlikely]] {                                             \
      tranche::CheckFailed(__FILE__, __LINE__, #left " " #op " " #right,               \
                           tranche::CheckedValue(left), tranche::CheckedValue(right)); \
    }                                                                                  \
  } while (false)

#define TRANCHE_CHECK_EQ(left, right) TRANCHE_CHECK_OP(left, ==, right)
#define TRANCHE_CHECK_NE(left, right) TRANCHE_CHECK_OP(left, !=, right)
#define TRANCHE_CHECK_LT(left, right) TRANCHE_CHECK_OP(left, <, right)
#define TRANCHE_CHECK_LE(left, right) TRANCHE_CHECK_OP(left, <=, right)
#define TRANCHE_CHECK_GT(left, right) TRANCHE_CHECK_OP(left, >, right)
#define TRANCHE_CHECK_GE(left, right) TRANCHE_CHECK_OP(left, >=, right)
