#include "scheduler/wire/json/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace tranche::wire {
namespace {

constexpr std::size_t kQuotedBytes = 64;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

std::string_view Explain(simdjson::error_code error) {
  switch (error) {
    case simdjson::EMPTY:
      return "nothing";
    case simdjson::DEPTH_ERROR:
      return "more than 64 levels of nesting";
    case simdjson::CAPACITY:
      return "more than 256 MiB";
    case simdjson::MEMALLOC:
      return "a document too large for the free memory";
    case simdjson::UTF8_ERROR:
      return "bytes that are not UTF-8";
    case simdjson::STRING_ERROR:
      return "a malformed string";
    case simdjson::UNCLOSED_STRING:
      return "a string without its closing quote";
    case simdjson::UNESCAPED_CHARS:
      return "a control character inside a string";
    case simdjson::NUMBER_ERROR:
      return "a malformed number or one beyond 64 bits";
    case simdjson::T_ATOM_ERROR:
    case simdjson::F_ATOM_ERROR:
    case simdjson::N_ATOM_ERROR:
      return "a misspelt true, false or null";
    default:
      return "a malformed structure (brackets, commas, colons or text behind the end)";
  }
}

char Lower(char byte) { return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte; }

bool EqualAnyCase(std::string_view left, std::string_view right) {
  return left.size() == right.size() &&
         std::equal(left.begin(), left.end(), right.begin(),
                    [](char a, char b) { return Lower(a) == Lower(b); });
}

template <typename Value>
std::optional<Value> FindAs(Object object, std::string_view key) {
  const std::optional<Element> found = Find(object, key);
  Value value;
  if (!found || found->get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

unsigned Byte(char byte) { return static_cast<unsigned char>(byte); }

// The bytes of the well-formed UTF-8 sequence at the start of `text` (RFC 3629 table 3-7: no
// overlong forms, no surrogates, nothing above U+10FFFF); 0 when there is none.
std::size_t Utf8SequenceBytes(std::string_view text) {
  const unsigned lead = Byte(text[0]);
  if (lead < 0x80) return 1;
  std::size_t bytes = 0;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    bytes = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    bytes = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    bytes = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  }
  if (bytes == 0 || text.size() < bytes) return 0;
  if (Byte(text[1]) < low || Byte(text[1]) > high) return 0;
  for (std::size_t i = 2; i < bytes; ++i) {
    if ((Byte(text[i]) & 0xC0) != 0x80) return 0;
  }
  return bytes;
}

bool IsPlain(char byte) {
  return Byte(byte) >= 0x20 && Byte(byte) < 0x80 && byte != '"' && byte != '\\';
}

void AppendEscaped(std::string& out, char byte) {
  switch (byte) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", Byte(byte));
  }
}

// Takes exactly `digits` decimal digits off the front.
std::optional<int> TakeNumber(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool Take(std::string_view& text, char expected) {
  if (text.empty() || text[0] != expected) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<std::chrono::sys_days> TakeDate(std::string_view& text) {
  const std::optional<int> year = TakeNumber(text, 4);
  if (!year || !Take(text, '-')) return std::nullopt;
  const std::optional<int> month = TakeNumber(text, 2);
  if (!month || !Take(text, '-')) return std::nullopt;
  const std::optional<int> day = TakeNumber(text, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{*year},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days{date};
}

// "hh:mm"
std::optional<std::chrono::minutes> TakeHourMinute(std::string_view& text) {
  const std::optional<int> hour = TakeNumber(text, 2);
  if (!hour || *hour > 23 || !Take(text, ':')) return std::nullopt;
  const std::optional<int> minute = TakeNumber(text, 2);
  if (!minute || *minute > 59) return std::nullopt;
  return std::chrono::hours{*hour} + std::chrono::minutes{*minute};
}

// ":ss" and what may follow behind a dot; digits beyond milliseconds are cut off.
std::optional<std::chrono::milliseconds> TakeSeconds(std::string_view& text) {
  if (!Take(text, ':')) return std::nullopt;
  const std::optional<int> second = TakeNumber(text, 2);
  if (!second || *second > 59) return std::nullopt;
  int millis = 0;
  if (Take(text, '.')) {
    std::size_t digits = 0;
    for (int weight = 100; const std::optional<int> digit = TakeNumber(text, 1); weight /= 10) {
      millis += *digit * weight;
      ++digits;
    }
    if (digits == 0) return std::nullopt;
  }
  return std::chrono::seconds{*second} + std::chrono::milliseconds{millis};
}

// "Z" or "+hh:mm" or "-hh:mm", and nothing behind it.
std::optional<std::chrono::minutes> TakeOffset(std::string_view text) {
  if (text == "Z") return std::chrono::minutes{0};
  const bool east = Take(text, '+');
  if (!east && !Take(text, '-')) return std::nullopt;
  const std::optional<std::chrono::minutes> offset = TakeHourMinute(text);
  if (!offset || !text.empty()) return std::nullopt;
  return east ? *offset : -*offset;
}

}  // namespace

Parser::Parser() : parser_(kMaxDocumentBytes) {}

absl::StatusOr<Element> Parser::Parse(std::string_view text, Padding padding) {
  // simdjson counts the document itself as a level.
  if (parser_.capacity() == 0) {
    const simdjson::error_code error = parser_.allocate(1024, kMaxDepth + 1);
    if (error != simdjson::SUCCESS) {
      return absl::InvalidArgumentError(fmt::format("expected JSON, found {}", Explain(error)));
    }
  }
  Element document;
  const simdjson::error_code error =
      parser_.parse(text.data(), text.size(), padding == Padding::kNone).get(document);
  if (error != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(fmt::format("expected JSON, found {}", Explain(error)));
  }
  return document;
}

std::optional<Element> Find(Object object, std::string_view key) {
  std::optional<Element> found;
  for (const auto field : object) {
    if (field.key == key) found = field.value;
  }
  if (found && found->is_null()) return std::nullopt;
  return found;
}

std::optional<Element> FindAnyCase(Object object, std::string_view key) {
  std::optional<Element> exact;
  std::optional<Element> inexact;
  for (const auto field : object) {
    if (field.key == key) {
      exact = field.value;
    } else if (EqualAnyCase(field.key, key)) {
      inexact = field.value;
    }
  }
  std::optional<Element> found = exact ? exact : inexact;
  if (found && found->is_null()) return std::nullopt;
  return found;
}

std::optional<Object> FindObject(Object object, std::string_view key) {
  return FindAs<Object>(object, key);
}

std::optional<Array> FindArray(Object object, std::string_view key) {
  return FindAs<Array>(object, key);
}

std::optional<std::string_view> FindText(Object object, std::string_view key) {
  return FindAs<std::string_view>(object, key);
}

std::optional<bool> FindBool(Object object, std::string_view key) {
  return FindAs<bool>(object, key);
}

std::optional<int64_t> FindInteger(Object object, std::string_view key) {
  // simdjson converts between integer types by itself; a double is never taken for an integer.
  return FindAs<int64_t>(object, key);
}

std::optional<std::chrono::sys_time<std::chrono::milliseconds>> ParseTime(std::string_view text) {
  const std::optional<std::chrono::sys_days> date = TakeDate(text);
  if (!date || !Take(text, 'T')) return std::nullopt;
  const std::optional<std::chrono::minutes> minutes = TakeHourMinute(text);
  if (!minutes) return std::nullopt;
  const std::optional<std::chrono::milliseconds> seconds = TakeSeconds(text);
  if (!seconds) return std::nullopt;
  const std::optional<std::chrono::minutes> offset = TakeOffset(text);
  if (!offset) return std::nullopt;
  return *date + *minutes + *seconds - *offset;
}

std::string FormatTime(std::chrono::sys_time<std::chrono::milliseconds> time) {
  const auto midnight = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{midnight};
  const std::chrono::hh_mm_ss clock{time - midnight};
  std::string out =
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  clock.hours().count(), clock.minutes().count(), clock.seconds().count());
  const auto millis = clock.subseconds().count();
  if (millis != 0) fmt::format_to(std::back_inserter(out), ".{:03}", millis);
  out += 'Z';
  return out;
}

void AppendQuoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto plain_end = std::find_if_not(text.begin(), text.end(), IsPlain);
    const auto plain = static_cast<std::size_t>(plain_end - text.begin());
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t bytes = Utf8SequenceBytes(text);
    if (bytes == 0) {
      out += kReplacement;
    } else if (bytes == 1) {
      AppendEscaped(out, text[0]);
    } else {
      out.append(text.substr(0, bytes));
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  out += '"';
}

std::string_view CutAt(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (Byte(text[limit]) & 0xC0) == 0x80) --limit;
  return text.substr(0, limit);
}

std::string Quoted(std::string_view text) {
  std::string out;
  AppendQuoted(out, CutAt(text, kQuotedBytes));
  return text.size() <= kQuotedBytes ? out : out + "...";
}

}  // namespace tranche::wire
