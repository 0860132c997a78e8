// ResourceQuotas as HAMi counts them.
#include "scheduler/index/namespace_caps.h"

#include <gtest/gtest.h>

#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using test::HamiPod;

NamespaceCap Cap(const std::string& name, std::optional<int64_t> mib, std::optional<int64_t> cores,
                 const std::string& ns = "team") {
  NamespaceCap cap;
  cap.ns = ns;
  cap.name = name;
  if (mib) cap.memory = Mebibytes::Of(*mib);
  cap.cores = cores;
  return cap;
}

CapAmount Amount(int64_t mib, int64_t cores) { return {Mebibytes::Of(mib), cores}; }

const PodUid kPod("new");

TEST(NamespaceCaps, LetInUpToTheCapAndNoFurther) {
  struct Case {
    const char* what;
    NamespaceCap cap;
    CapAmount used, asked;
    bool allowed;
  };
  const std::vector<Case> cases = {
      {"the rest of the memory", Cap("q", 10'000, {}), Amount(6'000, 0), Amount(4'000, 0), true},
      {"a MiB more", Cap("q", 10'000, {}), Amount(6'000, 0), Amount(4'001, 0), false},
      {"the rest of the cores", Cap("q", {}, 100), Amount(6'000, 70), Amount(90'000, 30), true},
      {"a percent more", Cap("q", {}, 100), Amount(6'000, 70), Amount(0, 31), false},
      {"both keys, memory lacks", Cap("q", 1'000, 100), Amount(0, 0), Amount(1'001, 10), false},
      {"both keys, cores lack", Cap("q", 1'000, 100), Amount(0, 0), Amount(10, 101), false},
      {"a hard value of 0 blocks", Cap("q", 0, {}), Amount(0, 0), Amount(1, 0), false},
      {"nothing of what is blocked", Cap("q", {}, 0), Amount(0, 0), Amount(9'000, 0), true},
      {"another namespace's", Cap("q", 0, 0, "other"), Amount(0, 0), Amount(9'000, 50), true},
  };
  for (const Case& one : cases) {
    NamespaceCaps caps;
    caps.Set(one.cap);
    caps.Use(PodUid("old"), "team", one.used);
    EXPECT_EQ(caps.Allows(kPod, "team", one.asked), one.allowed) << one.what;
    EXPECT_EQ(caps.Describe(kPod, "team", one.asked).empty(), one.allowed) << one.what;
  }
}

TEST(NamespaceCaps, EveryQuotaOfANamespaceHoldsByItself) {
  NamespaceCaps caps;
  caps.Set(Cap("wide", 10'000, {}));
  caps.Set(Cap("narrow", 2'000, {}));
  EXPECT_FALSE(caps.Allows(kPod, "team", Amount(3'000, 0)));
  EXPECT_EQ(caps.Describe(kPod, "team", Amount(3'000, 0)),
            "ResourceQuota team/narrow allows 2000 MiB of GPU memory; 0 MiB are in use, the pod "
            "asks for 3000 MiB");
  EXPECT_TRUE(caps.Remove({"team", "narrow"}));
  EXPECT_FALSE(caps.Remove({"team", "narrow"}));
  EXPECT_TRUE(caps.Allows(kPod, "team", Amount(3'000, 0)));
  EXPECT_TRUE(caps.Set(Cap("wide", {}, {}))) << "no longer about GPUs";
  EXPECT_FALSE(caps.Limits("team"));
}

TEST(NamespaceCaps, WhatAPodHoldsIsCountedOnceAndNotAgainstItself) {
  NamespaceCaps caps;
  caps.Set(Cap("q", 4'000, 100));
  caps.Use(kPod, "team", Amount(1'000, 50));
  caps.Use(kPod, "team", Amount(3'000, 60));
  EXPECT_EQ(caps.UsedBy("team"), Amount(3'000, 60));
  EXPECT_TRUE(caps.Allows(kPod, "team", Amount(4'000, 100)));
  EXPECT_FALSE(caps.Allows(PodUid("other"), "team", Amount(1'001, 0)));
  EXPECT_EQ(caps.Release(kPod), "team");
  EXPECT_EQ(caps.Release(kPod), "");
  EXPECT_EQ(caps.UsedBy("team"), Amount(0, 0));
}

TEST(NamespaceCaps, APodThatTakesNothingMayLeaveLast) {
  NamespaceCaps caps;
  caps.Use(PodUid("nothing"), "team", Amount(0, 0));
  caps.Use(kPod, "team", Amount(1'000, 50));
  EXPECT_EQ(caps.Release(kPod), "team");
  EXPECT_EQ(caps.Release(PodUid("nothing")), "team");
  EXPECT_EQ(caps.UsedBy("team"), Amount(0, 0));
}

TEST(NamespaceCaps, OnePodLeavesAndTheOthersStayCounted) {
  NamespaceCaps caps;
  caps.Use(kPod, "team", Amount(1'000, 50));
  caps.Use(PodUid("stays"), "team", Amount(200, 7));
  EXPECT_EQ(caps.Release(kPod), "team");
  EXPECT_EQ(caps.UsedBy("team"), Amount(200, 7));
}

// The UID tells nothing of another namespace.
TEST(NamespaceCaps, WhatAPodHoldsElsewhereIsNotItsOwnHere) {
  NamespaceCaps caps;
  caps.Set(Cap("q", 4'000, {}));
  caps.Use(kPod, "other", Amount(3'000, 0));
  caps.Use(PodUid("third"), "team", Amount(3'000, 0));
  EXPECT_TRUE(caps.Allows(kPod, "team", Amount(1'000, 0)));
  EXPECT_FALSE(caps.Allows(kPod, "team", Amount(1'001, 0)));
  EXPECT_FALSE(caps.Remove({"other", "q"})) << "no quota of that namespace";
}

TEST(NamespaceCaps, SayWhenNothingChanged) {
  NamespaceCaps caps;
  EXPECT_TRUE(caps.Set(Cap("q", 4'000, 100)));
  EXPECT_FALSE(caps.Set(Cap("q", 4'000, 100)));
  EXPECT_TRUE(caps.Set(Cap("q", 4'000, 99)));
  caps.Use(kPod, "team", Amount(5, 6));
  ASSERT_EQ(caps.Rows().size(), 1u);
  EXPECT_EQ(caps.Rows()[0].cap, Cap("q", 4'000, 99));
  EXPECT_EQ(caps.Rows()[0].used, Amount(5, 6));
}

TEST(NamespaceCaps, CountAllCardsOfAllContainers) {
  PodRequest request = HamiPod("p", 2, 3'000, 30);
  request.containers.push_back({"init", ContainerRole::kInit, 1});
  Ask init = HamiPod("q", 1, 5'000, 20).asks[0];
  init.container = 1;
  request.asks.push_back(init);
  EXPECT_EQ(LeastOf(request), Amount(11'000, 80));
  const Inventory t4 = BuildInventory(test::HamiNode("n", 2), 0);
  EXPECT_EQ(MostOn(t4, request), LeastOf(request)) << "MiB are the same on every card";
}

TEST(NamespaceCaps, KnowWhatDependsOnTheCardOnlyOnANode) {
  const Inventory t4 = BuildInventory(test::HamiNode("n", 2), 0);
  PodRequest half = HamiPod("half", 1, 0);
  half.asks[0].memory = {MemoryNeed::Kind::kPercentOfCard, 50};
  EXPECT_EQ(LeastOf(half), Amount(0, 0));
  EXPECT_EQ(MostOn(t4, half), Amount(7'554, 0)) << "half of 15,109 MiB";
  EXPECT_EQ(MostOn(t4, test::WholePod("whole", 2)), Amount(2 * 15'109, 200));
  EXPECT_EQ(LeastOf(test::WholePod("whole", 2)), Amount(0, 0)) << "of unknown cards";
  EXPECT_EQ(MostOn(t4, test::SharedPod("replica", 1)), Amount(0, 0)) << "it has no such cards";
  PodRequest elsewhere = HamiPod("elsewhere", 1, 3'000);
  elsewhere.models_any = {"h100"};
  EXPECT_EQ(MostOn(t4, elsewhere), Amount(0, 0));
  const Inventory mig = BuildInventory(test::MigNode("n", 1, 0, {{"3g.40gb", 2}}), 0);
  EXPECT_EQ(MostOn(mig, test::MigPod("instances", "3g.40gb", 2)), Amount(2 * 40'192, 2 * 43));
}

TEST(NamespaceCaps, WhatWasPickedIsAddedUp) {
  EXPECT_EQ(AmountOf({}), Amount(0, 0));
  Pick half, all;
  half.milli = MilliGpu::Of(500);
  half.memory = Mebibytes::Of(700);
  all.milli = kWholeGpu;
  all.memory = Mebibytes::Of(1'400);
  EXPECT_EQ(AmountOf({half, all}), Amount(2'100, 150));
}

}  // namespace THIS_FILE
}  // namespace tranche
