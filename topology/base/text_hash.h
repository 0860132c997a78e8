// A hash of short texts, for tables that are looked up and never iterated.
//
// Seeded, so that who chooses the texts cannot choose ones that all meet in one place: the seed is
// drawn at start and shown to nobody. Values differ between machines and starts; no result may
// depend on them. Cost: a multiplication for every eight bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "topology/base/int128.h"

namespace tranche {

inline constexpr std::size_t kWordBytes = sizeof(uint64_t);

inline uint64_t LoadWord(const char* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, kWordBytes);
  return word;
}

inline uint64_t HashText(std::string_view text, uint64_t seed) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  const auto fold = [](uint64_t left, uint64_t right) {
    const Uint128 product = Uint128{left} * right;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  uint64_t hash = fold(seed ^ text.size(), kOdd);
  if (text.size() < kWordBytes) {
    for (const char c : text) hash = (hash << 8 | hash >> 56) ^ static_cast<unsigned char>(c);
    return fold(hash, seed | 1);
  }
  for (std::size_t at = 0; at + kWordBytes < text.size(); at += kWordBytes) {
    hash = fold(hash ^ LoadWord(text.data() + at), seed | 1);
  }
  return fold(hash ^ LoadWord(text.data() + text.size() - kWordBytes), kOdd);
}

}  // namespace tranche
