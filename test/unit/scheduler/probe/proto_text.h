// Protocol buffer messages for tests, written field by field.
#pragma once

#include <cstdint>
#include <string>

namespace tranche::probe {

inline std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7U) bytes.push_back(static_cast<char>(0x80 | (value & 0x7F)));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

inline std::string Tag(uint32_t number, uint32_t wire) {
  return Varint(uint64_t{number} << 3U | wire);
}

// Text, bytes or a message inside.
inline std::string Bytes(uint32_t number, const std::string& value) {
  return Tag(number, 2) + Varint(value.size()) + value;
}

inline std::string Number(uint32_t number, uint64_t value) {
  return Tag(number, 0) + Varint(value);
}

}  // namespace tranche::probe
