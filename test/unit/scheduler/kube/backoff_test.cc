#include <gtest/gtest.h>

#include "scheduler/kube/transport/timing.h"

namespace tranche::kube {
namespace THIS_FILE {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Backoff, DoublesToItsCapWithAsMuchJitterAsWait) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Backoff backoff({milliseconds(800), milliseconds(30'000), seconds(120)}, seed);
    const std::chrono::steady_clock::time_point now;
    for (const int base : {800, 1'600, 3'200, 6'400, 12'800, 25'600, 30'000, 30'000}) {
      const milliseconds wait = backoff.Next(now);
      EXPECT_GE(wait.count(), base);
      EXPECT_LE(wait.count(), 2 * base);
    }
  }
}

TEST(Backoff, StartsAgainAfterTwoMinutesWithoutFailure) {
  Backoff backoff({milliseconds(800), milliseconds(30'000), seconds(120)}, 1);
  std::chrono::steady_clock::time_point now;
  for (int i = 0; i < 5; ++i) backoff.Next(now);
  now += seconds(120);
  EXPECT_GT(backoff.Next(now).count(), 1'600);
  now += seconds(121);
  EXPECT_LE(backoff.Next(now).count(), 1'600);
}

TEST(Backoff, StartsAgainWhenReset) {
  Backoff backoff({milliseconds(800), milliseconds(30'000), seconds(120)}, 1);
  const std::chrono::steady_clock::time_point now;
  for (int i = 0; i < 5; ++i) backoff.Next(now);
  backoff.Reset();
  EXPECT_LE(backoff.Next(now).count(), 1'600);
}

TEST(Backoff, SpreadsClientsThatFailTogether) {
  std::chrono::steady_clock::time_point now;
  Backoff one({milliseconds(800), milliseconds(30'000), seconds(120)}, 1);
  Backoff other({milliseconds(800), milliseconds(30'000), seconds(120)}, 2);
  EXPECT_NE(one.Next(now), other.Next(now));
}

}  // namespace THIS_FILE
}  // namespace tranche::kube
