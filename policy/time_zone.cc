#include "policy/time_zone.h"

#include <algorithm>

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

Instant TimeZone::StartOf(const CivilDay& day) const {
  const absl::CivilDay civil(day.year, day.month, day.day);
  const absl::TimeZone::TimeInfo midnight = Loaded(name_).At(absl::CivilSecond(civil));
  const bool skipped = midnight.kind == absl::TimeZone::TimeInfo::SKIPPED;
  return Instant(Millis(absl::ToUnixMillis(skipped ? midnight.trans : midnight.pre)));
}

int TimeZone::Weekday(const CivilDay& day) {
  return static_cast<int>(absl::GetWeekday(absl::CivilDay(day.year, day.month, day.day)));
}

}  // namespace tranche
