#include "scheduler/scoring/mig_value.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "scheduler/scoring/mig_exp.h"
#include "scheduler/scoring/mig_room.h"

namespace tranche {
namespace THIS_FILE {

const MigBoard& BoardOf(std::string_view product) {
  return *FindMigBoard(product, Mebibytes::Zero());
}

int ProfileIndex(const MigBoard& board, std::string_view name) {
  return static_cast<int>(FindMigProfile(board, name) - board.profiles.data());
}

LayoutValues Solve(MigPricer& pricer, const std::vector<int64_t>& counts) {
  pricer.SetMix(counts);
  while (pricer.Work()) {
  }
  return pricer.values();
}

// The same rules in floating point, every sum written out.
class Oracle {
 public:
  Oracle(const MigSpace& space, const std::vector<int64_t>& counts)
      : space_(space),
        shares_(counts.begin(), counts.end()),
        values_(space.size()),
        probabilities_(space.size()),
        prices_(counts.size()) {
    double total = 0;
    for (const double share : shares_) total += share;
    for (double& share : shares_) share /= total;
    for (std::size_t i = 0; i < shares_.size(); ++i) mean_width_ += shares_[i] * Width(i);
    for (std::size_t i = 0; i < space.size(); ++i) {
      most_ = std::max(most_, space.instances(static_cast<LayoutId>(i)).size());
    }
    probabilities_[kEmptyLayout] = 1;
  }

  std::vector<double> Solve() {
    std::vector<double> averages;
    for (int step = 1; step <= 150; ++step) {
      for (int sweep = 0; sweep < 20; ++sweep) Sweep();
      MovePrices(step <= 75 ? 2 : 8);
      if (step <= 75) averages = values_;
      for (std::size_t i = 0; i < averages.size(); ++i) {
        averages[i] += (values_[i] - averages[i]) / 16;
      }
    }
    const double units = space_.board().units;
    for (std::size_t i = 0; i < averages.size(); ++i) {
      const double free = 8 - space_.used_units(static_cast<LayoutId>(i)) * 8 / units;
      averages[i] = (averages[i] + 0.1 * free * free / 16) * units / 8;
    }
    return averages;
  }

 private:
  static constexpr double kTemperature = 0.15;

  double Width(std::size_t profile) const {
    return space_.board().profiles[profile].size * 8.0 / space_.board().units;
  }
  double Fair(std::size_t profile) const { return 0.9 * 8 * shares_[profile] / mean_width_; }

  void Sweep() {
    accepted_.assign(shares_.size(), 0);
    std::vector<double> values = values_;
    std::vector<double> probabilities = probabilities_;
    const double events = 0.9 * 8 / mean_width_ * 20 + static_cast<double>(most_);
    for (std::size_t i = 0; i < space_.size(); ++i) {
      const auto layout = static_cast<LayoutId>(i);
      for (std::size_t profile = 0; profile < shares_.size(); ++profile) {
        const double rate = 20 * Fair(profile) / events;
        double sum = 1;
        for (const auto& step : space_.steps(layout, static_cast<int>(profile))) {
          sum += std::exp((prices_[profile] + values_[step.after] - values_[i]) / kTemperature);
        }
        values[i] += rate * kTemperature * std::log(sum);
        for (const auto& step : space_.steps(layout, static_cast<int>(profile))) {
          const double flow =
              probabilities_[i] * rate / sum *
              std::exp((prices_[profile] + values_[step.after] - values_[i]) / kTemperature);
          probabilities[step.after] += flow;
          probabilities[i] -= flow;
          accepted_[profile] += flow * events;
        }
      }
      for (const MigInstance& instance : space_.instances(layout)) {
        const auto profile = instance.profile - space_.board().profiles.data();
        const LayoutId left = space_.Without(layout, static_cast<int>(profile), instance.start);
        values[i] += (values_[left] - values_[i]) / events;
        probabilities[left] += probabilities_[i] / events;
        probabilities[i] -= probabilities_[i] / events;
      }
    }
    for (std::size_t i = 0; i < values.size(); ++i) values_[i] = values[i] - values[kEmptyLayout];
    probabilities_ = probabilities;
  }

  void MovePrices(double part) {
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      if (shares_[i] == 0) continue;
      const double missing = 1 - accepted_[i] / Fair(i);
      prices_[i] = std::clamp(prices_[i] + missing / part, -12.0, 1.5 * Width(i));
    }
  }

  const MigSpace& space_;
  std::vector<double> shares_;
  double mean_width_ = 0;
  std::size_t most_ = 0;
  std::vector<double> values_;
  std::vector<double> probabilities_;
  std::vector<double> prices_;
  std::vector<double> accepted_;
};

TEST(MigExpTest, PowersAndLogarithmsAreThoseOfTheLibrary) {
  for (int64_t x = 0; x < 31 * kFixedOne; x += 99'991) {
    const double expected = std::exp2(-static_cast<double>(x) / static_cast<double>(kFixedOne));
    ASSERT_NEAR(static_cast<double>(PowerOfHalf(x)) / static_cast<double>(kPowerOne), expected,
                2e-6 * expected + 2e-9);
  }
  EXPECT_EQ(PowerOfHalf(0), kPowerOne);
  EXPECT_EQ(PowerOfHalf(100 * kFixedOne), 0);
  for (int64_t z = kPowerOne; z < 16 * kPowerOne; z += 99'999'989) {
    const double expected = std::log2(static_cast<double>(z) / static_cast<double>(kPowerOne));
    ASSERT_NEAR(static_cast<double>(Log2(z)) / static_cast<double>(kFixedOne), expected, 4e-6);
  }
  EXPECT_EQ(Log2(kPowerOne), 0);
  EXPECT_EQ(Log2(4 * kPowerOne), 2 * kFixedOne);
}

TEST(MigPricerTest, FixedPointFindsTheTableOfFloatingPoint) {
  const struct {
    std::string_view product;
    std::vector<std::string_view> profiles;
    std::vector<int64_t> counts;  // of the profiles
  } kCases[] = {
      {"NVIDIA-H100-80GB-HBM3", {"1g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}, {3, 2, 2, 1}},
      {"NVIDIA-A30",
       {"1g.6gb", "2g.12gb", "4g.24gb"},
       {900'000'000'000, 500'000'000'000, 300'000'000'000}},
      {"NVIDIA-A30", {"1g.6gb", "1g.6gb+me", "2g.12gb", "4g.24gb"}, {5, 1, 0, 2}},
      {"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
       {"1g.24gb", "2g.48gb", "4g.96gb"},
       {50, 30, 20}},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.product);
    const MigBoard& board = BoardOf(c.product);
    std::vector<int> indices;
    std::vector<int64_t> counts(board.profiles.size());
    for (std::size_t i = 0; i < c.profiles.size(); ++i) {
      indices.push_back(ProfileIndex(board, c.profiles[i]));
      counts[static_cast<std::size_t>(indices.back())] = c.counts[i];
    }
    const MigSpace space(board, indices);
    MigPricer pricer(space);
    const LayoutValues values = Solve(pricer, counts);
    const std::vector<double> expected = Oracle(space, counts).Solve();
    ASSERT_EQ(values.size(), expected.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i] / 65536.0, expected[i], 0.02) << "layout " << i;
    }
  }
}

TEST(MigPricerTest, NothingAskedForIsNothingToDo) {
  MigPricer pricer(MigSpaceOf(BoardOf("NVIDIA-A30")));
  EXPECT_FALSE(pricer.Work());
  EXPECT_TRUE(Solve(pricer, {0, 0, 0, 0, 0}).empty());
  const LayoutValues values = Solve(pricer, {1, 0, 0, 0, 0});
  EXPECT_FALSE(values.empty());
  EXPECT_EQ(Solve(pricer, {0, 0, 0, 0, 0}), values);
}

TEST(MigPricerTest, ValuesStayThoseOfTheLastFinishedTable) {
  MigPricer pricer(MigSpaceOf(BoardOf("NVIDIA-A30")));
  const LayoutValues first = Solve(pricer, {4, 0, 2, 0, 1});
  pricer.SetMix(std::vector<int64_t>{1, 0, 1, 0, 4});
  EXPECT_TRUE(pricer.Work());
  EXPECT_EQ(pricer.values(), first);
  while (pricer.Work()) {
  }
  EXPECT_NE(pricer.values(), first);
}

TEST(MigPricerTest, ASmallChangeOfTheMixNeedsAThirdOfTheWork) {
  const auto calls = [](MigPricer& pricer, const std::vector<int64_t>& counts) {
    pricer.SetMix(counts);
    int count = 1;
    while (pricer.Work()) ++count;
    return count;
  };
  MigPricer pricer(MigSpaceOf(BoardOf("NVIDIA-A30")));
  const int first = calls(pricer, {40, 0, 20, 0, 10});
  EXPECT_LT(calls(pricer, {42, 0, 19, 0, 10}) * 3, first);
  EXPECT_EQ(calls(pricer, {10, 0, 20, 0, 40}), first);
}

TEST(MigPricerTest, ProfilesNobodyAskedForHaveAPlaceInTheTable) {
  const MigBoard& board = BoardOf("NVIDIA-A30");
  const MigSpace& space = MigSpaceOf(board);
  MigPricer pricer(space);
  const LayoutValues values = Solve(pricer, {4, 0, 2, 0, 1});
  const auto with = [&](std::string_view name, int start) {
    return values[*space.With(kEmptyLayout, ProfileIndex(board, name), start)];
  };
  // The profile does not matter: the units are taken, and become free at the same rate.
  EXPECT_EQ(with("1g.6gb+me", 0), with("1g.6gb+me", 3));
  EXPECT_LT(with("1g.6gb+me", 0), values[kEmptyLayout]);
  EXPECT_LT(with("2g.12gb+me", 0), values[kEmptyLayout]);
}

TEST(MigPricerTest, SmallRequestsFillUpBegunGpusSoThatWholeOnesStay) {
  const MigBoard& board = BoardOf("NVIDIA-A30");
  const MigSpace& space = MigSpaceOf(board);
  MigPricer pricer(space);
  const LayoutValues values = Solve(pricer, {4, 0, 2, 0, 1});
  const int one = ProfileIndex(board, "1g.6gb");
  const int two = ProfileIndex(board, "2g.12gb");
  const LayoutId begun = *space.With(kEmptyLayout, one, 1);
  const std::vector<LayoutId> layouts = {kEmptyLayout, begun};
  EXPECT_EQ(BestPlace(space, values, layouts, one)->gpu, 1U);
  // Next to the other one, so that two units in a row stay.
  EXPECT_EQ(BestPlace(space, values, layouts, one)->start, 0);
  EXPECT_EQ(BestPlace(space, values, layouts, two)->gpu, 1U);
}

}  // namespace THIS_FILE
}  // namespace tranche
