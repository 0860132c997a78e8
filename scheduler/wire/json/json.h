// Small steps over simdjson's DOM that every decoder needs.
//
// simdjson validates the whole text, so JSON that is malformed anywhere is refused even in fields
// nobody reads. Duplicate keys: the last one wins (Find), as in Go's decoder.
#pragma once

#include <simdjson.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tranche::wire {

using Element = simdjson::dom::element;
using Object = simdjson::dom::object;
using Array = simdjson::dom::array;

inline constexpr std::size_t kMaxDepth = 64;
inline constexpr std::size_t kMaxDocumentBytes = 256 * 1024 * 1024;

// Whether a text has simdjson::SIMDJSON_PADDING readable bytes behind its end.
enum class Padding : uint8_t { kNone, kThere };

// A parser reused between documents; elements die with the next Parse. One thread at a time.
class Parser {
 public:
  Parser();
  // The document. A text without padding is copied. Errors: InvalidArgument naming what is
  // malformed.
  absl::StatusOr<Element> Parse(std::string_view text, Padding padding = Padding::kNone);

 private:
  simdjson::dom::parser parser_;
};

// The value of the last member named `key`, null counts as absent; nullopt when there is none.
std::optional<Element> Find(Object object, std::string_view key);
// Same, keys compared without regard to ASCII case (Go decodes the extender types this way); an
// exact match wins over an inexact one.
std::optional<Element> FindAnyCase(Object object, std::string_view key);
// The member as object, array, text or bool; nullopt when absent, null or of another type.
std::optional<Object> FindObject(Object object, std::string_view key);
std::optional<Array> FindArray(Object object, std::string_view key);
std::optional<std::string_view> FindText(Object object, std::string_view key);
std::optional<bool> FindBool(Object object, std::string_view key);
// A JSON integer within int64; nullopt otherwise.
std::optional<int64_t> FindInteger(Object object, std::string_view key);

// RFC 3339 (seconds or fractions, Z or offset) -> UTC milliseconds and back
// ("2026-01-02T03:04:05Z").
std::optional<std::chrono::sys_time<std::chrono::milliseconds>> ParseTime(std::string_view text);
std::string FormatTime(std::chrono::sys_time<std::chrono::milliseconds> time);

// `text` as a JSON string with quotes; invalid UTF-8 is replaced.
void AppendQuoted(std::string& out, std::string_view text);

// The first `limit` bytes, no character cut in two.
std::string_view CutAt(std::string_view text, std::size_t limit);

// What was found where something else was expected, for error texts: `text`, quoted and cut at 64
// bytes, control characters escaped.
std::string Quoted(std::string_view text);

}  // namespace tranche::wire
