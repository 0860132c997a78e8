// Semantic versions as attributes and CEL's semver() have them: major.minor.patch[-pre][+build].
//
// A view of its text. Order is that of semver 2.0.0, in which the build does not count. Any thread.
// Source: semver.org section 11; dra facts section 3.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tranche::dra {

struct Semver {
  int64_t major = 0;
  int64_t minor = 0;
  int64_t patch = 0;
  std::string_view pre;  // without the dash; empty: a release
};

// nullopt: no version in its shortest form ("1.2" and "01.2.3" are none).
std::optional<Semver> ParseSemver(std::string_view text);
std::strong_ordering Compare(const Semver& left, const Semver& right);

}  // namespace tranche::dra
