// Bytes of JSON strings that stand for themselves: ASCII, no control character, no quote and no
// backslash.
#pragma once

#include <cstddef>
#include <cstdint>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "topology/base/text_hash.h"

namespace tranche::wire {

// The high bit of every byte that is not plain is set, up to the first of them; of those behind it
// nothing is said.
inline uint64_t SpecialBytes(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHighBits = 0x8080808080808080;
  const auto zeros = [](uint64_t bytes) { return (bytes - kOnes) & ~bytes & kHighBits; };
  return ((word - kOnes * 0x20) & ~word & kHighBits) | (word & kHighBits) |
         zeros(word ^ (kOnes * '"')) | zeros(word ^ (kOnes * '\\'));
}

// What 64 bytes are, the first in the lowest bit.
struct TextBlock {
  uint64_t quotes = 0;
  uint64_t special = 0;  // neither plain nor a quote
};

inline TextBlock LookAtBytes(const char* bytes) {
  TextBlock block;
  for (std::size_t i = 0; i < 64; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    block.quotes |= uint64_t{byte == '"'} << i;
    block.special |= uint64_t{byte < 0x20 || byte >= 0x80 || byte == '\\'} << i;
  }
  return block;
}

// Requires: 64 bytes are readable.
inline TextBlock LookAt(const char* bytes) {
#ifdef __SSE2__
  TextBlock block;
  for (int i = 0; i < 4; ++i) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes) + i);
    const __m128i quotes = _mm_cmpeq_epi8(part, _mm_set1_epi8('"'));
    // Signed, so that bytes beyond ASCII are below a space, as control characters are.
    const __m128i special = _mm_or_si128(_mm_cmplt_epi8(part, _mm_set1_epi8(' ')),
                                         _mm_cmpeq_epi8(part, _mm_set1_epi8('\\')));
    const auto bits = [](__m128i mask) {
      return uint64_t{static_cast<uint16_t>(_mm_movemask_epi8(mask))};
    };
    block.quotes |= bits(quotes) << 16 * i;
    block.special |= bits(special) << 16 * i;
  }
  return block;
#else
  return LookAtBytes(bytes);
#endif
}

}  // namespace tranche::wire
