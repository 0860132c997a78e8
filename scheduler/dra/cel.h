// Does a device match a selector? A subset of CEL with a fourth answer: "not known here".
//
// Read: device.driver, .attributes, .capacity, .allowMultipleAllocations; == != < <= > >= && || !
// ?: in, whole-number arithmetic, lists, has(), optional selection (.?name, [?'d'], orValue,
// hasValue, value), quantity() and semver() with their methods, startsWith, endsWith, contains,
// size, lowerAscii, upperAscii, and matches() with simple patterns (pattern.h). Everything else
// (comprehensions, cel.bind, doubles, list attributes, other functions) is unknown, and && and ||
// absorb it and errors as CEL does: false && error is false.
//
// A missing attribute is an error, and kube-scheduler gives up the pod on one; a missing domain is
// an empty map. Limits: 10 KiB of text, nesting 64; there are no loops, so a text costs at most one
// visit of each of its operations. Immutable after Compile: any thread may evaluate. Evaluation
// allocates only for lowerAscii and upperAscii, and for the reason of an error or unknown.
// Source: dra facts section 3; dynamic-resource-allocation/cel of kubernetes/kubernetes.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "scheduler/dra/cel_tree.h"
#include "scheduler/dra/model.h"

namespace tranche::dra {

enum class Match : uint8_t { kNo, kYes, kError, kUnknown };

struct Verdict {
  Match match = Match::kNo;
  std::string why;  // of kError and kUnknown: "no attribute profile"
};

class Expression {
 public:
  // Text that cannot be read makes an expression that is always unknown.
  static Expression Compile(std::string_view text);
  Verdict Matches(const Device& device, std::string_view driver) const;

 private:
  CelTree tree_;
  std::string unreadable_;  // why; empty: it could be read
};

// Expressions by their text, each compiled once. One thread at a time. What Get returned holds
// until the next call of Get: over 10,000 texts it starts anew.
class Expressions {
 public:
  const Expression& Get(const std::string& text);

 private:
  std::map<std::string, Expression, std::less<>> compiled_;
};

}  // namespace tranche::dra
