// Fair share against slow arithmetic: a division quantum by quantum, decay in long double.
#include "quota/tree/fair_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "quota/tree/charge.h"

namespace tranche {
namespace THIS_FILE {

using Members = std::vector<FairShareMember>;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class Random {
 public:
  explicit Random(uint64_t seed) : random_(seed) {}
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }

 private:
  std::mt19937_64 random_;
};

// Calls `step` with a generator of its own for each of the steps; says the seed.
template <typename Step>
void Repeat(uint64_t steps, Step step) {
  const uint64_t first = FromEnvironment("TRANCHE_SEED", 1);
  steps = FromEnvironment("TRANCHE_STEPS", steps);
  std::cout << "seeds " << first << " to " << first + steps - 1 << " (TRANCHE_SEED)\n";
  for (uint64_t seed = first; seed < first + steps && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    step(random);
  }
}

Members RandomMembers(Random& random, int64_t scale) {
  Members members;
  const int64_t count = 1 + random.Below(6);
  for (int64_t i = 0; i < count; ++i) {
    FairShareMember member;
    member.key = std::to_string(random.Below(3)) + std::to_string(i);
    member.weight = random.Below(4);
    member.nominal = random.Below(scale);
    member.demand = random.Below(2 * scale);
    member.usage_ppm = random.Below(600'000);
    members.push_back(member);
  }
  return members;
}

int64_t Sum(const std::vector<int64_t>& shares) {
  return std::accumulate(shares.begin(), shares.end(), int64_t{0});
}

int64_t Wanted(const Members& members) {
  int64_t wanted = 0;
  for (const FairShareMember& member : members) wanted += member.demand;
  return wanted;
}

// The model's formula, straight: the level is found by bisection in long double.
std::vector<long double> ByBisection(int64_t capacity, const Members& members, long double k) {
  long double weights = 0;
  for (const FairShareMember& member : members) weights += member.demand > 0 ? member.weight : 0;
  const auto shares_at = [&](long double level) {
    std::vector<long double> shares;
    for (const FairShareMember& member : members) {
      const long double part = member.weight / weights;
      const long double used = static_cast<long double>(member.usage_ppm) / 1e6L;
      const long double leaning = std::max(0.0L, part + k * (part - used));
      shares.push_back(std::min(static_cast<long double>(member.demand),
                                static_cast<long double>(member.nominal) + level * leaning));
    }
    return shares;
  };
  long double low = 0;
  long double high = 1e12L;
  for (int i = 0; i < 200; ++i) {
    const long double middle = (low + high) / 2;
    const auto shares = shares_at(middle);
    const long double sum = std::accumulate(shares.begin(), shares.end(), 0.0L);
    (sum < static_cast<long double>(capacity) ? low : high) = middle;
  }
  return shares_at(high);
}

TEST(FairShareProperty, SharesAreTheModelsToWithinAQuantum) {
  int compared = 0;
  Repeat(20'000, [&](Random& random) {
    const Members members = RandomMembers(random, 1000);
    const int64_t k_milli = 500 * random.Below(5);
    int64_t nominal = 0, weights = 0, reachable = 0;
    for (const FairShareMember& member : members) {
      nominal += std::min(member.nominal, member.demand);
      weights += member.demand > 0 ? member.weight : 0;
    }
    for (const FairShareMember& member : members) {
      const int64_t leaning =
          (1000 + k_milli) * 1'000'000 * member.weight - k_milli * member.usage_ppm * weights;
      reachable += leaning > 0 ? member.demand : std::min(member.nominal, member.demand);
    }
    if (reachable <= nominal) return;
    const int64_t capacity = nominal + random.Below(reachable - nominal);
    const auto shares = DivideFairly(capacity, members, k_milli);
    const auto expected =
        ByBisection(capacity, members, static_cast<long double>(k_milli) / 1000.0L);
    for (std::size_t i = 0; i < members.size(); ++i) {
      ASSERT_LT(std::abs(static_cast<long double>(shares[i]) - expected[i]), 1.001L) << i;
    }
    ++compared;
  });
  EXPECT_GT(compared, 0);
}

TEST(FairShareProperty, NothingIsLostAndNobodyGetsMoreThanWanted) {
  Repeat(20'000, [](Random& random) {
    const Members members = RandomMembers(random, 1 + random.Below(10 * kQuantaPerGpu));
    const int64_t capacity = random.Below(2 * Wanted(members) + 2);
    const auto shares = DivideFairly(capacity, members, 100 * random.Below(101));
    ASSERT_EQ(Sum(shares), std::min(capacity, Wanted(members)));
    for (std::size_t i = 0; i < members.size(); ++i) {
      ASSERT_GE(shares[i], 0);
      ASSERT_LE(shares[i], members[i].demand);
    }
  });
}

TEST(FairShareProperty, RaisingAWeightNeverLowersItsShare) {
  Repeat(20'000, [](Random& random) {
    // Small amounts, where remainders decide.
    Members members = RandomMembers(random, 30);
    const int64_t capacity = random.Below(60);
    const auto at = static_cast<std::size_t>(random.Below(static_cast<int64_t>(members.size())));
    const int64_t before = DivideFairly(capacity, members, 0)[at];
    members[at].weight += 1 + random.Below(5);
    ASSERT_GE(DivideFairly(capacity, members, 0)[at], before);
  });
}

TEST(FairShareProperty, EqualLeavesGetEqualShares) {
  Repeat(20'000, [](Random& random) {
    Members members = RandomMembers(random, 30);
    FairShareMember twin = members[0];
    twin.key = "twin";
    members.push_back(twin);
    const auto shares = DivideFairly(random.Below(60), members, 0);
    ASSERT_LE(std::abs(shares.front() - shares.back()), 1);
  });
}

TEST(FairShareProperty, TheOrderOfMembersDoesNotMatter) {
  Repeat(5'000, [](Random& random) {
    Members members = RandomMembers(random, 30);
    const int64_t capacity = random.Below(60);
    auto shares = DivideFairly(capacity, members, 1000);
    std::ranges::reverse(members);
    std::ranges::reverse(shares);
    ASSERT_EQ(DivideFairly(capacity, members, 1000), shares);
  });
}

long double UsageOf(const DecayedUsage& usage) {
  return std::ldexp(static_cast<long double>(usage.state().usage_high), 64) +
         static_cast<long double>(usage.state().usage_low);
}

constexpr long double kGpuSecond = 1000.0L * kQuantaPerGpu;
constexpr long double kYear = 365.0L * 86'400'000;

// Ten random holds; one at a time is also split by an event that changes nothing.
TEST(DecayedUsageProperty, DecayIsExactAndSplittingAHoldChangesNothing) {
  Repeat(5'000, [](Random& random) {
    const int64_t half_life = 1 + random.Below(1 + random.Below(60'000'000'000));
    DecayedUsage usage{Millis(half_life)};
    DecayedUsage split{Millis(half_life)};
    long double expected = 0;
    long double gpus = 0;
    int64_t now = 1'700'000'000'000;
    int64_t held = 0;
    for (int i = 0; i < 10; ++i) {
      const int64_t step = random.Below(1 + random.Below(4 * half_life));
      const long double fading =
          std::exp2(-static_cast<long double>(step) / static_cast<long double>(half_life));
      const long double grown = -std::expm1(-static_cast<long double>(step) * std::log(2.0L) /
                                            static_cast<long double>(half_life));
      expected = expected * fading + static_cast<long double>(held) *
                                         static_cast<long double>(half_life) / std::log(2.0L) *
                                         grown;
      if (step > 0) split.Hold(held, Instant(Millis(now + random.Below(step))));
      now += step;
      held = random.Below(1000 * kQuantaPerGpu);
      gpus = std::max(gpus, static_cast<long double>(held) / kQuantaPerGpu);
      usage.Hold(held, Instant(Millis(now)));
      split.Hold(held, Instant(Millis(now)));
      const long double gpu_years =
          std::max(gpus, 1.0L) * std::max(static_cast<long double>(half_life) / kYear, 1.0L);
      ASSERT_LT(std::abs(UsageOf(usage) - expected), kGpuSecond * gpu_years) << "event " << i;
      ASSERT_LT(std::abs(UsageOf(usage) - UsageOf(split)), kGpuSecond * gpu_years / 1'000'000);
    }
  });
}

// A year of one GPU with an event every half minute, as a busy leaf has.
TEST(DecayedUsageProperty, AYearOfManyEventsStaysWithinAGpuSecond) {
  const uint64_t seed = FromEnvironment("TRANCHE_SEED", 1);
  std::cout << "seed " << seed << " (TRANCHE_SEED)\n";
  Random random(seed);
  const int64_t half_life = 168 * 3'600'000;
  DecayedUsage usage{Millis(half_life)};
  int64_t now = 0;
  while (now < static_cast<int64_t>(kYear)) {
    usage.Hold(kQuantaPerGpu, Instant(Millis(now)));
    now += 1 + random.Below(60'000);
  }
  usage.Hold(0, Instant(Millis(now)));
  const long double halvings = static_cast<long double>(now) / static_cast<long double>(half_life);
  const long double expected = kQuantaPerGpu * static_cast<long double>(half_life) /
                               std::log(2.0L) * (1 - std::exp2(-halvings));
  ASSERT_LT(std::abs(UsageOf(usage) - expected), kGpuSecond);
}

}  // namespace THIS_FILE
}  // namespace tranche
