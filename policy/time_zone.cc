#include "policy/time_zone.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "topology/base/check.h"

namespace tranche {
namespace {

// Keeps names inside the zone database: Abseil would also take "localtime", which differs from
// machine to machine, and paths of files.
bool MayBeIanaName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '+' || c == '-' || c == '/';
  };
  return !name.empty() && name.size() <= 64 && name.front() != '/' && name != "localtime" &&
         std::all_of(name.begin(), name.end(), allowed);
}

// Abseil keeps every zone it has loaded; this finds it there.
absl::TimeZone Loaded(const std::string& name) {
  absl::TimeZone zone;
  TRANCHE_CHECK(absl::LoadTimeZone(name, &zone));
  return zone;
}

}  // namespace

std::optional<TimeZone> TimeZone::Load(std::string_view name) {
  absl::TimeZone ignored;
  TimeZone zone;
  zone.name_ = name;
  if (!MayBeIanaName(name) || !absl::LoadTimeZone(zone.name_, &ignored)) return std::nullopt;
  return zone;
}

CivilDay TimeZone::DayOf(Instant at) const {
  const absl::Time time = absl::FromUnixMillis(at.time_since_epoch().count());
  const absl::CivilDay day = absl::ToCivilDay(time, Loaded(name_));
  return {static_cast<int>(day.year()), day.month(), day.day()};
}

LocalTime TimeZone::LocalAt(Instant at) const {
  const absl::Time time = absl::FromUnixMillis(at.time_since_epoch().count());
  const absl::TimeZone zone = Loaded(name_);
  const absl::TimeZone::CivilInfo local = zone.At(time);
  const absl::CivilDay day(local.cs);
  LocalTime result;
  result.day = {static_cast<int>(day.year()), day.month(), day.day()};
  result.of_day = std::chrono::seconds(local.cs - absl::CivilSecond(day)) +
                  Millis(absl::ToInt64Milliseconds(local.subsecond));
  result.unset_till = Instant::max();
  absl::TimeZone::CivilTransition change;
  if (zone.NextTransition(time, &change)) {
    result.unset_till = Instant(Millis(absl::ToUnixMillis(zone.At(change.to).trans)));
  }
  return result;
}

Instant TimeZone::StartOf(const CivilDay& day) const {
  const absl::CivilDay civil(day.year, day.month, day.day);
  const absl::TimeZone::TimeInfo midnight = Loaded(name_).At(absl::CivilSecond(civil));
  const bool skipped = midnight.kind == absl::TimeZone::TimeInfo::SKIPPED;
  return Instant(Millis(absl::ToUnixMillis(skipped ? midnight.trans : midnight.pre)));
}

int TimeZone::Weekday(const CivilDay& day) {
  return static_cast<int>(absl::GetWeekday(absl::CivilDay(day.year, day.month, day.day)));
}

bool WeekHours::HoldAt(int weekday, Millis of_day) const {
  const std::chrono::minutes begin(from);
  const std::chrono::minutes end(to);
  if (begin < end) return HasDay(weekday) && of_day >= begin && of_day < end;
  return (HasDay(weekday) && of_day >= begin) || (HasDay(weekday - 1) && of_day < end);
}

bool WeekHours::HoldAt(const TimeZone& zone, Instant at) const {
  const LocalTime local = zone.LocalAt(at);
  return HoldAt(TimeZone::Weekday(local.day), local.of_day);
}

std::optional<Instant> ParseInstant(std::string_view text) {
  constexpr size_t kShortest = sizeof("2026-01-01T00:00:00Z") - 1;
  constexpr size_t kLongest = 64;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  absl::Time time;
  if (text.size() < kShortest || text.size() > kLongest || text[4] != '-' ||
      !std::all_of(text.begin(), text.begin() + 4, is_digit) || text.back() == ' ' ||
      !absl::ParseTime(absl::RFC3339_full, {text.data(), text.size()}, &time, nullptr)) {
    return std::nullopt;
  }
  const Instant at(Millis(absl::ToUnixMillis(time)));
  if (at < Instant() || absl::ToCivilYear(time, absl::UTCTimeZone()).year() > 9999) {
    return std::nullopt;
  }
  return at;
}

}  // namespace tranche
