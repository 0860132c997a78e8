#include "scheduler/dra/cel_lexer.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "topology/base/status.h"

namespace tranche::dra {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsNameChar(char c) { return IsNameStart(c) || IsDigit(c); }

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

absl::Status CelLexer::Unreadable(std::string_view what) const {
  return absl::InvalidArgumentError(fmt::format("{} at byte {}", what, at_));
}

void CelLexer::SkipBlanks() {
  while (at_ < text_.size()) {
    if (text_.substr(at_).starts_with("//")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' ||
               text_[at_] == '\r' || text_[at_] == '\f') {
      ++at_;
    } else {
      return;
    }
  }
}

absl::Status CelLexer::Next(CelToken& token) {
  SkipBlanks();
  token = {};
  token.at = at_;
  if (at_ == text_.size()) return absl::OkStatus();
  const char c = text_[at_];
  if (IsDigit(c)) return TakeNumber(token);
  if (c == '"' || c == '\'') return TakeString(Escapes::kRead, token);
  if (!IsNameStart(c)) return TakeSign(token);
  std::size_t end = at_;
  while (end < text_.size() && IsNameChar(text_[end])) ++end;
  const std::string_view name = text_.substr(at_, end - at_);
  const bool quoted = end < text_.size() && (text_[end] == '"' || text_[end] == '\'');
  if (quoted) {
    at_ = end;
    if (name == "r" || name == "R") return TakeString(Escapes::kKept, token);
    if (name != "b" && name != "B") return Unreadable("a quote behind a name");
    const absl::Status status = TakeString(Escapes::kRead, token);
    token.kind = CelToken::Kind::kOtherLiteral;
    return status;
  }
  at_ = end;
  token.kind = CelToken::Kind::kName;
  token.text = name;
  return absl::OkStatus();
}

absl::Status CelLexer::TakeNumber(CelToken& token) {
  const bool hex = text_.substr(at_).starts_with("0x");
  const char* const start = text_.data() + at_ + (hex ? 2 : 0);
  const char* const end = text_.data() + text_.size();
  const auto [stop, error] = std::from_chars(start, end, token.number, hex ? 16 : 10);
  if (error != std::errc()) return Unreadable("a number that does not fit 64 bits");
  token.kind = CelToken::Kind::kInt;
  at_ = static_cast<std::size_t>(stop - text_.data());
  const std::string_view rest = text_.substr(at_);
  const bool fraction = rest.size() > 1 && rest[0] == '.' && IsDigit(rest[1]);
  const bool other = fraction || rest.starts_with('e') || rest.starts_with('E') ||
                     rest.starts_with('u') || rest.starts_with('U');
  if (!other) return absl::OkStatus();
  token.kind = CelToken::Kind::kOtherLiteral;
  ++at_;
  while (at_ < text_.size() && (IsNameChar(text_[at_]) || text_[at_] == '.')) ++at_;
  return absl::OkStatus();
}

absl::Status CelLexer::TakeString(Escapes escapes, CelToken& token) {
  const char quote = text_[at_];
  const std::string triple(3, quote);
  if (text_.substr(at_).starts_with(triple)) return Unreadable("a string in triple quotes");
  ++at_;
  token.kind = CelToken::Kind::kString;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == quote) return absl::OkStatus();
    if (c == '\n' || c == '\r') break;
    if (c != '\\' || escapes == Escapes::kKept) {
      token.text.push_back(c);
    } else {
      TRANCHE_RETURN_IF_ERROR(TakeEscape(token.text));
    }
  }
  return Unreadable("a string without its closing quote");
}

// What follows a backslash: letters, \xHH below 128 and quotes; octal and \u codes are left out.
absl::Status CelLexer::TakeEscape(std::string& out) {
  struct Letter {
    char name;
    char meaning;
  };
  constexpr std::array kLetters = {Letter{'n', '\n'}, Letter{'t', '\t'},  Letter{'r', '\r'},
                                   Letter{'a', '\a'}, Letter{'b', '\b'},  Letter{'f', '\f'},
                                   Letter{'v', '\v'}, Letter{'\\', '\\'}, Letter{'\'', '\''},
                                   Letter{'"', '"'},  Letter{'`', '`'},   Letter{'?', '?'}};
  if (at_ == text_.size()) return Unreadable("a string without its closing quote");
  const char c = text_[at_++];
  for (const Letter& letter : kLetters) {
    if (letter.name != c) continue;
    out.push_back(letter.meaning);
    return absl::OkStatus();
  }
  if (c == 'x' && at_ + 1 < text_.size()) {
    const int high = HexDigit(text_[at_]);
    const int low = HexDigit(text_[at_ + 1]);
    if (high >= 0 && high < 8 && low >= 0) {
      out.push_back(static_cast<char>(high * 16 + low));
      at_ += 2;
      return absl::OkStatus();
    }
  }
  return Unreadable("an escape that is not known");
}

absl::Status CelLexer::TakeSign(CelToken& token) {
  constexpr std::array<std::string_view, 23> kSigns = {"==", "!=", "<=", ">=", "&&", "||", "<", ">",
                                                       "!",  "?",  ":",  ".",  ",",  "(",  ")", "[",
                                                       "]",  "+",  "-",  "*",  "/",  "%",  "="};
  for (const std::string_view sign : kSigns) {
    if (!text_.substr(at_).starts_with(sign)) continue;
    token.kind = CelToken::Kind::kSign;
    token.text = sign;
    at_ += sign.size();
    return absl::OkStatus();
  }
  return Unreadable("a sign that is not known");
}

}  // namespace tranche::dra
