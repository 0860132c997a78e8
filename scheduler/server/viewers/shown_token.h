// A bearer token as its holder shows it: whether it can be one at all, and what it says of its own
// time. Nothing here proves anything; that is the API server's.
//
// Pure functions, any thread. Cost: a pass over the token.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tranche {

// Longer than any header that is read.
inline constexpr std::size_t kMostTokenBytes = std::size_t{16} * 1024;

struct ShownToken {
  std::string text;
  // By its claims `exp` and `nbf`, where it is a JWT; nullopt: it says nothing.
  std::optional<std::chrono::sys_seconds> ends = std::nullopt;
  std::optional<std::chrono::sys_seconds> begins = std::nullopt;

  bool GoodAt(std::chrono::system_clock::time_point now) const {
    return (!ends || now < *ends) && (!begins || *begins <= now);
  }
};

// Of an Authorization header. nullopt: no token, one with characters or of a size that none has, or
// one that begins as a JWT and is none that anybody signs.
std::optional<ShownToken> ReadShownToken(std::string_view authorization);

using TokenDigest = std::array<uint8_t, 32>;
// SHA-256.
TokenDigest DigestOf(std::string_view token);

}  // namespace tranche
