// The words of a CEL expression.
//
// Views into the text, which must outlive them. One thread at a time; each byte is read once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tranche::dra {

struct CelToken {
  enum class Kind : uint8_t {
    kEnd,
    kName,
    kInt,
    kString,
    kOtherLiteral,  // a double, an unsigned integer, bytes: nothing here has such a value
    kSign,
  };
  Kind kind = Kind::kEnd;
  std::string text;  // of a string: what it stands for
  int64_t number = 0;
  std::size_t at = 0;

  bool Is(std::string_view sign) const { return kind == Kind::kSign && text == sign; }
};

class CelLexer {
 public:
  explicit CelLexer(std::string_view text) : text_(text) {}
  // Errors: InvalidArgument; then no more tokens may be asked for.
  absl::Status Next(CelToken& token);

 private:
  void SkipBlanks();
  absl::Status TakeNumber(CelToken& token);
  enum class Escapes : uint8_t { kRead, kKept };  // kKept: of r"..."
  absl::Status TakeString(Escapes escapes, CelToken& token);
  absl::Status TakeEscape(std::string& out);
  absl::Status TakeSign(CelToken& token);
  absl::Status Unreadable(std::string_view what) const;

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace tranche::dra
