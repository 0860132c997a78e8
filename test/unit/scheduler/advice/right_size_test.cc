// Which work would do with less, for small fleets written as what is where and what it did.
#include "scheduler/advice/right_size.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/builders/cluster.h"
#include "test/builders/defrag_case.h"

namespace tranche {
namespace THIS_FILE {

using namespace std::chrono_literals;
using test::DefragCase;
using test::FractionPod;
using test::HamiNode;
using test::MigNode;
using test::MigPod;
using test::StockNode;
using test::WholePod;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Of one device, in every minute.
struct Did {
  int permille = 0;
  int64_t mib = -1;  // -1: not told
};

class RightSizeTest : public testing::Test {
 protected:
  // An A100 fleet: whole cards, cards cut into instances of each size, and one of T4 that HAMi
  // divides.
  RightSizeTest() {
    fleet_.Node(MigNode("a-mig", 3, 0, {{"1g.10gb", 7}, {"2g.20gb", 3}, {"3g.40gb", 2}}));
    fleet_.Node(MigNode("a-whole", 4, 4, {}));
    fleet_.Node(HamiNode("t4", 2));
  }
  AdvicePod& Put(const PodRequest& request, const std::string& node, std::vector<Did> did) {
    AdvicePod& pod = fleet_.Pod(request, node, 0);
    did_.emplace_back(pod.uid, std::move(did));
    return pod;
  }
  UseHistory Measured(int hours) const {
    UseHistory history;
    Instant now;
    for (int minute = 0; minute <= hours * 60; ++minute) {
      std::vector<PodSample> samples;
      for (const auto& [uid, did] : did_) {
        PodSample sample{uid, {}};
        for (std::size_t i = 0; i < did.size(); ++i) {
          DeviceSample device{fmt::format("G{}", i), did[i].permille, std::nullopt};
          if (did[i].mib >= 0) device.memory = Mebibytes::Of(did[i].mib);
          sample.devices.push_back(device);
        }
        samples.push_back(std::move(sample));
      }
      history.Note(samples, now);
      now += 1min;
    }
    return history;
  }
  RightSizeAdvice Advise(int hours = 24, const RightSizeLimits& limits = {}) {
    return AdviseRightSizes(fleet_.Build(), Measured(hours), limits);
  }
  // "p: 1 GPU -> 1g.10gb saves 857"
  std::vector<std::string> Texts(int hours = 24, const RightSizeLimits& limits = {}) {
    std::vector<std::string> texts;
    for (const RightSize& entry : Advise(hours, limits).entries) {
      texts.push_back(fmt::format("{}: {} -> {} saves {}", entry.pod.name, entry.holds,
                                  SizeText(entry.would_do), entry.saved.count()));
    }
    return texts;
  }

  DefragCase fleet_;
  std::vector<std::pair<PodUid, std::vector<Did>>> did_;
};

TEST_F(RightSizeTest, TheSmallestInstanceThatHoldsWhatWasSeenWithAMargin) {
  Put(WholePod("small", 1), "a-whole", {{40, 6'000}});
  Put(WholePod("memory", 1), "a-whole", {{40, 12'000}});
  Put(WholePod("busy", 1), "a-whole", {{200, 6'000}});
  Put(WholePod("works", 1), "a-whole", {{650, 6'000}});
  EXPECT_THAT(Texts(),
              ElementsAre("small: 1 GPU -> 1g.10gb saves 858", "busy: 1 GPU -> 2g.20gb saves 715",
                          "memory: 1 GPU -> 2g.20gb saves 715"))
      << "200 of 1000 are 285 of an A100 at seven tenths, two slices; 650 would take all of it";
}

TEST_F(RightSizeTest, NothingIsSaidBeforeADayNorOfWhatIsNotMeasured) {
  Put(WholePod("p", 1), "a-whole", {{40, 6'000}});
  Put(WholePod("unseen", 1), "a-whole", {});
  EXPECT_THAT(Texts(23), IsEmpty());
  const RightSizeAdvice advice = Advise(24);
  EXPECT_EQ(advice.entries.size(), 1);
  EXPECT_EQ(advice.measuring, 1);
  EXPECT_EQ(advice.measured, 1);
  EXPECT_EQ(Advise(23).measured, 0);
}

TEST_F(RightSizeTest, CardsThatDidNothingAreGivenBack) {
  Put(WholePod("three", 3), "a-whole", {{900, 70'000}, {0, 4}, {10, 1'024}});
  EXPECT_THAT(Texts(), ElementsAre("three: 3 GPUs -> 1 GPU saves 2000"));
}

TEST_F(RightSizeTest, CardsThatDidALittleAreKept) {
  Put(WholePod("three", 3), "a-whole", {{900, 70'000}, {11, 4}, {0, 1'025}});
  EXPECT_THAT(Texts(), IsEmpty()) << "work on several cards is divided as it is";
}

TEST_F(RightSizeTest, OneOfSeveralCardsMayBeCutToo) {
  Put(WholePod("two", 2), "a-whole", {{100, 6'000}, {0, 0}});
  EXPECT_THAT(Texts(), ElementsAre("two: 2 GPUs -> 1g.10gb saves 1858"));
}

TEST_F(RightSizeTest, AnInstanceIsMeasuredByItself) {
  Put(MigPod("half", "3g.40gb", 1), "a-mig", {{200, 6'000}});
  Put(MigPod("works", "3g.40gb", 1), "a-mig", {{600, 6'000}});
  EXPECT_THAT(Texts(), ElementsAre("half: 3g.40gb -> 1g.10gb saves 286"))
      << "200 of 1000 of three slices are 122 of an A100 at seven tenths";
}

TEST_F(RightSizeTest, WhereCardsAreDividedAPartWouldDo) {
  Put(WholePod("p", 1), "t4", {{50, 2'000}});
  EXPECT_THAT(Texts(), ElementsAre("p: 1 GPU -> 0.2 of a GPU saves 800")) << "2,400 MiB of 15,109";
}

TEST_F(RightSizeTest, WhatIsNotWorthARestartIsNotSaid) {
  Put(FractionPod("p", 250), "t4", {{50, 2'000}});
  EXPECT_THAT(Texts(), IsEmpty()) << "0.2 of a GPU would do";
  RightSizeLimits limits;
  limits.least_saved = MilliGpu::Of(50);
  EXPECT_THAT(Texts(24, limits), ElementsAre("p: 0.25 of a GPU -> 0.2 of a GPU saves 50"));
}

TEST_F(RightSizeTest, WithoutMemoryOnlyCardsThatNobodyUsesCouldBeTold) {
  Put(WholePod("one", 1), "a-whole", {{0}});
  Put(WholePod("two", 2), "a-whole", {{900}, {0}});
  const RightSizeAdvice advice = Advise();
  EXPECT_THAT(advice.entries, IsEmpty()) << "a card without work may hold what the other needs";
  EXPECT_THAT(advice.notes, ElementsAre(HasSubstr("nobody tells how much memory is in use")));
}

TEST_F(RightSizeTest, GangsAndPodsThatLeaveAreLeftAlone) {
  PodRequest member = WholePod("member", 1);
  member.gang = "g";
  member.gang_size = 4;
  Put(member, "a-whole", {{40, 6'000}});
  Put(WholePod("leaves", 1), "a-whole", {{40, 6'000}}).leaves = true;
  Put(WholePod("guessed", 1), "a-whole", {{40, 6'000}}).known = false;
  EXPECT_THAT(Texts(), IsEmpty());
}

TEST_F(RightSizeTest, WhatTheClassOrThePodForbidsIsNotProposed) {
  AdvicePod& exclusive = Put(WholePod("exclusive", 1), "a-whole", {{40, 6'000}});
  exclusive.workload_class = "training";
  PodRequest bound = WholePod("bound", 1);
  NodeConstraints demands;
  demands.selector = {{"disk", "ssd"}};
  bound.constraints = std::make_shared<const NodeConstraints>(demands);
  Put(bound, "a-whole", {{40, 6'000}});
  AdviceCase fleet = fleet_.Build();
  GpuClass training;
  training.name = "training";
  training.sharing = {SharingMode::kExclusive};
  fleet.classes = {training};
  EXPECT_THAT(AdviseRightSizes(fleet, Measured(24), {}).entries, IsEmpty());
  training.sharing = {SharingMode::kExclusive, SharingMode::kMig};
  fleet.classes = {training};
  EXPECT_EQ(AdviseRightSizes(fleet, Measured(24), {}).entries.size(), 1);
}

TEST_F(RightSizeTest, ANodeThatTakesNobodyOffersNothing) {
  Put(WholePod("p", 1), "a-whole", {{40, 6'000}});
  AdviceCase fleet = fleet_.Build();
  fleet.nodes[0].open = false;
  EXPECT_THAT(AdviseRightSizes(fleet, Measured(24), {}).entries, IsEmpty());
}

TEST_F(RightSizeTest, ANodeThatTakesNobodyDoesNotTakeItsOwnBack) {
  Put(WholePod("two", 2), "t4", {{50, 2'000}, {0, 0}});
  AdviceCase fleet = fleet_.Build();
  EXPECT_EQ(AdviseRightSizes(fleet, Measured(24), {}).entries.size(), 1);
  fleet.nodes[2].open = false;
  EXPECT_THAT(AdviseRightSizes(fleet, Measured(24), {}).entries, IsEmpty());
}

TEST_F(RightSizeTest, WhatIsProposedHasRoomTogether) {
  // Six of seven small instances are taken; the larger ones are free.
  for (int i = 0; i < 6; ++i) {
    fleet_.Pod(MigPod("held" + std::to_string(i), "1g.10gb", 1), "a-mig", 0);
  }
  for (const char* name : {"p", "q", "r", "s"}) Put(WholePod(name, 1), "a-whole", {{40, 6'000}});
  EXPECT_THAT(Texts(),
              ElementsAre("p: 1 GPU -> 1g.10gb saves 858", "q: 1 GPU -> 2g.20gb saves 715",
                          "r: 1 GPU -> 2g.20gb saves 715", "s: 1 GPU -> 2g.20gb saves 715"));
}

TEST_F(RightSizeTest, OnAFullNodeOnePodMakesRoomForTheNext) {
  for (const char* name : {"p", "q"}) Put(WholePod(name, 1), "t4", {{50, 6'000}});
  EXPECT_THAT(Texts(), ElementsAre("p: 1 GPU -> 0.5 of a GPU saves 500",
                                   "q: 1 GPU -> 0.5 of a GPU saves 500"));
}

TEST_F(RightSizeTest, OfManyThoseThatSaveMostAreSaid) {
  Put(WholePod("a", 1), "a-whole", {{40, 6'000}});
  Put(WholePod("b", 3), "a-whole", {{40, 6'000}, {0, 0}, {0, 0}});
  RightSizeLimits limits;
  limits.most_entries = 1;
  EXPECT_THAT(Texts(24, limits), ElementsAre("b: 3 GPUs -> 1g.10gb saves 2858"));
  EXPECT_THAT(Advise(24, limits).notes, ElementsAre(HasSubstr("1 more pods may ask for too much")));
  EXPECT_EQ(Advise().saved, MilliGpu::Of(858 + 2858));
}

TEST(SizeTextTest, SizesAreTextsAndRequests) {
  struct Case {
    SmallerAsk ask;
    const char* text;
    const char* request;
  };
  using Form = SmallerAsk::Form;
  const Case kCases[] = {
      {{Form::kGpus, 1, "", {}}, "1 GPU", "nvidia.com/gpu: 1"},
      {{Form::kGpus, 3, "", {}}, "3 GPUs", "nvidia.com/gpu: 3"},
      {{Form::kInstance, 0, "1g.10gb+me", {}}, "1g.10gb+me", "nvidia.com/mig-1g.10gb.me: 1"},
      {{Form::kFraction, 0, "", MilliGpu::Of(50)},
       "0.05 of a GPU",
       "tranche.dev/gpu-fraction: 0.05"},
      {{Form::kFraction, 0, "", MilliGpu::Of(500)},
       "0.5 of a GPU",
       "tranche.dev/gpu-fraction: 0.5"},
      {{Form::kFraction, 0, "", MilliGpu::Of(1500)},
       "1.5 of a GPU",
       "tranche.dev/gpu-fraction: 1.5"},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(SizeText(c.ask), c.text);
    const AskText ask = RequestText(c.ask);
    EXPECT_EQ(ask.key + ": " + ask.value, c.request);
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
