// A hash of a text that is the same on every machine and in every release, for names and ids that
// are kept: FNV-1a, 64 bits. Whoever chooses texts can make two of them meet.
#pragma once

#include <cstdint>
#include <string_view>

namespace tranche {

constexpr uint64_t StableHash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

// Source: the test vectors of the FNV specification (draft-eastlake-fnv).
static_assert(StableHash("") == 0xcbf29ce484222325 && StableHash("a") == 0xaf63dc4c8601ec8c &&
              StableHash("foobar") == 0x85944171f73967e8);

}  // namespace tranche
