#include "topology/base/quantity.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace tranche {
namespace THIS_FILE {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TEST(QuantityTest, ReadsEveryFormOfAWholeNumber) {
  const struct {
    std::string_view text;
    int64_t value;
  } kCases[] = {
      {"0", 0},
      {"-0", 0},
      {"0.000", 0},
      {"0e999999999999", 0},
      {"2", 2},
      {"+2", 2},
      {"-2", -2},
      {"007", 7},
      {"2.0", 2},
      {"5.", 5},
      {".5k", 500},
      {"4000m", 4},
      {"-4000m", -4},
      {"3000000u", 3},
      {"1000000000n", 1},
      {"1k", 1000},
      {"1.5k", 1500},
      {"0.001k", 1},
      {"7M", 7'000'000},
      {"7G", 7'000'000'000},
      {"7T", 7'000'000'000'000},
      {"7P", 7'000'000'000'000'000},
      {"7E", 7'000'000'000'000'000'000},
      {"20Ki", 20480},
      {"0.5Ki", 512},
      {"1.5Mi", 1572864},
      {"1Gi", int64_t{1} << 30},
      {"1Ti", int64_t{1} << 40},
      {"1Pi", int64_t{1} << 50},
      {"7Ei", int64_t{7} << 60},
      {"1e3", 1000},
      {"1E3", 1000},
      {"1e+3", 1000},
      {"12.5e1", 125},
      {"2500e-2", 25},
      {"1e0", 1},
      // 2^-60 in decimal: the longest fraction a binary suffix can still make whole.
      {"0.000000000000000000867361737988403547205962240695953369140625Ei", 1},
      {"9223372036854775807", kMax},
      {"-9223372036854775808", kMin},
      {"9223372036854775.807k", kMax},
      {"-8Ei", kMin},
      {"9007199254740993", 9007199254740993},  // beyond what a double can hold
  };
  for (const auto& c : kCases) {
    const absl::StatusOr<int64_t> value = ParseWholeQuantity(c.text);
    ASSERT_TRUE(value.ok()) << c.text << ": " << value.status();
    EXPECT_EQ(*value, c.value) << c.text;
  }
}

TEST(QuantityTest, RefusesTextThatIsNoQuantity) {
  for (const std::string_view text :
       {"",    "+",    "-",   ".",     "-.",   "1K",       "1KI",      "1ki",  "1i",
        "1mi", "1Kib", "1kk", "1 ",    " 1",   "1 k",      "\t1",      "1\n",  "e3",
        "k",   "1e",   "1e+", "1e1.5", "1e3k", "1.2.3",    "1,000",    "0x10", "--1",
        "+-1", "1-",   "inf", "NaN",   "1m2",  "\xC2\xB5", "1\xC2\xB5"}) {
    const absl::StatusOr<int64_t> value = ParseWholeQuantity(text);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_EQ(value.status().message(), "expected a quantity, found \"" + std::string(text) + "\"");
  }
}

TEST(QuantityTest, RefusesWhatIsNotWhole) {
  for (const std::string_view text :
       {"0.5", "1m", "999m", "4001m", "1n", "0.0001k", "1.0000000001", "0.1Ki", "0.33Ei", "1e-1",
        "1e-999999999999", "0.9999999999"}) {
    const absl::StatusOr<int64_t> value = ParseWholeQuantity(text);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_NE(value.status().message().find("expected a whole number"), std::string::npos)
        << value.status();
  }
}

TEST(QuantityTest, RefusesWhatLeavesSixtyFourBits) {
  for (const std::string_view text :
       {"9223372036854775808", "-9223372036854775809", "8Ei", "9.3E", "-9.3E", "10E", "1e19",
        "1e20", "1e99999999999999999999", "9999999999999999999Ei", "18446744073709551616"}) {
    const absl::StatusOr<int64_t> value = ParseWholeQuantity(text);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_NE(value.status().message().find("expected a quantity within 64 bits"),
              std::string::npos)
        << value.status();
  }
}

TEST(QuantityTest, HugeTextIsAnsweredAtOnceAndQuotedInPart) {
  EXPECT_EQ(*ParseWholeQuantity(std::string(1 << 20, '0') + "5"), 5);
  EXPECT_EQ(*ParseWholeQuantity("5." + std::string(1 << 20, '0')), 5);
  const absl::StatusOr<int64_t> value = ParseWholeQuantity(std::string(1 << 20, '9') + "Ei");
  ASSERT_FALSE(value.ok());
  EXPECT_LT(value.status().message().size(), 150U);
}

TEST(QuantityTest, ReadsThousandthsRoundedUp) {
  const struct {
    std::string_view text;
    int64_t value;
  } kCases[] = {
      {"0", 0},           {"2", 2000},
      {"100m", 100},      {"1500m", 1500},
      {"0.5", 500},       {"0.5001", 501},
      {"1n", 1},          {"1e-9", 1},
      {"1e2", 100'000},   {"1k", 1'000'000},
      {"1Ki", 1'024'000}, {".1Ki", 102'400},
      {"-1500m", -1500},  {"9223372036854775807m", kMax},
  };
  for (const auto& row : kCases) {
    const auto value = ParseMilliQuantity(row.text);
    ASSERT_TRUE(value.ok()) << row.text << ": " << value.status();
    EXPECT_EQ(*value, row.value) << row.text;
  }
  for (const std::string& text :
       {std::string(""), std::string("m"), std::string("1x"), std::string("9223372036854775808m"),
        std::string("10E"), std::string("9223372036854775807.1m"), std::string(65, '1')}) {
    EXPECT_FALSE(ParseMilliQuantity(text).ok()) << text;
  }
}

TEST(TakeDigitsTest, TakesWhatFitsAndLeavesTheRest) {
  std::string_view text = "0420ms";
  EXPECT_EQ(TakeDigits(text, 4), 420);
  EXPECT_EQ(text, "ms");
  EXPECT_EQ(TakeDigits(text, 4), std::nullopt);
  text = "12345";
  EXPECT_EQ(TakeDigits(text, 4), std::nullopt);
  EXPECT_EQ(text, "12345");
}

}  // namespace THIS_FILE
}  // namespace tranche
