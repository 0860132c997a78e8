#include "scheduler/scoring/mig_room.h"

#include <algorithm>
#include <random>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

namespace tranche {
namespace THIS_FILE {

const MigBoard& Board() { return *FindMigBoard("NVIDIA-H100-80GB-HBM3", Mebibytes::Zero()); }
const MigSpace& Space() { return MigSpaceOf(Board()); }

int IndexOf(std::string_view name) {
  return static_cast<int>(FindMigProfile(Board(), name) - Board().profiles.data());
}

// "3g.40gb@0 1g.10gb@4"
LayoutId Layout(std::string_view text) {
  LayoutId layout = kEmptyLayout;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view one = text.substr(0, end);
    const std::size_t at = one.find('@');
    const auto after = Space().With(layout, IndexOf(one.substr(0, at)), one[at + 1] - '0');
    EXPECT_TRUE(after.has_value()) << text;
    if (after) layout = *after;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return layout;
}

// The square of the free units: what is emptied is worth more than what is half emptied.
LayoutValues Squares() {
  LayoutValues values;
  for (std::size_t i = 0; i < Space().size(); ++i) {
    const int free = 8 - Space().used_units(static_cast<LayoutId>(i));
    values.push_back(free * free);
  }
  return values;
}

bool Any(std::size_t, const MigInstance&) { return true; }

TEST(MigRoomTest, TheHighestGainWinsThenTheLowestGpuThenTheHighestStart) {
  const struct {
    std::vector<std::string_view> layouts;
    std::string_view profile;
    std::size_t gpu;
    int start;
  } kCases[] = {
      {{"", ""}, "1g.10gb", 0, 6},
      {{"", "4g.40gb@0"}, "1g.10gb", 1, 6},
      {{"", "4g.40gb@0", "4g.40gb@0"}, "3g.40gb", 1, 4},
      {{"4g.40gb@0", "4g.40gb@0 2g.20gb@4"}, "1g.10gb", 1, 6},
  };
  for (const LayoutValues& values : {Squares(), LayoutValues()}) {
    for (const auto& c : kCases) {
      std::vector<LayoutId> layouts;
      for (const std::string_view layout : c.layouts) layouts.push_back(Layout(layout));
      const auto place = BestPlace(Space(), values, layouts, IndexOf(c.profile));
      ASSERT_TRUE(place.has_value());
      EXPECT_EQ(place->gpu, c.gpu) << c.profile;
      EXPECT_EQ(place->start, c.start) << c.profile;
      EXPECT_TRUE(place->moves.empty());
    }
  }
  const std::vector<LayoutId> full = {Layout("7g.80gb@0"), Layout("3g.40gb@0")};
  EXPECT_FALSE(BestPlace(Space(), Squares(), full, IndexOf("4g.40gb")).has_value());
  EXPECT_FALSE(BestPlace(Space(), Squares(), {}, IndexOf("4g.40gb")).has_value());
}

TEST(MigRoomTest, MovesOneSmallInstanceForAThreeSliceRequest) {
  const std::vector<LayoutId> layouts = {Layout("4g.40gb@0 1g.10gb@4"),
                                         Layout("4g.40gb@0 2g.20gb@4")};
  const auto room = MakeRoom(Space(), Squares(), layouts, IndexOf("3g.40gb"), 2, Any);
  ASSERT_TRUE(room.has_value());
  EXPECT_EQ(room->gpu, 0U);
  EXPECT_EQ(room->start, 4);
  ASSERT_EQ(room->moves.size(), 1U);
  EXPECT_EQ(room->moves[0].from_gpu, 0U);
  EXPECT_EQ(room->moves[0].from.profile->name, "1g.10gb");
  EXPECT_EQ(room->moves[0].from.start, 4);
  EXPECT_EQ(room->moves[0].to_gpu, 1U);
  EXPECT_EQ(room->moves[0].to_start, 6);
}

TEST(MigRoomTest, KeepsWithinTheMovesTheRuleAndTheCallerAllow) {
  const std::vector<LayoutId> layouts = {Layout("2g.20gb@0 2g.20gb@4"), Layout("3g.40gb@4"),
                                         Layout("1g.10gb@0 2g.20gb@2 2g.20gb@4")};
  const int seven = IndexOf("7g.80gb");
  ASSERT_EQ(MakeRoom(Space(), Squares(), layouts, seven, 2, Any)->moves.size(), 2U);
  EXPECT_FALSE(MakeRoom(Space(), Squares(), layouts, seven, 1, Any).has_value());
  EXPECT_FALSE(MakeRoom(Space(), Squares(), layouts, seven, 0, Any).has_value());
  EXPECT_FALSE(
      MakeRoom(Space(), Squares(), layouts, seven, 2, [](std::size_t gpu, const MigInstance&) {
        return gpu != 0;
      }).has_value());

  // Three occupants each: too many at four eighths a move.
  const std::vector<LayoutId> small = {Layout("1g.10gb@0 1g.10gb@2 1g.10gb@4"),
                                       Layout("4g.40gb@0")};
  EXPECT_FALSE(MakeRoom(Space(), Squares(), small, seven, 9, Any, 4).has_value());
  EXPECT_EQ(MakeRoom(Space(), Squares(), small, seven, 9, Any, 2)->moves.size(), 3U);
}

TEST(MigRoomTest, WhatFitsMovesNothing) {
  const std::vector<LayoutId> layouts = {Layout("4g.40gb@0 1g.10gb@4"), Layout("")};
  const auto room = MakeRoom(Space(), Squares(), layouts, IndexOf("3g.40gb"), 2, Any);
  ASSERT_TRUE(room.has_value());
  EXPECT_EQ(room->gpu, 1U);
  EXPECT_TRUE(room->moves.empty());
}

// All instances out, the request in, the moved ones in: legal, and none moved that may not.
TEST(MigRoomTest, EveryPlanOnRandomFleetsIsLegalAndNeverHasMoreMovesThanAnother) {
  std::mt19937_64 random(5);
  const LayoutValues values = Squares();
  int made = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<LayoutId> layouts;
    for (int gpu = 0; gpu < 6; ++gpu) {
      layouts.push_back(static_cast<LayoutId>(random() % Space().size()));
    }
    const auto fixed = random() % 6;
    const auto movable = [&](std::size_t gpu, const MigInstance&) { return gpu != fixed; };
    const auto profile = static_cast<int>(random() % Board().profiles.size());
    const auto room = MakeRoom(Space(), values, layouts, profile, 4, movable, 2);
    if (!room) continue;
    made += !room->moves.empty();
    std::vector<LayoutId> after = layouts;
    for (const MigMove& move : room->moves) {
      ASSERT_NE(move.from_gpu, fixed);
      after[move.from_gpu] = Space().Without(
          after[move.from_gpu], static_cast<int>(move.from.profile - Board().profiles.data()),
          move.from.start);
    }
    const auto taken = Space().With(after[room->gpu], profile, room->start);
    ASSERT_TRUE(taken.has_value());
    after[room->gpu] = *taken;
    for (const MigMove& move : room->moves) {
      const auto put = Space().With(after[move.to_gpu],
                                    static_cast<int>(move.from.profile - Board().profiles.data()),
                                    move.to_start);
      ASSERT_TRUE(put.has_value());
      after[move.to_gpu] = *put;
    }
    if (room->moves.empty()) continue;
    const auto fewer = MakeRoom(Space(), values, layouts, profile,
                                static_cast<int>(room->moves.size()) - 1, movable, 2);
    ASSERT_FALSE(fewer.has_value());
  }
  EXPECT_GT(made, 40);
}

}  // namespace THIS_FILE
}  // namespace tranche
