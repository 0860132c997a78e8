#include "scheduler/wire/json/lenient_parser.h"

#include <charconv>
#include <cstdint>
#include <system_error>

namespace tranche::wire {
namespace {

constexpr std::size_t kLargeBytes = 1024 * 1024;

bool IsNumberByte(char byte) {
  return (byte >= '0' && byte <= '9') || byte == '-' || byte == '+' || byte == '.' || byte == 'e' ||
         byte == 'E';
}

// One past the string that begins at `start`, or the end of a text that does not end it.
std::size_t EndOfString(std::string_view text, std::size_t start) {
  for (std::size_t i = start + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return text.size();
}

// One past the list or object that begins at `start`, as brackets and strings say.
std::size_t EndOfNest(std::string_view text, std::size_t start) {
  std::size_t depth = 0;
  for (std::size_t i = start; i < text.size();) {
    const char byte = text[i];
    if (byte == '"') {
      i = EndOfString(text, i);
      continue;
    }
    ++i;
    if (byte == '{' || byte == '[') ++depth;
    if ((byte == '}' || byte == ']') && --depth == 0) return i;
  }
  return text.size();
}

// A well-formed number that a 64-bit integer or a double cannot say.
bool IsBeyondRange(std::string_view number) {
  const char* const end = number.data() + number.size();
  if (number.find_first_of(".eE") != std::string_view::npos) {
    double value = 0;
    const auto read = std::from_chars(number.data(), end, value);
    return read.ptr == end && read.ec == std::errc::result_out_of_range;
  }
  int64_t value = 0;
  const auto read = std::from_chars(number.data(), end, value);
  if (read.ptr != end || read.ec != std::errc::result_out_of_range) return false;
  uint64_t large = 0;
  return std::from_chars(number.data(), end, large).ec != std::errc();
}

}  // namespace

std::string Tamed(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char byte = text[i];
    const bool opens = byte == '{' || byte == '[';
    std::size_t end = i + 1;
    if (byte == '"') end = EndOfString(text, i);
    if (opens && depth == kMaxDepth) {
      i = EndOfNest(text, i);
      out += "null";
      continue;
    }
    if (opens) ++depth;
    if ((byte == '}' || byte == ']') && depth > 0) --depth;
    if (IsNumberByte(byte)) {
      while (end < text.size() && IsNumberByte(text[end])) ++end;
    }
    const std::string_view token = text.substr(i, end - i);
    const bool quotes = IsNumberByte(byte) && IsBeyondRange(token);
    if (quotes) out += '"';
    out += token;
    if (quotes) out += '"';
    i = end;
  }
  return out;
}

absl::StatusOr<Element> LenientParser::Parse(std::string_view text, Padding padding) {
  Rest();
  Parser& parser = text.size() > kLargeBytes ? large_.emplace() : kept_;
  absl::StatusOr<Element> document = parser.Parse(text, padding);
  if (document.ok()) return document;
  tamed_ = Tamed(text);
  // The first word on a text that stays refused is the one about the text itself.
  absl::StatusOr<Element> second = parser.Parse(tamed_);
  return second.ok() ? second : document;
}

void LenientParser::Rest() {
  large_.reset();
  if (tamed_.capacity() > kLargeBytes) tamed_ = std::string();
}

}  // namespace tranche::wire
