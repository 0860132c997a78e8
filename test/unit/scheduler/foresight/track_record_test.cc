#include "scheduler/foresight/track_record.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tranche {
namespace track_record_test {
using std::chrono::hours;
using std::chrono::minutes;

const Instant kBegin = Instant(hours(24 * 20'000));

// A cluster whose rehearsals say 60 minutes, from 50 to 70, to everybody who waits.
class TrackRecordTest : public ::testing::Test {
 protected:
  void Wait(const std::string& pod, const std::string& team = "a") { waits_[pod] = team; }
  void Start(const std::string& pod) {
    waits_.erase(pod);
    record_.NoteStart(PodUid("uid-" + pod), now_);
  }
  void Gone(const std::string& pod) { waits_.erase(pod); }
  Forecasts Look(bool exact = false) {
    Forecasts forecasts;
    forecasts.at = now_;
    forecasts.exact = exact;
    for (const auto& [pod, team] : waits_) {
      Forecast& forecast = forecasts.pods[{"ns", pod}];
      forecast.uid = PodUid("uid-" + pod);
      forecast.leaf = team;
      forecast.earliest = now_ + minutes(45);
      forecast.p10 = now_ + minutes(50);
      forecast.p50 = now_ + minutes(60);
      forecast.p90 = now_ + minutes(70);
      forecast.because = "so it is";
    }
    record_.Move(forecasts);
    return forecasts;
  }
  // What is shown to one that comes now, in minutes.
  std::string Shown(bool exact = false) {
    Wait("asks");
    const Forecasts forecasts = Look(exact);
    Gone("asks");
    const Forecast& asks = forecasts.pods.at({"ns", "asks"});
    const auto in = [this](const std::optional<Instant>& at) {
      return std::chrono::duration_cast<minutes>(*at - now_).count();
    };
    return fmt::format("{}/{}/{}", in(asks.p10), in(asks.p50), in(asks.p90));
  }
  // In each of so many quarters of a day one pod of a team waits for so long.
  void Live(int episodes, minutes wait, bool exact = false) {
    for (int i = 0; i < episodes; ++i) {
      const std::string pod = fmt::format("pod-{}", ++pods_);
      Wait(pod);
      Look(exact);
      now_ += wait;
      Start(pod);
      now_ += hours(6) - wait;
    }
  }

  TrackRecord record_;
  std::map<std::string, std::string> waits_;
  Instant now_ = kBegin;
  int pods_ = 0;
};

TEST_F(TrackRecordTest, NothingIsMovedUntilEnoughIsKnown) {
  Live(4, minutes(120));
  EXPECT_EQ(Shown(), "50/60/70");
  Live(1, minutes(120));
  EXPECT_EQ(Shown(), "50/60/120") << "five times it took two hours";
  Live(15, minutes(120));
  EXPECT_EQ(Shown(), "120/120/120") << "always";
}

TEST_F(TrackRecordTest, WhatWasRightStays) {
  Live(20, minutes(60));
  EXPECT_EQ(Shown(), "60/60/60") << "always to the minute";
}

TEST_F(TrackRecordTest, TheSpanHoldsEightOfTen) {
  for (int i = 0; i < 20; ++i) {
    Live(1, minutes(30 + 10 * (i * 7 % 10)));  // 30, 100, 70, ... 90: each twice
  }
  EXPECT_EQ(Shown(), "30/60/110") << "of 30, 40, ... 120";
  const JudgedSpans judged = Look().judged;
  EXPECT_EQ(judged.before + judged.within + judged.after, 20);
}

TEST_F(TrackRecordTest, ExactForecastsAreJudgedByThemselves) {
  Live(20, minutes(120));
  EXPECT_EQ(Shown(/*exact=*/true), "50/60/70");
  EXPECT_EQ(Shown(/*exact=*/false), "120/120/120");
}

TEST_F(TrackRecordTest, ManyPodsOfOneEpisodeCountOnce) {
  Live(20, minutes(60));
  for (int i = 0; i < 30; ++i) Wait(fmt::format("crowd-{}", i));
  for (int i = 0; i < 5; ++i) {
    Look();
    now_ += minutes(61);
  }
  for (int i = 0; i < 30; ++i) Start(fmt::format("crowd-{}", i));
  now_ += hours(6);
  const Forecasts forecasts = (Wait("asks"), Look());
  EXPECT_EQ(forecasts.pods.at({"ns", "asks"}).p90, now_ + minutes(60))
      << "one bad quarter of a day against twenty good ones";
}

TEST_F(TrackRecordTest, WhoeverWaitsLongerThanSaidIsCountedBeforeItStarts) {
  Live(20, minutes(60));
  EXPECT_EQ(Shown(), "60/60/60");
  for (int i = 0; i < 6; ++i) {
    Wait(fmt::format("stuck-{}", i), fmt::format("team-{}", i));
  }
  Look();
  now_ += hours(5);
  EXPECT_EQ(Shown().substr(0, 3), "60/");
  const Forecasts forecasts = (Wait("asks"), Look());
  EXPECT_GE(*forecasts.pods.at({"ns", "asks"}).p90, now_ + hours(5))
      << "six of 26 are known to wait for five hours at least";
}

TEST_F(TrackRecordTest, PodsThatAreGoneAreNotTakenToHaveStarted) {
  Live(20, minutes(60));
  for (int i = 0; i < 20; ++i) {
    Wait(fmt::format("gone-{}", i), fmt::format("team-{}", i));
    Look();
    now_ += minutes(1);
    Gone(fmt::format("gone-{}", i));
    Look();
  }
  now_ += hours(6);
  EXPECT_EQ(Shown(), "60/60/60") << "a minute says nothing of an hour";
  record_.NoteStart(PodUid("uid-gone-1"), now_);
  const JudgedSpans judged = Look().judged;
  EXPECT_EQ(judged.before + judged.within + judged.after, 20) << "nor does a late message";
}

TEST_F(TrackRecordTest, NothingIsPromisedForThePast) {
  Live(20, minutes(0));
  Wait("asks");
  const Forecasts forecasts = Look();
  const Forecast& asks = forecasts.pods.at({"ns", "asks"});
  EXPECT_EQ(asks.p10, now_);
  EXPECT_EQ(asks.p90, now_);
  EXPECT_EQ(asks.earliest, now_);
  EXPECT_THAT(asks.because, ::testing::HasSubstr("as wide as earlier ones had to be"));
}

TEST_F(TrackRecordTest, TwoWeeksLaterNothingIsLeft) {
  Live(10, minutes(120));
  now_ += hours(24 * 14 + 7);
  EXPECT_EQ(Shown(), "50/60/70");
}

TEST_F(TrackRecordTest, HostileNumbersOfTeamsAndPodsAreBounded) {
  for (int team = 0; team < 6'000; ++team) {
    for (int i = 0; i < 10; ++i) {
      Wait(fmt::format("pod-{}-{}", team, i), fmt::format("team-{}", team));
    }
  }
  for (int look = 0; look < 3; ++look) {
    Look();
    EXPECT_LE(record_.kept(), TrackRecord::kMostKept);
    EXPECT_GE(record_.kept(), TrackRecord::kMostKept - TrackRecord::kMostOfLook);
    now_ += minutes(61);
  }
  for (int team = 0; team < 6'000; ++team) {
    for (int i = 0; i < 10; ++i) Start(fmt::format("pod-{}-{}", team, i));
  }
  const JudgedSpans judged = Look().judged;
  EXPECT_LE(judged.before + judged.within + judged.after,
            static_cast<int64_t>(TrackRecord::kMostKept));
}

TEST_F(TrackRecordTest, OneTeamDoesNotFillIt) {
  for (int i = 0; i < 1'000; ++i) Wait(fmt::format("pod-{}", i));
  for (int look = 0; look < 20; ++look) {
    Look();
    now_ += minutes(10);
  }
  EXPECT_EQ(record_.kept(), TrackRecord::kMostOfEpisode);
}

// Whatever rehearsals say, of what comes eight in ten starts are in the span once there is a
// record.
TEST(TrackRecordProperty, CoverageOfRandomClusters) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    const auto normal = std::normal_distribution<double>(0, 1);
    // Rehearsals that are too short or too long by this factor, and spans that are too narrow.
    const double factor = 0.4 + static_cast<double>(random() % 200) / 100;
    const double noise = 0.2 + static_cast<double>(random() % 100) / 100;
    TrackRecord record;
    int64_t within = 0, judged = 0;
    Instant now = kBegin;
    auto draw = normal;
    for (int i = 0; i < 600; ++i) {
      Forecasts forecasts;
      forecasts.at = now;
      Forecast& forecast = forecasts.pods[{"ns", "pod"}];
      forecast.uid = PodUid(fmt::format("uid-{}", i));
      const double said = 7'200 * std::exp(draw(random) * 0.5);
      const auto in = [&](double part) {
        return now + std::chrono::seconds(static_cast<int64_t>(said * part));
      };
      forecast.p10 = in(0.9);
      forecast.p50 = in(1);
      forecast.p90 = in(1.1);
      record.Move(forecasts);
      const Instant start = in(factor * std::exp(draw(random) * noise));
      if (i >= 100) {
        ++judged;
        within += *forecast.p10 <= start && start <= *forecast.p90 ? 1 : 0;
      }
      now = std::max(start, now + hours(6));
      record.NoteStart(forecast.uid, start);
    }
    const double covered = static_cast<double>(within) / static_cast<double>(judged);
    EXPECT_GT(covered, 0.74) << "seed " << seed;
    EXPECT_LT(covered, 0.86) << "seed " << seed;
  }
}

TEST(WeighedQuantileTest, Rows) {
  const struct {
    const char* name;
    std::vector<Weighed> values;
    int64_t millionths;
    int64_t expected;
  } rows[] = {
      {"none", {}, 500'000, 0},
      {"one", {{7}}, 900'000, 7},
      {"the middle of three", {{1}, {9}, {5}}, 500'000, 5},
      {"exactly a tenth", {{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}}, 100'000, 1},
      {"exactly nine tenths", {{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}}, 900'000, 9},
      {"by weight", {{1, 8}, {2, 1}, {3, 1}}, 850'000, 2},
      {"of at least 4 it is not known", {{1}, {4, 1, false}, {9}}, 500'000, 9},
      {"the last known is not enough", {{1}, {4, 2, false}}, 900'000, 4},
      {"ends at a moment count before what is at least that", {{4, 1, false}, {4}}, 500'000, 4},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(WeighedQuantile(row.values, row.millionths), row.expected) << row.name;
  }
}

}  // namespace track_record_test
}  // namespace tranche
