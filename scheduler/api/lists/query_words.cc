#include "scheduler/api/lists/query_words.h"

#include <fmt/format.h>

#include <charconv>

#include "scheduler/wire/json/json.h"

namespace tranche {

absl::Status BadParameter(std::string_view name, std::string_view expected,
                          const std::string& found) {
  return absl::InvalidArgumentError(
      fmt::format("{}: expected {}, found {}", name, expected, wire::Quoted(found)));
}

std::optional<std::string> ParameterOf(const http::Request& request, const std::string& name) {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return std::nullopt;
  return found->second;
}

absl::StatusOr<uint64_t> ReadNumber(std::string_view name, const std::string& text, uint64_t least,
                                    uint64_t most) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < least || number > most) {
    return BadParameter(name, fmt::format("a number from {} to {}", least, most), text);
  }
  return number;
}

}  // namespace tranche
