#include "scheduler/scoring/mix.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "test/builders/cluster.h"
#include "test/builders/mix.h"

namespace tranche {
namespace THIS_FILE {

constexpr int64_t kAll = MixLearner::kAll;

const MixType* Find(const Mix& mix, const PodRequest& like) {
  std::string key;
  AppendTypeKey(like, like.asks.front(), like.cpu, key);
  const auto at = std::ranges::find(mix.types, key, &MixType::key);
  return at == mix.types.end() ? nullptr : &*at;
}

TEST(MixTest, BeforeSixteenArrivalsTheCommonestRequestsStandForTheMix) {
  MixLearner learner;
  for (const PodRequest& common :
       {test::FractionPod("p", 500), test::WholePod("p", 1), test::WholePod("p", 8)}) {
    ASSERT_NE(Find(learner.mix(), common), nullptr);
    EXPECT_NEAR(static_cast<double>(Find(learner.mix(), common)->recent), kAll / 5.0, 1);
  }
  for (int i = 0; i < 15; ++i) {
    EXPECT_EQ(learner.Arrived(test::WholePod("p", 1)), MixChange::kNone);
  }
  EXPECT_EQ(learner.mix().types.size(), 5U);
  EXPECT_EQ(learner.Arrived(test::WholePod("p", 1)), MixChange::kAll);
  ASSERT_EQ(learner.mix().types.size(), 1U);
  EXPECT_EQ(learner.mix().types[0].recent, kAll);
  EXPECT_NEAR(static_cast<double>(learner.mix().one), static_cast<double>(kAll) / 16, kAll / 1000);
}

TEST(MixTest, TheRecentMemoryForgetsFasterThanTheLastingOne) {
  MixLearner learner;
  const PodRequest old = test::FractionPod("p", 250);
  for (int i = 0; i < 10'000; ++i) learner.Arrived(old);
  for (int i = 0; i < 4'000; ++i) learner.Arrived(test::WholePod("p", 8));
  const Mix mix = learner.Now();
  // (1 - 1/2000)^4000 and (1 - 1/10000)^4000 of what there was, relative to all that is remembered.
  EXPECT_NEAR(static_cast<double>(Find(mix, old)->recent) / kAll, 0.134, 0.01);
  EXPECT_NEAR(static_cast<double>(Find(mix, old)->lasting) / kAll, 0.562, 0.01);
}

TEST(MixTest, CountsLastAsLongAsTheCluster) {
  MixLearner learner;
  const PodRequest rare = test::WholePod("p", 8);
  for (int i = 0; i < 100'000; ++i) {
    learner.Arrived(i % 1000 == 0 ? rare : test::FractionPod("p", 500));
  }
  const Mix mix = learner.Now();
  int64_t recent = 0;
  int64_t lasting = 0;
  for (const MixType& type : mix.types) {
    recent += type.recent;
    lasting += type.lasting;
  }
  EXPECT_NEAR(static_cast<double>(recent), kAll, 8);
  EXPECT_NEAR(static_cast<double>(lasting), kAll, 8);
  EXPECT_NEAR(static_cast<double>(Find(mix, rare)->lasting) / kAll, 0.001, 0.0002);
}

TEST(MixTest, TypesDifferInAllThatDecidesWhereTheyFit) {
  using test::FractionPod;
  const std::vector<PodRequest> different = {
      FractionPod("p", 500),
      FractionPod("p", 501),
      FractionPod("p", 500, 2),
      test::WithCpu(FractionPod("p", 500), 1000),
      test::OnModels(FractionPod("p", 500), {"h100"}),
      test::OnModels(FractionPod("p", 500), {"h100", "h200"}),
      test::WholePod("p", 1),
      test::SharedPod("p", 1),
      test::MigPod("p", "1g.10gb", 1),
      test::MigPod("p", "2g.20gb", 1),
  };
  MixLearner learner;
  for (const PodRequest& request : different) learner.Arrived(request);
  EXPECT_EQ(learner.Now().types.size(), different.size());
  PodRequest other_name = FractionPod("other", 500);
  other_name.priority = 7;
  learner.Arrived(other_name);
  EXPECT_EQ(learner.Now().types.size(), different.size()) << "names and priorities do not matter";
  learner.Arrived(test::EmptyRequest("cpu"));
  EXPECT_EQ(learner.arrivals(), static_cast<int64_t>(different.size()) + 1) << "no GPU: ignored";
}

TEST(MixTest, APodWithSeveralAsksCountsEachWithItsPartOfTheCpu) {
  PodRequest both = test::WithCpu(test::WholePod("p", 3), 8000);
  both.asks.push_back(test::FractionPod("p", 500).asks[0]);
  MixLearner learner;
  learner.Arrived(both);
  const Mix mix = learner.Now();
  EXPECT_NE(Find(mix, test::WithCpu(test::WholePod("p", 3), 6000)), nullptr);
  EXPECT_NE(Find(mix, test::WithCpu(test::FractionPod("p", 500), 2000)), nullptr);
}

TEST(MixTest, ASteadyMixMakesNoNewVersions) {
  MixLearner learner;
  const auto arrive = [&learner](int i) {
    learner.Arrived(i % 2 == 0 ? test::FractionPod("p", 500) : test::WholePod("p", 1));
  };
  for (int i = 0; i < 10'000; ++i) arrive(i);
  const uint32_t version = learner.mix().version;
  for (int i = 0; i < 50'000; ++i) arrive(i);
  EXPECT_EQ(learner.mix().version, version);
}

// A rare large type moves the shares by nothing, and prices must know it all the same.
TEST(MixTest, WhatIsRareIsKnownAtTheNextSnapshotWithoutANewVersion) {
  MixLearner learner;
  for (int i = 0; i < 10'000; ++i) learner.Arrived(test::FractionPod("p", 500));
  const uint32_t version = learner.mix().version;
  learner.Arrived(test::WholePod("p", 8));
  EXPECT_EQ(Find(learner.mix(), test::WholePod("p", 8)), nullptr);
  MixChange change = MixChange::kNone;
  for (int i = 0; i < 1000 && change == MixChange::kNone; ++i) {
    change = learner.Arrived(test::FractionPod("p", 500));
  }
  EXPECT_EQ(change, MixChange::kLasting);
  EXPECT_NE(Find(learner.mix(), test::WholePod("p", 8)), nullptr);
  EXPECT_EQ(learner.mix().version, version);
}

TEST(MixTest, TheRarestTypesAreDroppedBeyondTheBound) {
  MixLearner learner;
  for (int i = 0; i < 3; ++i) learner.Arrived(test::WholePod("p", 8));
  for (int i = 0; i < 5000; ++i) {
    learner.Arrived(test::WithCpu(test::FractionPod("p", 1 + i % 999), i));
  }
  const Mix mix = learner.Now();
  EXPECT_EQ(mix.types.size(), MixLearner::kMaxTypes);
  EXPECT_NE(Find(mix, test::WholePod("p", 8)), nullptr);
}

TEST(MixTest, TurnoverIsWhatEndsPerArrival) {
  MixLearner learner;
  const PodRequest pod = test::WholePod("p", 1);
  for (int i = 0; i < 3000; ++i) learner.Arrived(pod);
  EXPECT_EQ(learner.Now().turnover, 0);
  const uint32_t version = learner.mix().version;
  for (int i = 0; i < 10'000; ++i) {
    learner.Arrived(pod);
    if (i % 2 == 0) learner.Departed(pod);
    learner.Departed(test::EmptyRequest("cpu"));
  }
  EXPECT_NEAR(static_cast<double>(learner.Now().turnover) / kAll, 0.5, 0.01);
  EXPECT_GT(learner.mix().version, version) << "it changes how far ahead is looked";
  for (int i = 0; i < 100; ++i) {
    for (int j = 0; j < 100; ++j) learner.Departed(pod);
  }
  EXPECT_EQ(learner.Now().turnover, kAll) << "never more than all";
}

}  // namespace THIS_FILE
}  // namespace tranche
