// The bytes of a fuzz input as the parsers expect them: readable for a while behind their end.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "topology/base/check.h"

namespace tranche::fuzz {

// As behind the bodies that the server hands over.
inline constexpr std::size_t kPadding = 64;
static_assert(kPadding >= simdjson::SIMDJSON_PADDING);

inline std::string Padded(const uint8_t* data, std::size_t size) {
  std::string text;
  text.reserve(size + kPadding);
  text.assign(reinterpret_cast<const char*>(data), size);
  return text;
}

}  // namespace tranche::fuzz
