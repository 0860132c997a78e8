#include "scheduler/wire/json/json_value.h"

#include <nlohmann/json.hpp>

#include "scheduler/wire/json/json.h"

namespace tranche::wire {

std::string Dump(const Json& value, int indent) {
  constexpr bool kAsciiOnly = false;
  return value.dump(indent, ' ', kAsciiOnly, Json::error_handler_t::replace);
}

Json TextOrNull(std::string_view text) { return text.empty() ? Json() : Json(text); }

Json TimeOrNull(std::optional<Instant> time) { return time ? Json(FormatTime(*time)) : Json(); }

}  // namespace tranche::wire
