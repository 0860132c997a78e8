// A look at one node whose cards pods share; no engine.
#include "scheduler/engine/placeholders/placeholders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "test/builders/cluster.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using testing::IsEmpty;
using testing::SizeIs;

class PlaceholdersTest : public testing::Test {
 protected:
  PlaceholdersTest() : placeholders_({}, 7) {
    node_.AllowPlaceholders(true);
    node_.SetFacts(test::StockNode("n", 2), 0, &machines_);
    placeholders_.books().Complete(At(0));
  }

  // The pod was given half of the node's first card and waits for its placeholder.
  PodUid Follow(const std::string& name) {
    PodRequest request = test::FractionPod(name, 500, 1);
    request.follows_placeholder = true;
    Device device;
    device.card = 0;
    device.milli = MilliGpu::Of(500);
    Holding holding;
    holding.uid = request.uid;
    holding.kind = HoldingKind::kReservation;
    holding.allocation.emplace();
    holding.allocation->containers.push_back({"main", {device}});
    holding.request = std::make_shared<const PodRequest>(request);
    node_.Hold(std::move(holding));
    placeholders_.Wait(request.uid);
    return request.uid;
  }

  MachineTables machines_;
  NodeState node_;
  Placeholders placeholders_;
  const NodeName name_{"n"};
};

TEST_F(PlaceholdersTest, NodeWithoutPodsThatFollowOneIsNoConcern) {
  EXPECT_FALSE(placeholders_.Concerns(name_, node_));
  Follow("one");
  EXPECT_TRUE(placeholders_.Concerns(name_, node_));
}

TEST_F(PlaceholdersTest, StampsGrowEvenWhenTheClockStands) {
  const int64_t first = placeholders_.NextStamp(At(5));
  EXPECT_GT(placeholders_.NextStamp(At(5)), first);
  EXPECT_GT(placeholders_.NextStamp(At(4)), first);
}

TEST_F(PlaceholdersTest, WaitEndsOnce) {
  const PodUid uid = Follow("one");
  EXPECT_EQ(placeholders_.waiting(), 1u);
  EXPECT_TRUE(placeholders_.EndWait(uid));
  EXPECT_FALSE(placeholders_.EndWait(uid));
}

TEST_F(PlaceholdersTest, CardThatAPodFollowsIsOrderedOnce) {
  Follow("one");
  const PlaceholderTending first = placeholders_.Tend(name_, node_, At(1));
  ASSERT_THAT(first.orders, SizeIs(1));
  EXPECT_EQ(first.orders[0].node, name_);
  EXPECT_THAT(placeholders_.Tend(name_, node_, At(2)).orders, IsEmpty());
}

TEST_F(PlaceholdersTest, WaitOnANodeThatIsGoneEndsWithNothing) {
  const PodUid uid = Follow("one");
  node_.SetFacts(std::nullopt, 0);
  const PlaceholderTending tending = placeholders_.Tend(name_, node_, At(1));
  ASSERT_THAT(tending.ended, SizeIs(1));
  EXPECT_EQ(tending.ended[0].first, uid);
  EXPECT_FALSE(tending.ended[0].second.has_value());
  EXPECT_EQ(placeholders_.waiting(), 0u);
}

}  // namespace THIS_FILE
}  // namespace tranche
