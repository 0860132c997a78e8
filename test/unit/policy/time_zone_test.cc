#include "policy/time_zone.h"

#include <string>

#include "gtest/gtest.h"
#include "test/builders/budget.h"

namespace tranche {
namespace THIS_FILE {

using test::Hours;
using test::Utc;

TimeZone Zone(const char* name) {
  const std::optional<TimeZone> zone = TimeZone::Load(name);
  EXPECT_TRUE(zone.has_value()) << name;
  return zone.value_or(TimeZone());
}

TEST(TimeZoneTest, OnlyNamesOfTheZoneDatabaseAreKnown) {
  for (const char* name : {"UTC", "Europe/Paris", "America/Argentina/Buenos_Aires", "Etc/GMT+5"}) {
    ASSERT_TRUE(TimeZone::Load(name).has_value()) << name;
    EXPECT_EQ(TimeZone::Load(name)->name(), name);
  }
  for (const char* name : {"", "Europe", "Europe/Pari", "Mars/Base", "localtime", "/etc/localtime",
                           "../../etc/localtime", "file:UTC", "libc:localtime", "UTC+25:00"}) {
    EXPECT_FALSE(TimeZone::Load(name).has_value()) << name;
  }
  EXPECT_FALSE(TimeZone::Load(std::string(1000, 'a')).has_value());
}

TEST(TimeZoneTest, ZonesAreEqualByName) {
  EXPECT_EQ(TimeZone(), Zone("UTC"));
  EXPECT_EQ(Zone("Europe/Paris"), Zone("Europe/Paris"));
  EXPECT_FALSE(Zone("Europe/Paris") == Zone("Europe/Berlin"));
}

TEST(TimeZoneTest, DaysBeginAtLocalMidnight) {
  const struct {
    const char* zone;
    CivilDay day;
    Instant start;
  } kCases[] = {
      {"UTC", {1970, 1, 1}, Utc(1970, 1, 1)},
      {"UTC", {2026, 13, 1}, Utc(2027, 1, 1)},
      {"UTC", {2026, 3, 0}, Utc(2026, 2, 28)},
      {"UTC", {2024, 2, 30}, Utc(2024, 3, 1)},
      {"Europe/Paris", {2026, 1, 1}, Utc(2025, 12, 31, 23)},
      {"Europe/Paris", {2026, 7, 1}, Utc(2026, 6, 30, 22)},
      {"Asia/Kathmandu", {2026, 1, 1}, Utc(2025, 12, 31, 18, 15)},
      {"Pacific/Kiritimati", {2026, 1, 1}, Utc(2025, 12, 31, 10)},
  };
  for (const auto& c : kCases) {
    const TimeZone zone = Zone(c.zone);
    EXPECT_EQ(zone.StartOf(c.day), c.start) << c.zone << " " << c.day.year << "-" << c.day.month;
    const CivilDay before = zone.DayOf(c.start - Millis(1));
    EXPECT_NE(before, zone.DayOf(c.start)) << c.zone;
    EXPECT_EQ(zone.StartOf(zone.DayOf(c.start)), c.start) << c.zone;
    EXPECT_EQ(zone.StartOf({before.year, before.month, before.day + 1}), c.start) << c.zone;
  }
}

TEST(TimeZoneTest, ADayOfAClockChangeHasAnHourMoreOrLess) {
  const TimeZone paris = Zone("Europe/Paris");
  EXPECT_EQ(paris.StartOf({2026, 3, 30}) - paris.StartOf({2026, 3, 29}), Hours(23));
  EXPECT_EQ(paris.StartOf({2026, 10, 26}) - paris.StartOf({2026, 10, 25}), Hours(25));
  EXPECT_EQ(paris.StartOf({2026, 10, 27}) - paris.StartOf({2026, 10, 26}), Hours(24));
}

TEST(TimeZoneTest, AMidnightThatClocksSkipIsTheFirstMomentAfterIt) {
  // 00:00 became 01:00.
  EXPECT_EQ(Zone("America/Sao_Paulo").StartOf({2018, 11, 4}), Utc(2018, 11, 4, 3));
  EXPECT_EQ(Zone("America/Sao_Paulo").DayOf(Utc(2018, 11, 4, 3)), (CivilDay{2018, 11, 4}));
  // Samoa crossed the date line: 30 December 2011 never was.
  EXPECT_EQ(Zone("Pacific/Apia").StartOf({2011, 12, 30}), Utc(2011, 12, 30, 10));
  EXPECT_EQ(Zone("Pacific/Apia").StartOf({2011, 12, 31}), Utc(2011, 12, 30, 10));
  EXPECT_EQ(Zone("Pacific/Apia").DayOf(Utc(2011, 12, 30, 10)), (CivilDay{2011, 12, 31}));
}

TEST(TimeZoneTest, AMidnightThatHappensTwiceIsTheEarlierOne) {
  // 01:00 became 00:00.
  EXPECT_EQ(Zone("America/Havana").StartOf({2026, 11, 1}), Utc(2026, 11, 1, 4));
  // A minute past midnight it became 23:01 of the day before.
  EXPECT_EQ(Zone("America/St_Johns").StartOf({2010, 11, 7}), Utc(2010, 11, 7, 2, 30));
}

TEST(TimeZoneTest, WeeksCountFromMonday) {
  EXPECT_EQ(TimeZone::Weekday({1970, 1, 1}), 3);
  EXPECT_EQ(TimeZone::Weekday({2026, 1, 5}), 0);
  EXPECT_EQ(TimeZone::Weekday({2026, 1, 11}), 6);
  EXPECT_EQ(TimeZone::Weekday({2024, 2, 29}), 3);
}

}  // namespace THIS_FILE
}  // namespace tranche
