#include "scheduler/server/viewers/shown_token.h"

#include <openssl/evp.h>

#include <algorithm>

#include "scheduler/wire/json/json.h"
#include "topology/base/check.h"

namespace tranche {
namespace {

constexpr std::string_view kScheme = "bearer ";
// What JSON objects begin with in base64.
constexpr std::string_view kJwtStart = "eyJ";

bool IsScheme(std::string_view text) {
  return std::ranges::equal(text, kScheme, {}, [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
}

// RFC 6750 section 2.1, and the colon of older tokens.
bool IsTokenCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~+/=:").find(c) != std::string_view::npos;
}

int ValueOf(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '-') return 62;
  return c == '_' ? 63 : -1;
}

// Base64 of URLs, without padding (RFC 7515 section 2).
std::optional<std::string> Decoded(std::string_view part) {
  std::string bytes;
  bytes.reserve(part.size());
  uint32_t bits = 0;
  int count = 0;
  for (const char c : part) {
    const int value = ValueOf(c);
    if (value < 0) return std::nullopt;
    bits = (bits << 6) | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>((bits >> count) & 0xff);
  }
  return bytes;
}

std::optional<std::chrono::sys_seconds> TimeIn(wire::Object claims, std::string_view claim) {
  const std::optional<int64_t> seconds = wire::FindInteger(claims, claim);
  if (!seconds) return std::nullopt;
  // Within what a clock can be compared with.
  constexpr int64_t kFar = int64_t{1} << 33;
  return std::chrono::sys_seconds(std::chrono::seconds(std::clamp(*seconds, int64_t{0}, kFar)));
}

// False: it is none that anybody signs.
bool ReadJwt(ShownToken& token) {
  const std::string_view text = token.text;
  const std::size_t first = text.find('.');
  const std::size_t second = text.find('.', first + 1);
  if (second == std::string_view::npos || second + 1 == text.size() ||
      text.find('.', second + 1) != std::string_view::npos) {
    return false;
  }
  const auto header = Decoded(text.substr(0, first));
  const auto payload = Decoded(text.substr(first + 1, second - first - 1));
  if (!header || !payload || !Decoded(text.substr(second + 1))) return false;
  wire::Parser parser;
  wire::Object object;
  const auto head = parser.Parse(*header);
  if (!head.ok() || head->get(object) != simdjson::SUCCESS) return false;
  const std::optional<std::string_view> algorithm = wire::FindText(object, "alg");
  if (!algorithm || *algorithm == "none") return false;
  const auto claims = parser.Parse(*payload);
  if (!claims.ok() || claims->get(object) != simdjson::SUCCESS) return false;
  token.ends = TimeIn(object, "exp");
  token.begins = TimeIn(object, "nbf");
  return true;
}

}  // namespace

std::optional<ShownToken> ReadShownToken(std::string_view authorization) {
  if (!IsScheme(authorization.substr(0, kScheme.size()))) return std::nullopt;
  const std::string_view text = authorization.substr(kScheme.size());
  if (text.empty() || text.size() > kMostTokenBytes || !std::ranges::all_of(text, IsTokenCharacter))
    return std::nullopt;
  ShownToken token{std::string(text)};
  if (text.starts_with(kJwtStart) && !ReadJwt(token)) return std::nullopt;
  return token;
}

TokenDigest DigestOf(std::string_view token) {
  TokenDigest digest;
  unsigned int size = 0;
  TRANCHE_CHECK(
      EVP_Digest(token.data(), token.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1);
  TRANCHE_CHECK_EQ(size, digest.size());
  return digest;
}

}  // namespace tranche
