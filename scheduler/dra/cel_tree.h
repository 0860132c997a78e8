// A selector's text taken apart into operations, once per text.
//
// Everything CEL's grammar has that the evaluator does not know becomes an operation whose value is
// unknown, so that `false && whatever` still has a value; text that the grammar here cannot read
// at all (map literals, comprehensions over more than a name) is unreadable as a whole.
// Immutable after ParseCel; any thread. Source: CEL language definition, section "Syntax".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/dra/pattern.h"

namespace tranche::dra {

// Bounds of the API (text) and of ours (nesting); what lies beyond is unreadable.
inline constexpr std::size_t kMostCelBytes = 10 * 1024;
inline constexpr int kMostCelDepth = 64;

enum class CelOp : uint8_t {
  kUnknown,  // text: what it is
  kNull,
  kBool,
  kInt,
  kString,
  kQuantity,  // number: thousandths
  kSemver,    // text, which is a version
  kList,
  kDevice,
  kSelect,  // args[0].text
  kIndex,   // args[0][args[1]]
  kHas,     // has(args[0].text)
  kNot,
  kNegate,
  kAnd,  // of two and more
  kOr,
  kConditional,
  kEqual,
  kNotEqual,
  kLess,
  kLessOrEqual,
  kGreater,
  kGreaterOrEqual,
  kIn,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kCall,  // function, receiver first
};

enum class CelFunction : uint8_t {
  kQuantity,
  kIsQuantity,
  kSemver,
  kIsSemver,
  kSize,
  kStartsWith,
  kEndsWith,
  kContains,
  kMatches,  // number: index of the pattern
  kLowerAscii,
  kUpperAscii,
  kCompareTo,
  kIsGreaterThan,
  kIsLessThan,
  kQuantityAdd,
  kQuantitySub,
  kSign,
  kIsInteger,
  kAsInteger,
  kMajor,
  kMinor,
  kPatch,
  kOrValue,
  kHasValue,
  kValue,
};

struct CelNode {
  CelOp op = CelOp::kUnknown;
  CelFunction function = CelFunction::kSize;
  bool optional = false;  // kSelect, kIndex: `.?name`, `[?index]`
  int depth = 1;
  int64_t number = 0;
  std::string text;
  std::vector<int> args;  // indices of nodes before this one
};

struct CelTree {
  std::vector<CelNode> nodes;
  std::vector<Pattern> patterns;
  int root = 0;
};

// Errors: InvalidArgument saying what cannot be read and at which byte.
absl::StatusOr<CelTree> ParseCel(std::string_view text);

}  // namespace tranche::dra
