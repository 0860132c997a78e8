// The demand log against a list of intervals: random streams of pods with bursts and long gaps, and
// what was wanted counted anew from the list.
#include "scheduler/advice/demand.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>

namespace tranche {
namespace THIS_FILE {

struct Seeds {
  uint64_t first = 1;
  uint64_t count = 300;

  Seeds() {
    if (const char* text = std::getenv("TRANCHE_SEED")) first = std::strtoull(text, nullptr, 10);
    if (const char* text = std::getenv("TRANCHE_STEPS")) count = std::strtoull(text, nullptr, 10);
    std::cout << "seeds " << first << " to " << first + count - 1 << " (TRANCHE_SEED)\n";
  }
};

constexpr Instant kForever = Instant::max();

struct Life {
  Instant began;
  Instant placed = kForever;
  Instant ended = kForever;
};

// By definition, from the list.
DemandRow SlowRow(const DemandKind& kind, const std::vector<Life>& lives, Instant since,
                  Instant now) {
  const Instant oldest =
      std::chrono::floor<std::chrono::hours>(now) - std::chrono::hours(DemandLog::kHours - 1);
  const Instant from = std::max(since, oldest);
  DemandRow row{kind, 0, 0, 0, 0, 0};
  int64_t pod_ms = 0;
  for (const Life& life : lives) {
    row.arrivals += life.began >= oldest;
    row.now += life.ended == kForever;
    row.waiting += life.ended == kForever && life.placed == kForever;
    pod_ms +=
        std::max<int64_t>((std::min(life.ended, now) - std::max(life.began, from)).count(), 0);
    // A peak begins where a pod does, or with the span.
    const Instant at = std::max(life.began, from);
    if (at >= std::min(life.ended, now)) continue;
    const int64_t beside = std::ranges::count_if(
        lives, [at](const Life& other) { return other.began <= at && at < other.ended; });
    row.peak = std::max(row.peak, beside);
  }
  row.peak = std::max(row.peak, row.now);
  row.mean_milli = now > from ? pod_ms * 1000 / (now - from).count() : row.now * 1000;
  return row;
}

Millis RandomGap(std::mt19937_64& random) {
  switch (random() % 6) {
    case 0:
      return Millis(0);
    case 1:
      return Millis(static_cast<int64_t>(random() % 5'000));
    case 2:
      return std::chrono::minutes(static_cast<int64_t>(random() % 90));
    case 3:
      return std::chrono::hours(static_cast<int64_t>(random() % 5));  // often a border exactly
    case 4:
      return std::chrono::minutes(30);
    default:
      return random() % 10 == 0 ? std::chrono::hours(static_cast<int64_t>(random() % 400))
                                : std::chrono::hours(1);
  }
}

TEST(DemandProperty, RowsAreWhatTheIntervalsSay) {
  const Seeds seeds;
  for (uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    DemandLog log;
    const DemandKind kinds[] = {{"a", "", "", 1, 1000, 0}, {"b", "", "", 1, 1000, 0}};
    std::vector<Life> lives[2];
    Instant now{std::chrono::hours(500'000)};
    Instant since = kForever;
    for (int step = 0; step < 60; ++step) {
      now += RandomGap(random);
      const std::size_t which = random() % 2;
      Life* life = lives[which].empty() ? nullptr : &lives[which][random() % lives[which].size()];
      if (life == nullptr || random() % 2 == 0) {
        log.Began(kinds[which], now);
        lives[which].push_back({now});
        since = std::min(since, now);
      } else if (life->ended == kForever && life->placed == kForever && random() % 2 == 0) {
        log.Placed(kinds[which], now);
        life->placed = now;
      } else if (life->ended == kForever) {
        log.Ended(kinds[which], life->placed != kForever, now);
        life->ended = now;
      }
      const Instant read = now + (random() % 2 == 0 ? Millis(0) : RandomGap(random));
      std::vector<DemandRow> expected;
      for (std::size_t i = 0; i < 2; ++i) {
        const DemandRow row = SlowRow(kinds[i], lives[i], since, read);
        if (row.peak > 0 || row.arrivals > 0) expected.push_back(row);
      }
      const std::vector<DemandRow> rows = log.Rows(read);
      ASSERT_EQ(rows.size(), expected.size()) << "step " << step;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(rows[i].kind, expected[i].kind);
        EXPECT_EQ(rows[i].now, expected[i].now) << "step " << step;
        EXPECT_EQ(rows[i].waiting, expected[i].waiting) << "step " << step;
        EXPECT_EQ(rows[i].peak, expected[i].peak) << "step " << step;
        EXPECT_EQ(rows[i].mean_milli, expected[i].mean_milli) << "step " << step;
        EXPECT_EQ(rows[i].arrivals, expected[i].arrivals) << "step " << step;
      }
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
