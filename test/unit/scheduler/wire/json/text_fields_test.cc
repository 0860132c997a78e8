#include "scheduler/wire/json/text_fields.h"

#include <gtest/gtest.h>

namespace tranche::wire {
namespace THIS_FILE {

TEST(ParseDuration, ReadsWhatGoWrites) {
  constexpr Millis kDay = std::chrono::hours(24);
  struct Row {
    std::string_view text;
    std::optional<int64_t> expected;
  };
  for (const Row& row : {
           Row{"90s", 90'000},
           Row{"1h30m", 5'400'000},
           Row{"1.5h", 5'400'000},
           Row{".5s", 500},
           Row{"2.s", 2'000},
           Row{"250ms", 250},
           Row{"1h2m3s4ms", 3'723'004},
           Row{"0.0019s", 1},
           Row{"0s", 0},
           Row{"24h", 86'400'000},
           Row{"24h0.001s", std::nullopt},
           Row{"1441m", std::nullopt},
           Row{"999999999999999999h", std::nullopt},
           Row{"9999999999999999999h", std::nullopt},
           Row{"", std::nullopt},
           Row{"5", std::nullopt},
           Row{"h", std::nullopt},
           Row{".s", std::nullopt},
           Row{"1d", std::nullopt},
           Row{"-1h", std::nullopt},
           Row{"+1h", std::nullopt},
           Row{"1h ", std::nullopt},
           Row{"1 h", std::nullopt},
           Row{"1H", std::nullopt},
       }) {
    const std::optional<Millis> found = ParseDuration(row.text, kDay);
    EXPECT_EQ(found ? std::optional<int64_t>(found->count()) : std::nullopt, row.expected)
        << row.text;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
