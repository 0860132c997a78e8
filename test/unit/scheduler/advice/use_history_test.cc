// What is remembered of measured work: whole hours, the most memory, nothing of gaps.
#include "scheduler/advice/use_history.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tranche {
namespace THIS_FILE {

using namespace std::chrono_literals;

constexpr Instant kStart{std::chrono::hours(24 * 365 * 56)};
constexpr int kUnknown = -1;

// One sample a minute of pod "p" with one device unless a test says otherwise.
class UseHistoryTest : public testing::Test {
 protected:
  void Minutes(int minutes, int permille, int64_t mib = kUnknown, const std::string& device = "G") {
    for (int i = 0; i < minutes; ++i) {
      DeviceSample sample{device, permille, std::nullopt};
      if (mib != kUnknown) sample.memory = Mebibytes::Of(mib);
      history_.Note(std::vector{PodSample{PodUid("p"), {sample}}}, now_);
      now_ += 1min;
    }
  }
  void Silent(int minutes) {
    for (int i = 0; i < minutes; ++i) {
      history_.Note(std::vector{PodSample{PodUid("p"), {}}}, now_);
      now_ += 1min;
    }
  }
  // "2 h: G 40 permille 6000 MiB"
  std::string Text() const {
    const WorkHistory* const work = history_.Find(PodUid("p"));
    if (work == nullptr) return "unknown";
    std::string text = fmt::format("{} h:", work->hours);
    for (const DeviceHistory& device : work->devices) {
      text += fmt::format(" {} {} permille", device.device, device.busiest_hour);
      if (device.most_memory) text += fmt::format(" {} MiB", device.most_memory->count());
    }
    return text;
  }

  UseHistory history_;
  Instant now_ = kStart;
};

TEST_F(UseHistoryTest, AnHourCountsWhenItIsOver) {
  Minutes(60, 1000);
  EXPECT_EQ(Text(), "0 h: G 0 permille");
  Minutes(1, 1000);
  EXPECT_EQ(Text(), "1 h: G 1000 permille");
}

TEST_F(UseHistoryTest, TheBusiestHourCountsByItsMean) {
  Minutes(61, 10);
  Minutes(30, 0);
  Minutes(30, 100);
  Minutes(60, 20);
  EXPECT_EQ(Text(), "3 h: G 50 permille") << "30 of 60 samples at 100, and no more of the rest";
}

TEST_F(UseHistoryTest, ALittleIsNotNothing) {
  Minutes(60, 0);
  Minutes(1, 1);
  EXPECT_EQ(Text(), "1 h: G 1 permille");
}

TEST_F(UseHistoryTest, MemoryCountsAtOnceAndStays) {
  Minutes(1, 0, 6000);
  EXPECT_EQ(Text(), "0 h: G 0 permille 6000 MiB");
  Minutes(1, 0, 500);
  Minutes(1, 0);
  EXPECT_EQ(Text(), "0 h: G 0 permille 6000 MiB");
}

TEST_F(UseHistoryTest, AGapBeginsTheHourAnew) {
  Minutes(50, 900);
  Silent(4);
  Minutes(7, 900);
  EXPECT_EQ(Text(), "1 h: G 900 permille") << "five minutes of silence are overlooked";
  Minutes(50, 1000);
  Silent(5);
  Minutes(60, 100);
  EXPECT_EQ(Text(), "1 h: G 900 permille") << "what was before the gap is no part of an hour";
  Minutes(1, 100);
  EXPECT_EQ(Text(), "2 h: G 900 permille");
}

TEST_F(UseHistoryTest, AClockThatGoesBackBeginsTheHourAnew) {
  Minutes(50, 900);
  now_ -= 1h;
  Minutes(60, 100);
  EXPECT_EQ(Text(), "0 h: G 0 permille");
  Minutes(1, 100);
  EXPECT_EQ(Text(), "1 h: G 100 permille");
}

TEST_F(UseHistoryTest, OtherDevicesAreOtherHistory) {
  Minutes(61, 900, 6000);
  Minutes(1, 0, 100, "H");
  EXPECT_EQ(Text(), "0 h: H 0 permille 100 MiB");
}

TEST_F(UseHistoryTest, WhoHoldsNothingAnyMoreIsForgotten) {
  Minutes(61, 900);
  Silent(1);
  EXPECT_EQ(Text(), "1 h: G 900 permille");
  history_.Note({}, now_);
  EXPECT_EQ(Text(), "unknown");
}

TEST_F(UseHistoryTest, GoesOnFromWhatWasKnownBefore) {
  history_.Restore({{PodUid("p"), {30, {{"G", 200, Mebibytes::Of(6'000)}}}},
                    {PodUid("gone"), {9, {{"G", 1, std::nullopt}}}}});
  EXPECT_EQ(Text(), "30 h: G 200 permille 6000 MiB");
  Minutes(61, 100, 4'000);
  EXPECT_EQ(Text(), "31 h: G 200 permille 6000 MiB");
  EXPECT_EQ(history_.Find(PodUid("gone")), nullptr);
}

TEST_F(UseHistoryTest, WhatWasKnownOfOtherDevicesIsNothing) {
  history_.Restore({{PodUid("p"), {30, {{"other", 200, std::nullopt}}}}});
  Minutes(61, 100);
  EXPECT_EQ(Text(), "1 h: G 100 permille");
}

TEST_F(UseHistoryTest, TellsWhoHasAnotherHour) {
  const auto note = [this](int minute) {
    return history_.Note(std::vector{PodSample{PodUid("p"), {{"G", 5, std::nullopt}}}},
                         kStart + std::chrono::minutes(minute));
  };
  for (int minute = 0; minute < 60; ++minute) EXPECT_TRUE(note(minute).empty()) << minute;
  EXPECT_EQ(note(60), std::vector{PodUid("p")});
  EXPECT_TRUE(note(61).empty());
}

}  // namespace THIS_FILE
}  // namespace tranche
