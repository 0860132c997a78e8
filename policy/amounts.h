// Amounts as people write them in objects: decimals, durations, GPU model names, bytes.
//
// A reader refuses through its field and then returns nullopt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "policy/field.h"
#include "policy/time_zone.h"
#include "topology/base/units.h"

namespace tranche {

// Thousandths of a decimal: "7.5" -> 7500. Text of digits with at most three decimals, without sign
// and exponent, or a whole JSON number. `most_whole` bounds what stands before the point.
std::optional<int64_t> ThousandthsOf(const Field& field, int64_t most_whole);

// Likewise millionths: "2.49" -> 2490000, at most six decimals.
std::optional<int64_t> MillionthsOf(const Field& field, int64_t most_whole);

// 7500 -> "7.5", as few decimals as it takes. `thousandths` >= 0.
std::string FormatThousandths(int64_t thousandths);

// As Go writes them, in whole numbers: up to four of h, m, s, ms with up to five digits each.
std::optional<Millis> DurationOf(const Field& field);

// A Kubernetes quantity of bytes, 1Mi..256Pi, rounded down to MiB.
std::optional<Mebibytes> MemoryOf(const Field& field);

// A time zone by its IANA name.
std::optional<TimeZone> ZoneOf(const Field& field);
// Hours of some days: {"days":["Sat"],"from":"22:00","to":"04:00"}, days absent: every day. With
// `zone` also "timeZone".
WeekHours WeekHoursOf(const Field& field, TimeZone* zone = nullptr);

// A GPU model name or "any" in lower case; nullopt for text that cannot be one.
std::optional<std::string> ModelNamed(std::string_view text);
std::optional<std::string> ModelOf(const Field& field);

// Sets `target` where there is a value.
template <typename T, typename Value>
void Assign(T& target, const std::optional<Value>& value) {
  if (value) target = *value;
}

}  // namespace tranche
