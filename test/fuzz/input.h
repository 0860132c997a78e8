// The bytes of a fuzz input as the parsers expect them: readable for a while behind their end.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "topology/base/check.h"

namespace tranche::fuzz {

inline std::string Padded(const uint8_t* data, std::size_t size) {
  std::string text;
  text.reserve(size + simdjson::SIMDJSON_PADDING);
  text.assign(reinterpret_cast<const char*>(data), size);
  return text;
}

}  // namespace tranche::fuzz
