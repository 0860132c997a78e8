#include "topology/mig_space.h"

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

namespace tranche {
namespace THIS_FILE {

const MigBoard& Board(std::string_view id) {
  for (const MigBoard& board : MigBoards()) {
    if (board.id == id) return board;
  }
  ADD_FAILURE() << "no board " << id;
  return MigBoards().front();
}

std::vector<int> Indices(const MigBoard& board, const std::vector<std::string_view>& names) {
  std::vector<int> indices;
  for (const std::string_view name : names) {
    indices.push_back(static_cast<int>(FindMigProfile(board, name) - board.profiles.data()));
  }
  return indices;
}

int IndexOf(const MigBoard& board, const MigInstance& instance) {
  return static_cast<int>(instance.profile - board.profiles.data());
}

using Multiset = std::vector<int>;  // instances per profile of the board

Multiset MultisetOf(const MigSpace& space, LayoutId layout) {
  Multiset counts(space.board().profiles.size(), 0);
  for (const MigInstance& instance : space.instances(layout)) {
    ++counts[static_cast<std::size_t>(IndexOf(space.board(), instance))];
  }
  return counts;
}

std::size_t Undominated(const std::set<Multiset>& multisets) {
  return static_cast<std::size_t>(
      std::count_if(multisets.begin(), multisets.end(), [&](const Multiset& candidate) {
        return std::none_of(multisets.begin(), multisets.end(), [&](const Multiset& other) {
          return other != candidate &&
                 std::equal(candidate.begin(), candidate.end(), other.begin(), std::less_equal<>());
        });
      }));
}

LayoutId Id(std::size_t index) { return static_cast<LayoutId>(index); }

TEST(MigSpaceTest, HasThePublishedNumberOfLayouts) {
  const struct {
    std::string_view board;
    std::vector<std::string_view> profiles;  // none: all
    std::size_t legal, multisets, maximal, maximal_multisets, undominated;
  } kCases[] = {
      {"h100-80", {"1g.10gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}, 298, 38, 19, 14, 12},
      {"h100-80",
       {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"},
       723,
       78,
       78,
       38,
       28},
      {"h100-80",
       {"1g.10gb", "1g.10gb+me", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"},
       1089,
       64,
       67,
       24,
       20},
      {"h100-80", {}, 2319, 128, 239, 64, 44},
      {"b200-180", {}, 2319, 128, 239, 64, 44},
      {"a30-24", {"1g.6gb", "2g.12gb", "4g.24gb"}, 26, 10, 5, 4, 4},
      {"a30-24", {}, 76, 20, 17, 8, 8},
      {"rtx-pro-6000-96", {"1g.24gb", "2g.48gb", "4g.96gb"}, 26, 10, 5, 4, 4},
      {"rtx-pro-6000-96", {}, 717, 115, 302, 64, 64},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(std::string(c.board) + ", profiles " + std::to_string(c.profiles.size()));
    const MigSpace space(Board(c.board), Indices(Board(c.board), c.profiles));
    std::set<Multiset> multisets;
    std::set<Multiset> maximal_multisets;
    std::size_t maximal = 0;
    for (std::size_t i = 0; i < space.size(); ++i) {
      multisets.insert(MultisetOf(space, Id(i)));
      if (!space.steps(Id(i)).empty()) continue;
      ++maximal;
      maximal_multisets.insert(MultisetOf(space, Id(i)));
    }
    EXPECT_EQ(space.size(), c.legal);
    EXPECT_EQ(multisets.size(), c.multisets);
    EXPECT_EQ(maximal, c.maximal);
    EXPECT_EQ(maximal_multisets.size(), c.maximal_multisets);
    EXPECT_EQ(Undominated(multisets), c.undominated);
  }
}

// Every placement the board knows, against every layout: what a step says is what legality says.
TEST(MigSpaceTest, StepsAreExactlyTheLegalAdditions) {
  for (const MigBoard& board : MigBoards()) {
    SCOPED_TRACE(board.id);
    const MigSpace& space = MigSpaceOf(board);
    for (std::size_t i = 0; i < space.size(); ++i) {
      const LayoutId layout = Id(i);
      std::vector<MigInstance> set(space.instances(layout).begin(), space.instances(layout).end());
      std::vector<MigSpace::Step> steps;
      for (std::size_t profile = 0; profile < board.profiles.size(); ++profile) {
        const auto index = static_cast<int>(profile);
        const auto of_profile = space.steps(layout, index);
        std::size_t next = 0;
        for (const int start : board.profiles[profile].starts) {
          set.push_back({&board.profiles[profile], start});
          const std::optional<LayoutId> after = space.With(layout, index, start);
          ASSERT_EQ(after.has_value(), IsLegalMigSet(board, set));
          if (after) {
            ASSERT_EQ(space.Find(set), after);
            ASSERT_EQ(space.Without(*after, index, start), layout);
            ASSERT_EQ(space.used_units(*after),
                      space.used_units(layout) + board.profiles[profile].size);
            steps.push_back({static_cast<uint8_t>(profile), static_cast<uint8_t>(start), *after});
            ASSERT_LT(next, of_profile.size());
            ASSERT_EQ(of_profile[next++], steps.back());
          }
          set.pop_back();
        }
        ASSERT_EQ(next, of_profile.size());
      }
      const auto all = space.steps(layout);
      ASSERT_EQ(std::vector<MigSpace::Step>(all.begin(), all.end()), steps);
    }
  }
}

TEST(MigSpaceTest, EveryLayoutIsReachedFromTheEmptyOneAndToldInOrderOfStart) {
  for (const std::string_view id : {"h100-80", "a30-24", "rtx-pro-6000-96"}) {
    const MigSpace& space = MigSpaceOf(Board(id));
    std::vector<bool> reached(space.size());
    std::vector<LayoutId> queue = {kEmptyLayout};
    reached[kEmptyLayout] = true;
    for (std::size_t next = 0; next < queue.size(); ++next) {
      for (const MigSpace::Step& step : space.steps(queue[next])) {
        if (reached[step.after]) continue;
        reached[step.after] = true;
        queue.push_back(step.after);
      }
    }
    EXPECT_EQ(queue.size(), space.size()) << id;
    EXPECT_TRUE(space.instances(kEmptyLayout).empty());
    for (std::size_t i = 0; i < space.size(); ++i) {
      const auto instances = space.instances(Id(i));
      EXPECT_TRUE(std::is_sorted(
          instances.begin(), instances.end(),
          [](const auto& left, const auto& right) { return left.start < right.start; }));
    }
  }
}

TEST(MigSpaceTest, AgreesWithLegalityOnRandomSetsOfEveryBoard) {
  std::mt19937_64 random(1);
  for (const MigBoard& board : MigBoards()) {
    SCOPED_TRACE(board.id);
    const MigSpace& space = MigSpaceOf(board);
    int legal = 0;
    for (int round = 0; round < 2000; ++round) {
      std::vector<MigInstance> set;
      const std::size_t size = random() % 5;
      while (set.size() < size) {
        const MigProfile& profile = board.profiles[random() % board.profiles.size()];
        // Now and then a start no placement has.
        const int start = random() % 16 == 0 ? static_cast<int>(random() % 16)
                                             : profile.starts[random() % profile.starts.size()];
        set.push_back({&profile, start});
      }
      const bool expected = IsLegalMigSet(board, set);
      legal += expected;
      const std::optional<LayoutId> found = space.Find(set);
      ASSERT_EQ(found.has_value(), expected);
      const std::size_t instances = found ? space.instances(*found).size() : set.size();
      ASSERT_EQ(instances, set.size());
    }
    EXPECT_GT(legal, 400);
  }
}

TEST(MigSpaceTest, KnowsOnlyTheProfilesItWasMadeOf) {
  const MigBoard& board = Board("h100-80");
  const MigSpace space(board, Indices(board, {"3g.40gb", "3g.40gb"}));
  EXPECT_EQ(space.size(), 4U);
  const int three = Indices(board, {"3g.40gb"}).front();
  const int seven = Indices(board, {"7g.80gb"}).front();
  EXPECT_FALSE(space.With(kEmptyLayout, seven, 0).has_value());
  EXPECT_TRUE(space.steps(kEmptyLayout, seven).empty());
  EXPECT_EQ(space.steps(kEmptyLayout, three).size(), 2U);
  EXPECT_FALSE(space.With(kEmptyLayout, three, 2).has_value());
  const std::vector<MigInstance> foreign = {{FindMigProfile(Board("a100-80"), "3g.40gb"), 0}};
  EXPECT_FALSE(space.Find(foreign).has_value());
  const std::vector<MigInstance> left_out = {{FindMigProfile(board, "7g.80gb"), 0}};
  EXPECT_FALSE(space.Find(left_out).has_value());
}

}  // namespace THIS_FILE
}  // namespace tranche
