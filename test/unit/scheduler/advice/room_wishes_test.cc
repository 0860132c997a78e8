// Which gangs wait for room and lack nothing else.
#include "scheduler/advice/room_wishes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using test::FractionPod;
using test::WholePod;
using testing::ElementsAre;
using testing::IsEmpty;

PodRequest Asking(PodRequest request, const std::string& gang) {
  request.gang = gang;
  return request;
}

// As "gang: count x example, ...".
std::vector<std::string> Texts(const AdviceCase& fleet) {
  std::vector<std::string> texts;
  for (const RoomWish& wish : GangsWithoutRoom(fleet)) {
    std::string text = wish.ns + "/" + wish.gang + ":";
    for (const RoomKind& kind : wish.kinds) {
      text += fmt::format(" {} x {}", kind.count, wish.members[kind.example].pod.name);
    }
    texts.push_back(text);
  }
  return texts;
}

// Gang run: two workers of one controller and a leader of another.
class RoomWishesTest : public testing::Test {
 protected:
  RoomWishesTest() {
    Waits(Asking(WholePod("leader", 1), "run"), "u-leaders", Reason::kGangNoRoom);
    Waits(Asking(WholePod("worker-0", 4), "run"), "u-workers", Reason::kNone);
    Waits(Asking(WholePod("worker-1", 4), "run"), "u-workers", Reason::kNone);
  }
  AdviceWaiter& Waits(const PodRequest& request, const std::string& controller, Reason why) {
    AdviceWaiter waiter;
    waiter.name = request.name;
    waiter.uid = request.uid;
    waiter.request = std::make_shared<const PodRequest>(request);
    waiter.maker = controller;
    waiter.last_reason = why;
    waiter.since = Instant(std::chrono::seconds(fleet.waiting.size()));
    fleet.waiting.push_back(std::move(waiter));
    return fleet.waiting.back();
  }
  void Change(AdviceWaiter& waiter, const std::function<void(PodRequest&)>& change) {
    PodRequest request = *waiter.request;
    change(request);
    waiter.request = std::make_shared<const PodRequest>(std::move(request));
  }
  AdviceCase fleet;
};

TEST_F(RoomWishesTest, AGangIsAskedForAsPodsOfAFewKinds) {
  ASSERT_THAT(Texts(fleet), ElementsAre("team/run: 1 x leader 2 x worker-0"));
  EXPECT_EQ(GangsWithoutRoom(fleet)[0].since, Instant(std::chrono::seconds(2)));
}

TEST_F(RoomWishesTest, SinglePodsAreLeftToAutoscalersAsEver) {
  fleet.waiting.clear();
  Waits(WholePod("alone", 4), "", Reason::kNoRoom);
  EXPECT_THAT(Texts(fleet), IsEmpty());
}

TEST_F(RoomWishesTest, PodsWithoutAControllerAreOfAKindEach) {
  for (AdviceWaiter& waiter : fleet.waiting) waiter.maker.clear();
  EXPECT_THAT(Texts(fleet), ElementsAre("team/run: 1 x leader 1 x worker-0 1 x worker-1"));
}

TEST_F(RoomWishesTest, OfOneControllerPodsThatAskForAnotherAmountAreOfAnotherKind) {
  Change(fleet.waiting[2], [](PodRequest& request) { request.cpu = MilliCpu::Of(8000); });
  EXPECT_THAT(Texts(fleet), ElementsAre("team/run: 1 x leader 1 x worker-0 1 x worker-1"));
}

TEST_F(RoomWishesTest, WhoWasNotTriedYetIsNotKnownToLackRoom) {
  fleet.waiting[0].last_reason = Reason::kNone;
  EXPECT_THAT(Texts(fleet), IsEmpty());
}

// What a pod of a gang may be refused for, so that nodes are asked for the gang, and what not.
TEST_F(RoomWishesTest, WhatNodesDoNotMendIsNotAskedFor) {
  for (int value = 1; value < static_cast<int>(Reason::kCount); ++value) {
    const auto reason = static_cast<Reason>(value);
    fleet.waiting[1].last_reason = reason;
    EXPECT_EQ(Texts(fleet).size(), NodesWouldHelp(reason) ? 1U : 0U) << Describe(reason).code;
    EXPECT_FALSE(IsQuotaReason(reason) && NodesWouldHelp(reason)) << Describe(reason).code;
    EXPECT_TRUE(!MoreRoomWouldHelp(reason) || NodesWouldHelp(reason)) << Describe(reason).code;
  }
  for (const Reason reason :
       {Reason::kNoLeaf, Reason::kNamespaceQuota, Reason::kGangIncomplete, Reason::kCapacity,
        Reason::kSharingMode, Reason::kStyleOff, Reason::kYieldingTo, Reason::kHeldForGang,
        Reason::kPreemptionInProgress, Reason::kNoSuchSet, Reason::kClaimUnknown}) {
    EXPECT_FALSE(NodesWouldHelp(reason)) << Describe(reason).code;
  }
}

TEST_F(RoomWishesTest, OnePodThatLacksSomethingElseIsEnoughNotToAsk) {
  const std::function<void(AdviceWaiter&)> lacks[] = {
      [](AdviceWaiter& waiter) { waiter.quota_allows = false; },
      [](AdviceWaiter& waiter) { waiter.gated = true; },
      [this](AdviceWaiter& waiter) {
        Change(waiter, [](PodRequest& request) {
          request.refusal = Refusal{Reason::kBadAmount, "expected a number"};
        });
      },
      // Of parts of GPUs autoscalers know nothing.
      [this](AdviceWaiter& waiter) {
        Change(waiter, [](PodRequest& request) {
          request = Asking(FractionPod(request.name.name, 500), "run");
        });
      },
      [this](AdviceWaiter& waiter) {
        Change(waiter, [](PodRequest& request) { request.pool_needs.clear(); });
      }};
  for (const auto& lack : lacks) {
    const AdviceCase before = fleet;
    lack(fleet.waiting[2]);
    EXPECT_THAT(Texts(fleet), IsEmpty());
    fleet = before;
  }
  EXPECT_EQ(Texts(fleet).size(), 1U);
}

TEST_F(RoomWishesTest, OfVeryManyKindsNothingIsAsked) {
  for (std::size_t i = 0; i < kMostRoomKinds - 2; ++i) {
    Waits(Asking(WholePod("more-" + std::to_string(i), 1), "run"), "", Reason::kNone);
  }
  ASSERT_EQ(Texts(fleet).size(), 1U);
  Waits(Asking(WholePod("last", 1), "run"), "", Reason::kNone);
  EXPECT_THAT(Texts(fleet), IsEmpty());
}

}  // namespace THIS_FILE
}  // namespace tranche
