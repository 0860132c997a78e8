// What a GPU costs from one moment to another: going from change to change must come to the same
// as looking at every minute, over nights, weekends and clock changes. The oracle knows the clocks
// of Paris by the rule they follow, not by a database. One printed seed replays:
//   TRANCHE_SEED=7 TRANCHE_STEPS=2000 property_tests --gtest_filter='PriceProperty*'
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "policy/prices.h"
#include "test/builders/budget_history.h"

namespace tranche {
namespace THIS_FILE {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;

// The moment of the change that year: the last Sunday of the month at 01:00 UTC.
std::chrono::sys_seconds ChangeOf(std::chrono::year year, std::chrono::month month) {
  return std::chrono::sys_days(year / month / std::chrono::Sunday[std::chrono::last]) + hours(1);
}

// What the clocks of Paris show, as if it were a moment of UTC.
Instant ClocksOfParis(Instant at) {
  const std::chrono::year_month_day day(std::chrono::floor<days>(at));
  const bool summer = at >= ChangeOf(day.year(), std::chrono::March) &&
                      at < ChangeOf(day.year(), std::chrono::October);
  return at + hours(summer ? 2 : 1);
}

bool HoldsThen(const GpuPrice& price, Instant at) {
  if (price.hours.empty()) return true;
  const Instant local = price.zone.name() == "UTC" ? at : ClocksOfParis(at);
  const auto day = std::chrono::floor<days>(local);
  const auto minute = std::chrono::floor<minutes>(local - day).count();
  const int weekday = static_cast<int>(std::chrono::weekday(day).iso_encoding()) - 1;
  return std::any_of(price.hours.begin(), price.hours.end(), [&](const WeekHours& span) {
    // Every day the span may have begun on, written out in minutes from now's midnight.
    for (const int began : {0, -1}) {
      const int begin_day = (weekday + 7 + began) % 7;
      const int64_t from = began * 1440 + span.from;
      const int64_t to = began * 1440 + span.to + (span.to <= span.from ? 1440 : 0);
      if ((span.days >> begin_day & 1U) != 0 && minute >= from && minute < to) return true;
    }
    return false;
  });
}

// Of all that suit, the first in the order that people are told.
int64_t MicrosThen(const std::vector<GpuPrice>& prices, const NodeTraits& node,
                   const std::string& model, Instant at) {
  std::vector<std::tuple<bool, bool, bool, bool, bool, std::string, int64_t>> suiting;
  for (const GpuPrice& price : prices) {
    if (!price.pool.empty() && price.pool != node.pool) continue;
    if (!price.instance_type.empty() && price.instance_type != node.instance_type) continue;
    if (price.capacity && price.capacity != node.capacity) continue;
    if (!price.model.empty() && price.model != model) continue;
    if (!HoldsThen(price, at)) continue;
    suiting.emplace_back(price.pool.empty(), price.instance_type.empty(), !price.capacity,
                         price.model.empty(), price.hours.empty(), price.name,
                         price.micros_per_gpu_hour);
  }
  if (suiting.empty()) return 0;
  return std::get<6>(*std::min_element(suiting.begin(), suiting.end()));
}

class PriceProperty : public test::BudgetProperty {
 protected:
  template <typename T>
  T OneOf(std::initializer_list<T> choices) {
    return *(choices.begin() + Between(0, static_cast<int64_t>(choices.size()) - 1));
  }
  WeekHours SomeHours() {
    WeekHours span;
    span.days = static_cast<uint8_t>(Between(1, 127));
    span.from = static_cast<int>(OneOf({Between(0, 1439), Between(0, 23) * 60, Between(60, 200)}));
    do {
      span.to = static_cast<int>(OneOf({Between(0, 1440), Between(0, 24) * 60, int64_t{1440}}));
    } while (span.to == span.from);
    return span;
  }
  GpuPrice SomePrice(const std::string& name) {
    GpuPrice price;
    price.name = name;
    price.micros_per_gpu_hour = Between(0, 9'999'999);
    price.currency = "USD";
    price.pool = OneOf({"", "", "p", "other"});
    price.instance_type = OneOf({"", "", "p5", "g6"});
    if (Between(0, 2) == 0) {
      price.capacity = OneOf({CapacityType::kSpot, CapacityType::kOnDemand});
    }
    price.model = OneOf({"", "", "h200", "l40s"});
    for (int64_t spans = Between(0, 3); spans > 0; --spans) price.hours.push_back(SomeHours());
    if (Between(0, 3) > 0) price.zone = TimeZone::Load("Europe/Paris").value();
    return price;
  }
  // Near a change of clocks more often than not.
  Instant SomeMoment() {
    const int year = static_cast<int>(Between(2025, 2031));
    const Instant change =
        ChangeOf(std::chrono::year(year), OneOf({std::chrono::March, std::chrono::October}));
    return change + Millis(Between(-100, 100) * OneOf<int64_t>({977, 60'000, 3'600'000}));
  }
};

TEST_F(PriceProperty, FromChangeToChangeComesToTheSameAsMinuteByMinute) {
  for (int64_t step = 0; step < steps_ && !HasFailure(); ++step) {
    std::vector<GpuPrice> prices;
    for (int64_t count = Between(0, 6); count > 0; --count) {
      prices.push_back(SomePrice(std::string(1, static_cast<char>('a' + prices.size()))));
    }
    const NodeTraits node{OneOf({"", "p"}),
                          OneOf<std::optional<CapacityType>>({std::nullopt, CapacityType::kSpot}),
                          OneOf({"", "p5"})};
    const std::string model = OneOf({"h200", "l40s"});
    const Instant begin = SomeMoment();
    const Instant end = begin + Millis(Between(0, 72 * 3'600'000));

    int64_t fast = 0;
    for (Instant at = begin; at < end;) {
      const PriceAt price = PriceOf(prices, node, model, at);
      ASSERT_GT(price.until, at);
      const Instant until = std::min(price.until, end);
      fast += price.micros() * (until - at).count();
      at = until;
    }
    int64_t slow = 0;
    for (Instant at = begin; at < end;) {
      const Instant until = std::min<Instant>(std::chrono::floor<minutes>(at) + minutes(1), end);
      slow += MicrosThen(prices, node, model, at) * (until - at).count();
      at = until;
    }
    EXPECT_EQ(fast, slow) << "from " << begin.time_since_epoch().count() << " to "
                          << end.time_since_epoch().count();
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
