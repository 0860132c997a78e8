// How long work of a like runs.
#include "scheduler/foresight/runtimes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "test/builders/budget.h"

namespace tranche {
namespace THIS_FILE {

using test::Minutes;

TEST(StemTest, WhatControllersMakeUpIsLeftOut) {
  const struct {
    const char* name;
    const char* stem;
  } kRows[] = {
      {"train", "train"},
      {"train-bcdfg", "train"},
      {"web-7f9c4d8b6f-x2x9z", "web"},
      {"sweep-12", "sweep"},
      {"train-model", "train-model"},
      {"llama-70b", "llama-70b"},
      {"ring-3-bcdfg", "ring"},
      {"7", "7"},
  };
  for (const auto& row : kRows) EXPECT_EQ(StemOf(row.name), row.stem) << row.name;
}

TEST(RunKindTest, SizesAreWholeGpusInPowersOfTwo) {
  for (const auto& [milli, size] : std::vector<std::pair<int64_t, int64_t>>{
           {500, 0}, {1000, 1}, {2000, 2}, {3000, 4}, {8000, 8}, {12000, 16}}) {
    EXPECT_EQ(RunKindOf({"a", "p"}, "train", MilliGpu::Of(milli)).size, size) << milli;
  }
}

TEST(SurvivalCurveTest, QuantilesOfRunsThatAllEnded) {
  std::vector<SurvivalCurve::Run> runs;
  for (int i = 1; i <= 100; ++i) runs.push_back({Minutes(i), true});
  const SurvivalCurve curve(runs);
  EXPECT_EQ(curve.ends(), 100);
  EXPECT_EQ(curve.QuantileFrom(Millis(0), 500'000), Minutes(50));
  EXPECT_EQ(curve.QuantileFrom(Millis(0), 100'000), Minutes(10));
  // Of the fifty that are left half have ended after 75 minutes.
  EXPECT_EQ(curve.QuantileFrom(Minutes(50), 500'000), Minutes(75));
}

TEST(SurvivalCurveTest, CensoredRunsCountAsLongAsTheyWereSeen) {
  // Kaplan-Meier by hand: 4/5, then of three 2/3 of that, then of one nothing.
  const SurvivalCurve curve({{Minutes(1), true},
                             {Minutes(2), false},
                             {Minutes(3), true},
                             {Minutes(4), false},
                             {Minutes(5), true}});
  EXPECT_EQ(curve.QuantileFrom(Millis(0), 190'000), Minutes(1));
  EXPECT_EQ(curve.QuantileFrom(Millis(0), 210'000), Minutes(3));
  EXPECT_EQ(curve.QuantileFrom(Millis(0), 460'000), Minutes(3));
  EXPECT_EQ(curve.QuantileFrom(Millis(0), 480'000), Minutes(5));
}

TEST(SurvivalCurveTest, BeyondWhatWasSeenEndsComeSteadily) {
  const SurvivalCurve curve({{Minutes(10), true}, {Minutes(20), true}, {Minutes(30), false}});
  const Millis median = curve.QuantileFrom(Minutes(40), 500'000);
  // Sixty minutes of runs and two ends: one every thirty.
  EXPECT_EQ(median, Minutes(40) + Millis(30 * 60 * 693));
  EXPECT_GT(curve.QuantileFrom(Minutes(40), 900'000), median);
}

// Against a slow count: never an end earlier than the age, and never less with a higher chance.
TEST(SurvivalCurveTest, QuantilesAscendFromEveryAge) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<SurvivalCurve::Run> runs;
    const int count = 1 + static_cast<int>(random() % 30);
    for (int i = 0; i < count; ++i) {
      runs.push_back({Minutes(static_cast<int64_t>(random() % 50)), random() % 3 != 0});
    }
    const SurvivalCurve curve(runs);
    if (curve.ends() == 0) continue;
    for (int64_t age = 0; age < 60; age += 7) {
      Millis last = Minutes(age);
      for (int64_t chance = 0; chance < kCertain; chance += 50'000) {
        const Millis at = curve.QuantileFrom(Minutes(age), chance);
        ASSERT_GE(at, last) << "round " << round << " age " << age << " chance " << chance;
        last = at;
      }
    }
  }
}

MeterEvent Event(MeterKind kind, const std::string& pod, int64_t minute) {
  MeterEvent event;
  event.kind = kind;
  event.uid = PodUid("uid-" + pod);
  event.pod = {"a", pod};
  event.workload_class = "train";
  event.at = Instant(Minutes(minute));
  event.parts = {{"h100", {kQuantaPerGpu, kQuantaPerGpu}}};
  return event;
}

TEST(RuntimesTest, TheNarrowestLikenessWithEnoughEndsAnswers) {
  Runtimes runtimes;
  for (int i = 0; i < 5; ++i) runtimes.Add({"a", "short", "train", 1}, {Minutes(10), true});
  for (int i = 0; i < 50; ++i) runtimes.Add({"b", "long", "train", 1}, {Minutes(600), true});
  RunCurves curves(runtimes);
  const auto median = [&curves](const RunKind& kind) {
    const SurvivalCurve* curve = curves.CurveOf(kind);
    return curve == nullptr ? Millis(-1) : curve->QuantileFrom(Millis(0), 500'000);
  };
  EXPECT_EQ(median({"a", "short", "train", 1}), Minutes(10));
  EXPECT_EQ(median({"a", "other", "train", 1}), Minutes(10)) << "its team's";
  EXPECT_EQ(median({"c", "other", "train", 1}), Minutes(600)) << "its class and size";
  EXPECT_EQ(median({"c", "other", "serve", 8}), Minutes(600)) << "all there is";
  EXPECT_EQ(RunCurves(Runtimes()).CurveOf({"a", "short", "train", 1}), nullptr);
}

TEST(RuntimesTest, TheJournalTellsWhenRunsBeganAndEnded) {
  Runtimes runtimes;
  for (int i = 0; i < 5; ++i) {
    const std::string pod = "train-" + std::to_string(i);
    runtimes.Note(Event(MeterKind::kOpen, pod, 0));
    runtimes.Note(Event(MeterKind::kRunning, pod, 5));
    runtimes.Note(Event(MeterKind::kClose, pod, 25));
  }
  runtimes.Note(Event(MeterKind::kRunning, "never-ran", 5));
  runtimes.Note(Event(MeterKind::kVoid, "never-ran", 5));
  runtimes.Note(Event(MeterKind::kClose, "never-ran", 50));
  EXPECT_EQ(runtimes.runs(), 5);
  RunCurves curves(runtimes);
  const SurvivalCurve* curve = curves.CurveOf({"a", "train", "train", 1});
  ASSERT_NE(curve, nullptr);
  EXPECT_EQ(curve->QuantileFrom(Millis(0), 500'000), Minutes(20));
}

TEST(RuntimesTest, WhatWasEvictedEndedForAnotherReason) {
  Runtimes runtimes;
  runtimes.Note(Event(MeterKind::kRunning, "p-1", 0));
  runtimes.NoteEvicted(PodUid("uid-p-1"));
  runtimes.Note(Event(MeterKind::kClose, "p-1", 3));
  EXPECT_EQ(runtimes.runs(), 1);
  EXPECT_EQ(RunCurves(runtimes).CurveOf({"a", "p", "train", 1}), nullptr) << "no end is known";
}

TEST(RuntimesTest, GapsAreOfTheLastDay) {
  Runtimes runtimes;
  const RunKind kind{"a", "train", "c", 8};
  const Instant now = Instant(Minutes(10'000));
  EXPECT_EQ(runtimes.GapOf(kind, now, {}), std::nullopt);
  for (int i = 0; i < 4; ++i) runtimes.NoteBegun(kind, now - Minutes(40 - 10 * i), std::nullopt);
  EXPECT_EQ(runtimes.GapOf(kind, now, {}), std::nullopt) << "four are too few";
  runtimes.NoteBegun(kind, now, std::nullopt);
  EXPECT_EQ(runtimes.GapOf(kind, now, {}), Minutes(8)) << "five in forty minutes";
  EXPECT_EQ(runtimes.GapOf({"a", "other", "c", 8}, now, {}), Minutes(8)) << "whatever its name";
  EXPECT_EQ(runtimes.GapOf({"b", "train", "c", 8}, now, {}), std::nullopt);
  EXPECT_EQ(runtimes.GapOf(kind, now + Minutes(3'000), {}), std::nullopt) << "none came of late";
}

TEST(RuntimesTest, WhatWasLetInFromAnOldQueueDidNotCome) {
  Runtimes runtimes;
  const RunKind kind{"a", "train", "c", 8};
  const Instant now = Instant(Minutes(10'000));
  for (int i = 0; i < 20; ++i) runtimes.NoteBegun(kind, now - Minutes(100 - 5 * i), std::nullopt);
  const struct {
    const char* name;
    Runtimes::Present present;
    std::optional<Millis> gap;
  } rows[] = {
      {"nothing of it is there", {}, Minutes(5)},
      {"all of it came that day", {.begun = 4, .fresh = 4}, Minutes(5)},
      {"half of it did", {.begun = 4, .fresh = 2}, Minutes(10)},
      {"none of it did", {.begun = 4}, std::nullopt},
      {"but more waits that did", {.begun = 4, .waits = 10}, Minutes(10)},
      {"too little waits", {.begun = 4, .waits = 4}, std::nullopt},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(runtimes.GapOf(kind, now, row.present), row.gap) << row.name;
  }
}

TEST(RuntimesTest, WorkOfWhichItIsKnownComesWhenItCame) {
  const RunKind kind{"a", "train", "c", 8};
  const Instant now = Instant(Minutes(10'000));
  const struct {
    const char* name;
    std::vector<Instant> came;  // of work that was let in within the last hour
    Runtimes::Present present;
    std::optional<Millis> gap;
  } rows[] = {
      {"over ten hours, and waited", {6, now - std::chrono::hours(10)}, {}, Minutes(100)},
      {"before the span, though nothing of it is there",
       {20, now - std::chrono::hours(30)},
       {},
       std::nullopt},
      {"and what runs was all fresh",
       {20, now - std::chrono::hours(30)},
       {.begun = 4, .fresh = 4},
       {}},
      {"what waits came first",
       {5, now - std::chrono::hours(1)},
       {.waits = 1, .oldest = now - std::chrono::hours(6)},
       Minutes(60)},
      {"by a clock that is ahead", {6, now + std::chrono::hours(9)}, {}, Minutes(1)},
  };
  for (const auto& row : rows) {
    Runtimes runtimes;
    int64_t begun = 0;
    for (const Instant came : row.came) {
      runtimes.NoteBegun(kind, now - Minutes(6) + std::chrono::seconds(begun++), came);
    }
    EXPECT_EQ(runtimes.GapOf(kind, now, row.present), row.gap) << row.name;
  }
}

TEST(RuntimesTest, WhatIsMeteredOnDidNotComeAgain) {
  Runtimes runtimes;
  for (int i = 0; i < 6; ++i) {
    MeterEvent event = Event(MeterKind::kOpen, "p-" + std::to_string(i), 0);
    event.interval = 1;
    runtimes.Note(event);
  }
  const RunKind kind = RunKindOf({"a", "p-1"}, "train", MilliGpu::Of(1000));
  EXPECT_EQ(runtimes.GapOf(kind, Event(MeterKind::kOpen, "p", 1).at, {}), std::nullopt);
}

TEST(RuntimesTest, KindsAreForgottenOldestFirst) {
  Runtimes runtimes;
  runtimes.Add({"first", "", "c", 1}, {Minutes(1), true});
  for (std::size_t i = 0; i < Runtimes::kMostKinds; ++i) {
    runtimes.Add({"ns-" + std::to_string(i), "", "c", 1}, {Minutes(1), true});
  }
  EXPECT_EQ(runtimes.RunsOf(Runtimes::LevelsOf({"first", "", "c", 1}).front()), nullptr);
  EXPECT_NE(runtimes.RunsOf("2/ns-4095/c/1"), nullptr);
}

}  // namespace THIS_FILE
}  // namespace tranche
