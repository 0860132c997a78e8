#include "scheduler/dra/semver.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace tranche::dra {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsIdentifierChar(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}
bool IsNumeric(std::string_view text) { return std::ranges::all_of(text, IsDigit); }

// Digits without leading zeros.
std::optional<int64_t> Number(std::string_view text) {
  if (text.empty() || !IsNumeric(text) || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view TakePart(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('.'), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

enum class VersionPart : uint8_t { kPreRelease, kBuild };

// Dot-separated identifiers, none empty; numeric ones of a pre-release without leading zeros.
bool AreIdentifiers(std::string_view text, VersionPart of) {
  if (text.empty() || text.back() == '.') return false;
  while (!text.empty()) {
    const std::string_view part = TakePart(text);
    if (part.empty() || !std::ranges::all_of(part, IsIdentifierChar)) return false;
    if (of == VersionPart::kPreRelease && IsNumeric(part) && !Number(part)) return false;
  }
  return true;
}

// Numbers come before words.
std::strong_ordering ComparePart(std::string_view left, std::string_view right) {
  const std::optional<int64_t> left_number = Number(left);
  const std::optional<int64_t> right_number = Number(right);
  if (left_number && right_number) return *left_number <=> *right_number;
  if (left_number) return std::strong_ordering::less;
  if (right_number) return std::strong_ordering::greater;
  return left.compare(right) <=> 0;
}

std::strong_ordering ComparePre(std::string_view left, std::string_view right) {
  if (left.empty() || right.empty()) return right.size() <=> left.size();
  while (!left.empty() && !right.empty()) {
    const std::strong_ordering order = ComparePart(TakePart(left), TakePart(right));
    if (order != std::strong_ordering::equal) return order;
  }
  return left.size() <=> right.size();
}

}  // namespace

std::optional<Semver> ParseSemver(std::string_view text) {
  Semver version;
  if (const std::size_t plus = text.find('+'); plus != text.npos) {
    if (!AreIdentifiers(text.substr(plus + 1), VersionPart::kBuild)) return std::nullopt;
    text = text.substr(0, plus);
  }
  if (const std::size_t dash = text.find('-'); dash != text.npos) {
    version.pre = text.substr(dash + 1);
    if (!AreIdentifiers(version.pre, VersionPart::kPreRelease)) return std::nullopt;
    text = text.substr(0, dash);
  }
  if (std::ranges::count(text, '.') != 2) return std::nullopt;
  for (int64_t* number : {&version.major, &version.minor, &version.patch}) {
    const std::optional<int64_t> value = Number(TakePart(text));
    if (!value) return std::nullopt;
    *number = *value;
  }
  return version;
}

std::strong_ordering Compare(const Semver& left, const Semver& right) {
  if (left.major != right.major) return left.major <=> right.major;
  if (left.minor != right.minor) return left.minor <=> right.minor;
  if (left.patch != right.patch) return left.patch <=> right.patch;
  return ComparePre(left.pre, right.pre);
}

}  // namespace tranche::dra
