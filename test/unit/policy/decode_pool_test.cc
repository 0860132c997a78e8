// GPUPool and GPUPrice as values. What is refused stands in test/cases/custom-resources.
#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "policy/decode.h"
#include "policy/prices.h"

namespace tranche {
namespace THIS_FILE {

std::string PoolObject(std::string_view spec) {
  return R"({"metadata":{"name":"x"},"spec":)" + std::string(spec) + "}";
}

TEST(DecodeGpuPoolTest, ReadsEveryField) {
  const auto pool = DecodeGpuPool(PoolObject(R"({
    "nodes": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]},
    "capacity": "Reserved",
    "windows": [{"from": "2026-03-01T22:00:00Z", "to": "2026-03-02T02:30:00.25+01:00",
                 "drain": true}]})"));
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_EQ(pool->name, "x");
  EXPECT_EQ(pool->nodes.match_labels, (Labels{{"a", "b"}}));
  EXPECT_EQ(pool->nodes.Requirements(), 2u);
  EXPECT_EQ(pool->capacity, CapacityType::kReserved);
  ASSERT_EQ(pool->windows.size(), 1u);
  EXPECT_EQ(pool->windows[0].from, Instant(Millis(1'772'402'400'000)));
  EXPECT_EQ(pool->windows[0].to - pool->windows[0].from, Millis(3 * 3'600'000 + 1'800'250));
  EXPECT_TRUE(pool->windows[0].drain);
}

TEST(DecodeGpuPoolTest, WhatIsAbsentIsUnsaid) {
  const auto pool = DecodeGpuPool(PoolObject(R"({"nodes": {}})"));
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_EQ(pool->capacity, std::nullopt);
  EXPECT_TRUE(pool->windows.empty());
  EXPECT_TRUE(pool->nodes.Matches(Labels{}));
}

TEST(DecodeGpuPriceTest, ReadsEveryFieldAndWritesItAgain) {
  const struct {
    std::string_view written, again;
  } kCases[] = {
      {R"({"perGpuHour": "2.490", "currency": "USD"})",
       R"({"perGpuHour":"2.49","currency":"USD"})"},
      {R"({"perGpuHour": 3, "currency": "EUR", "model": "H200", "timeZone": "Europe/Paris"})",
       R"({"perGpuHour":"3","currency":"EUR","model":"h200"})"},
      {R"({"perGpuHour": "999999.999999", "currency": "USD", "model": "h200", "pool": "p",
           "capacity": "Spot", "instanceType": "p5en.48xlarge", "timeZone": "Europe/Paris",
           "hours": [{"days": ["Sun", "Mon"], "from": "20:05", "to": "06:00"},
                     {"from": "00:00", "to": "24:00"}]})",
       R"({"perGpuHour":"999999.999999","currency":"USD","pool":"p",)"
       R"("instanceType":"p5en.48xlarge","capacity":"Spot","model":"h200",)"
       R"("hours":[{"days":["Mon","Sun"],"from":"20:05","to":"06:00"},)"
       R"({"days":["Mon","Tue","Wed","Thu","Fri","Sat","Sun"],"from":"00:00","to":"24:00"}],)"
       R"("timeZone":"Europe/Paris"})"},
  };
  for (const auto& test : kCases) {
    const auto price = DecodeGpuPrice(PoolObject(test.written));
    ASSERT_TRUE(price.ok()) << price.status();
    EXPECT_EQ(PriceSpecText(*price), test.again);
    const auto again = DecodeGpuPrice(PoolObject(test.again));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(PriceSpecText(*again), test.again);
  }
}

TEST(ParseInstantTest, TakesRfc3339Alone) {
  const struct {
    std::string_view text;
    int64_t millis;  // -1: refused
  } kCases[] = {
      {"1970-01-01T00:00:00Z", 0},
      {"1970-01-01T01:00:00.0019+01:00", 1},
      {"9999-12-31T23:59:59Z", 253'402'300'799'000},
      {"1969-12-31T23:59:59Z", -1},
      {"2026-03-01", -1},
      {"2026-03-01T22:00:00", -1},
      {"2026-02-30T22:00:00Z", -1},
      {"infinite-future-for-ever", -1},
      {"2026-03-01T22:00:00Z ", -1},
      {" 2026-03-01T22:00:00Z", -1},
      {"10000-01-01T00:00:00Z", -1},
      {"", -1},
  };
  for (const auto& test : kCases) {
    const auto at = ParseInstant(test.text);
    EXPECT_EQ(at ? at->time_since_epoch().count() : -1, test.millis) << test.text;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
