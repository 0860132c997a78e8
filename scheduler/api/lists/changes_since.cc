#include "scheduler/api/lists/changes_since.h"

#include <charconv>
#include <random>

namespace tranche {

std::string NameOfProcess() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

std::optional<uint64_t> NumberOfVersion(std::string_view text, std::string_view process) {
  if (!text.starts_with(process)) return std::nullopt;
  text.remove_prefix(process.size());
  if (!text.starts_with('-')) return std::nullopt;
  text.remove_prefix(1);
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace tranche
