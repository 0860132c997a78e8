// A time zone as a value: calendar days of a place, daylight saving included.
//
// Wraps Abseil's zone, which reads the machine's zoneinfo once, when the zone is loaded (at decode,
// never in a decision) and keeps it for the life of the process; a value is its name. Copying is
// cheap; any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "topology/base/units.h"

namespace tranche {

struct CivilDay {
  int year = 1970;
  int month = 1;  // 1..12
  int day = 1;    // 1..31
  friend auto operator<=>(const CivilDay&, const CivilDay&) = default;
};

// What the clocks of a place show.
struct LocalTime {
  CivilDay day;
  Millis of_day{0};    // 0 .. 24 hours, without the last
  Instant unset_till;  // before this moment nobody sets the clocks; Instant::max(): never again
};

class TimeZone {
 public:
  TimeZone() = default;  // UTC
  // By its IANA name ("Europe/Paris", "UTC"); nullopt when the machine does not know it.
  static std::optional<TimeZone> Load(std::string_view name);

  const std::string& name() const { return name_; }
  // The day the moment lies in.
  CivilDay DayOf(Instant at) const;
  LocalTime LocalAt(Instant at) const;
  // The first moment of that day. Days and months beyond their range carry over ({2026, 13, 1} is
  // the first of January 2027). A midnight that a clock change skips is the first moment after it,
  // one that happens twice is the earlier one.
  Instant StartOf(const CivilDay& day) const;
  // 0 Monday .. 6 Sunday.
  static int Weekday(const CivilDay& day);

  friend bool operator==(const TimeZone& left, const TimeZone& right) {
    return left.name_ == right.name_;
  }

 private:
  std::string name_ = "UTC";
};

// Hours of some days by the clocks of a place. Where `to` is not after `from` they end on the next
// day, and the day is the one they began on. Clocks set back repeat hours, and both count.
struct WeekHours {
  uint8_t days = 0x7F;  // bit 0 Monday .. bit 6 Sunday
  int from = 0;         // minutes of the day, 0..1439
  int to = 1440;        // minutes of the day, 0..1440, another than `from`
  // Do they hold at that time of that day (0 Monday), be it that they began the day before?
  bool HoldAt(int weekday, Millis of_day) const;
  bool HoldAt(const TimeZone& zone, Instant at) const;
  bool HasDay(int weekday) const { return (days >> ((weekday + 7) % 7) & 1U) != 0; }
  friend bool operator==(const WeekHours&, const WeekHours&) = default;
};

// A moment as RFC 3339 writes it ("2026-03-01T22:00:00Z", an offset or fractions of a second are
// fine, finer ones than milliseconds dropped), of the years 1970 to 9999; nullopt: anything else.
std::optional<Instant> ParseInstant(std::string_view text);

}  // namespace tranche
