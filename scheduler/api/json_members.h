// JSON members appended to a text as it goes; internal to the API's encoders.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler/facts/reason_words.h"
#include "scheduler/wire/json/json.h"
#include "topology/base/units.h"

namespace tranche {

using wire::AppendQuoted;

inline void AppendInteger(std::string& out, int64_t value) {
  const fmt::format_int text(value);
  out.append(text.data(), text.size());
}

// ,"key":  or  "key":  at the start of an object.
inline void AppendKey(std::string& out, std::string_view key) {
  if (out.back() != '{') out += ',';
  out += '"';
  out += key;
  out += "\":";
}
inline void AppendMember(std::string& out, std::string_view key, std::string_view value) {
  AppendKey(out, key);
  AppendQuoted(out, value);
}
inline void AppendMember(std::string& out, std::string_view key, int64_t value) {
  AppendKey(out, key);
  AppendInteger(out, value);
}
inline void AppendMember(std::string& out, std::string_view key,
                         const std::optional<int64_t>& value) {
  AppendKey(out, key);
  if (value) {
    AppendInteger(out, *value);
  } else {
    out += "null";
  }
}
inline void AppendFlag(std::string& out, std::string_view key, bool value) {
  AppendKey(out, key);
  out += value ? "true" : "false";
}
inline void AppendNull(std::string& out, std::string_view key) {
  AppendKey(out, key);
  out += "null";
}
// Empty text stands for "none".
inline void AppendTextOrNull(std::string& out, std::string_view key, std::string_view value) {
  if (value.empty()) {
    AppendNull(out, key);
  } else {
    AppendMember(out, key, value);
  }
}

// "key":[...], each item written by `append`.
template <typename Items, typename Append>
void AppendList(std::string& out, std::string_view key, const Items& items, Append append) {
  AppendKey(out, key);
  out += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ',';
    first = false;
    append(out, item);
  }
  out += ']';
}

inline void AppendTimeOrNull(std::string& out, std::string_view key, std::optional<Instant> time) {
  AppendTextOrNull(out, key, time ? wire::FormatTime(*time) : "");
}

inline void AppendReason(std::string& out, std::string_view key, Reason reason,
                         std::string_view detail, SaidOf whom,
                         std::optional<Instant> eligible_at = std::nullopt) {
  if (reason == Reason::kNone) {
    AppendNull(out, key);
    return;
  }
  AppendKey(out, key);
  out += '{';
  AppendMember(out, "code", Describe(reason).code);
  AppendMember(out, "text", TextOf(reason, whom));
  AppendMember(out, "detail", detail);
  AppendTimeOrNull(out, "eligibleAt", eligible_at);
  out += '}';
}

}  // namespace tranche
