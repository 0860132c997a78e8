#include "topology/mig.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"

namespace tranche {
namespace THIS_FILE {

const MigBoard& BoardOf(std::string_view id) {
  for (const MigBoard& board : MigBoards()) {
    if (board.id == id) return board;
  }
  ADD_FAILURE() << "no board " << id;
  return MigBoards().front();
}

// What a profile is on any board: "1g", "1g.2x" (double memory), "1g+me".
std::string KindOf(const MigBoard& board, const MigProfile& profile) {
  const size_t attribute = profile.name.find_first_of("+-");
  std::string kind = std::to_string(profile.compute_slices) + "g";
  if (board.units == 8 && profile.compute_slices == 1 && profile.size == 2) kind += ".2x";
  if (attribute != std::string_view::npos) kind += profile.name.substr(attribute);
  return kind;
}

using Multiset = std::vector<int>;  // instances per profile of the board

struct Census {
  std::vector<std::vector<MigInstance>> legal;  // the empty set included
  std::vector<std::vector<MigInstance>> maximal;
  std::set<Multiset> multisets;
  std::set<Multiset> maximal_multisets;

  size_t Undominated() const {
    const auto within = [](const Multiset& small, const Multiset& large) {
      return std::equal(small.begin(), small.end(), large.begin(), std::less_equal<>());
    };
    return static_cast<size_t>(
        std::count_if(multisets.begin(), multisets.end(), [&](const Multiset& candidate) {
          return std::none_of(multisets.begin(), multisets.end(), [&](const Multiset& other) {
            return other != candidate && within(candidate, other);
          });
        }));
  }
};

Multiset MultisetOf(const MigBoard& board, const std::vector<MigInstance>& instances) {
  Multiset counts(board.profiles.size(), 0);
  for (const MigInstance& instance : instances) {
    ++counts[static_cast<size_t>(instance.profile - board.profiles.data())];
  }
  return counts;
}

void Extend(const MigBoard& board, const std::vector<MigInstance>& placements, size_t from,
            std::vector<MigInstance>& chosen, Census& census) {
  census.legal.push_back(chosen);
  census.multisets.insert(MultisetOf(board, chosen));
  const bool maximal = std::none_of(placements.begin(), placements.end(), [&](MigInstance more) {
    std::vector<MigInstance> larger = chosen;
    larger.push_back(more);
    return IsLegalMigSet(board, larger);
  });
  if (maximal) {
    census.maximal.push_back(chosen);
    census.maximal_multisets.insert(MultisetOf(board, chosen));
  }
  for (size_t i = from; i < placements.size(); ++i) {
    chosen.push_back(placements[i]);
    if (IsLegalMigSet(board, chosen)) Extend(board, placements, i + 1, chosen, census);
    chosen.pop_back();
  }
}

// Every legal set of instances of the given kinds (none given: of all profiles).
Census TakeCensus(const MigBoard& board, const std::set<std::string>& kinds) {
  std::vector<MigInstance> placements;
  for (const MigProfile& profile : board.profiles) {
    if (!kinds.empty() && !kinds.contains(KindOf(board, profile))) continue;
    for (const int start : profile.starts) placements.push_back({&profile, start});
  }
  Census census;
  std::vector<MigInstance> chosen;
  Extend(board, placements, 0, chosen, census);
  return census;
}

TEST(MigTest, PlacementsYieldThePublishedNumberOfLayouts) {
  const std::set<std::string> base = {"1g", "2g", "3g", "4g", "7g"};
  std::set<std::string> with_double = base;
  with_double.insert("1g.2x");
  std::set<std::string> with_media = base;
  with_media.insert("1g+me");
  const struct {
    int units;
    std::set<std::string> kinds;
    size_t legal, multisets, maximal, maximal_multisets, undominated;
  } kCases[] = {
      {8, base, 298, 38, 19, 14, 12},
      {8, with_double, 723, 78, 78, 38, 28},
      {8, with_media, 1089, 64, 67, 24, 20},
      {8, {}, 2319, 128, 239, 64, 44},
      {4, base, 26, 10, 5, 4, 4},
      {4, {}, 76, 20, 17, 8, 8},
      {12, base, 26, 10, 5, 4, 4},
      {12, {}, 717, 115, 302, 64, 64},
  };
  std::map<int, int> boards_of_grid;
  for (const MigBoard& board : MigBoards()) {
    ++boards_of_grid[board.units];
    for (const auto& c : kCases) {
      if (c.units != board.units) continue;
      SCOPED_TRACE(std::string(board.id) + ", kinds " + std::to_string(c.kinds.size()));
      const Census census = TakeCensus(board, c.kinds);
      EXPECT_EQ(census.legal.size(), c.legal);
      EXPECT_EQ(census.multisets.size(), c.multisets);
      EXPECT_EQ(census.maximal.size(), c.maximal);
      EXPECT_EQ(census.maximal_multisets.size(), c.maximal_multisets);
      EXPECT_EQ(census.Undominated(), c.undominated);
    }
  }
  EXPECT_EQ(boards_of_grid, (std::map<int, int>{{4, 1}, {8, 12}, {12, 1}}));
}

TEST(MigTest, EveryLegalSetStaysWithinTheBoardsComputeSlices) {
  for (const MigBoard& board : MigBoards()) {
    for (const std::vector<MigInstance>& set : TakeCensus(board, {}).legal) {
      int slices = 0;
      for (const MigInstance& instance : set) slices += instance.profile->compute_slices;
      ASSERT_LE(slices, board.compute_slices) << board.id;
    }
  }
}

TEST(MigTest, CatalogueRowsAreConsistent) {
  std::set<std::string_view> ids;
  for (const MigBoard& board : MigBoards()) {
    SCOPED_TRACE(board.id);
    EXPECT_TRUE(ids.insert(board.id).second);
    std::set<std::string_view> names;
    for (const MigProfile& profile : board.profiles) {
      SCOPED_TRACE(profile.name);
      EXPECT_TRUE(IsMigProfileName(profile.name));
      EXPECT_TRUE(names.insert(profile.name).second);
      EXPECT_EQ(profile.name.substr(0, 2), std::to_string(profile.compute_slices) + "g");
      for (const std::string_view alias : profile.aliases) {
        EXPECT_TRUE(IsMigProfileName(alias));
        EXPECT_TRUE(names.insert(alias).second);
      }
      EXPECT_TRUE(std::is_sorted(profile.starts.begin(), profile.starts.end()));
      ASSERT_FALSE(profile.starts.empty());
      EXPECT_LE(profile.starts.back() + profile.size, board.units);
      if (profile.memory) {
        // Usable memory lies below the instance's share of the board, and not far below.
        const int64_t share = board.memory_gb * 1024 * profile.size / board.units;
        EXPECT_LE(profile.memory->count(), share);
        EXPECT_GE(profile.memory->count(), share * 85 / 100);
      }
    }
  }
}

// "3g.40gb@0 1g.10gb@4" on the board.
std::vector<MigInstance> Instances(const MigBoard& board, std::string_view text) {
  std::vector<MigInstance> instances;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view one = text.substr(0, end);
    const size_t at = one.find('@');
    instances.push_back(
        {FindMigProfile(board, one.substr(0, at)), std::stoi(std::string(one.substr(at + 1)))});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return instances;
}

TEST(MigTest, LegalityFollowsPlacementsAndEngines) {
  const struct {
    std::string_view board;
    std::string_view set;
    bool legal;
  } kCases[] = {
      {"h100-80", "", true},
      {"h100-80", "4g.40gb@0 3g.40gb@4", true},
      {"h100-80", "3g.40gb@4 3g.40gb@0", true},
      {"h100-80", "3g.40gb@0 4g.40gb@0", false},
      {"h100-80", "3g.40gb@2", false},
      {"h100-80", "4g.40gb@4", false},
      {"h100-80", "2g.20gb@6", false},
      {"h100-80", "1g.20gb@6", true},
      {"h100-80", "1g.10gb@7", false},
      {"h100-80", "1g.10gb+me@0 1g.10gb+me@1", false},
      {"h100-80", "1g.10gb+me@0 1g.10gb@1 2g.20gb@2 3g.40gb@4", true},
      {"h100-80", "7g.80gb@0 1g.10gb@0", false},
      {"a30-24", "1g.6gb+me@0 2g.12gb+me@2", false},
      {"a30-24", "1g.6gb+me@0 2g.12gb@2", true},
      {"rtx-pro-6000-96", "1g.24gb+me.all@0 1g.24gb-me@3 2g.48gb-me@6", true},
      {"rtx-pro-6000-96", "1g.24gb+me.all@0 1g.24gb@3", false},
      {"rtx-pro-6000-96", "1g.24gb+me@0 1g.24gb+gfx@3 2g.48gb+gfx@6", true},
      {"rtx-pro-6000-96", "1g.24gb+me@0 1g.24gb+me@3", false},
      {"rtx-pro-6000-96", "2g.48gb+me.all@0 2g.48gb@6", false},
  };
  for (const auto& c : kCases) {
    const MigBoard& board = BoardOf(c.board);
    EXPECT_EQ(IsLegalMigSet(board, Instances(board, c.set)), c.legal) << c.board << " " << c.set;
  }
}

TEST(MigTest, ProfilesOfAnotherBoardAreNeverLegal) {
  const MigInstance foreign = {FindMigProfile(BoardOf("a100-40"), "1g.5gb"), 0};
  EXPECT_FALSE(IsLegalMigSet(BoardOf("h100-80"), std::vector<MigInstance>{foreign}));
  EXPECT_FALSE(IsLegalMigSet(BoardOf("h100-80"), std::vector<MigInstance>{{nullptr, 0}}));
}

TEST(MigTest, FindsTheBoardOfAProductLabel) {
  const struct {
    std::string_view product;
    int64_t mib;
    std::string_view board;  // empty: none
  } kCases[] = {
      {"NVIDIA-A100-SXM4-40GB", 40960, "a100-40"},
      {"NVIDIA-A100-SXM4-80GB", 81920, "a100-80"},
      {"A100-SXM4-80GB", 0, "a100-80"},
      {"nvidia-a100-sxm4-80gb", 0, "a100-80"},
      {"NVIDIA-A100-SXM-80GB", 81251, "a100-80"},
      {"NVIDIA-A100-SXM-64GB", 65536, ""},
      {"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", 4864, "a100-40"},
      {"NVIDIA-A100-SXM4-40GB-MIG-INVALID", 0, "a100-40"},
      {"NVIDIA-H100-80GB-HBM3-SHARED", 81559, "h100-80"},
      {"NVIDIA-H100-80GB-HBM3-MIG-1g.10gb-SHARED", 9984, "h100-80"},
      {"NVIDIA-H100-NVL", 95830, "h100-94"},
      {"NVIDIA-H100", 65247, "h100-64"},
      {"H800", 0, "h100-80"},
      {"NVIDIA-H20", 97871, "h100-96"},
      {"NVIDIA-H20", 143771, "h200-141"},
      {"NVIDIA-H20", 0, "h100-96"},
      {"NVIDIA-H20-MIG-1g.18gb", 16384, "h200-141"},
      {"NVIDIA-H20-MIG-1g.12gb", 11008, "h100-96"},
      {"NVIDIA-H200", 143771, "h200-141"},
      {"NVIDIA-GH200-480GB", 97871, "h100-96"},
      {"NVIDIA-B200", 183359, "b200-180"},
      {"NVIDIA-GB200", 189471, "gb200-186"},
      {"NVIDIA-B300-SXM6-AC", 275040, "b300-269"},
      {"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 97887, "rtx-pro-6000-96"},
      {"NVIDIA-RTX-PRO-5000-Blackwell", 48935, ""},
      {"NVIDIA-A10", 23028, ""},
      {"Tesla-T4", 15360, ""},
      {"", 0, ""},
  };
  for (const auto& c : kCases) {
    const MigBoard* board = FindMigBoard(c.product, Mebibytes::Of(c.mib));
    EXPECT_EQ(board == nullptr ? "" : board->id, c.board) << c.product << " " << c.mib;
  }
}

TEST(MigTest, FindsAProfileByNameAndByTheSpellingOfOtherDrivers) {
  EXPECT_EQ(FindMigProfile(BoardOf("h200-141"), "1g.35gb")->size, 2);
  EXPECT_EQ(FindMigProfile(BoardOf("gb300-278"), "1g.35gb")->size, 1);
  EXPECT_EQ(FindMigProfile(BoardOf("a100-80"), "3g.39gb")->name, "3g.40gb");
  EXPECT_EQ(FindMigProfile(BoardOf("gb200-186"), "1g.24gb+me")->name, "1g.23gb+me");
  EXPECT_EQ(FindMigProfile(BoardOf("a100-40"), "1g.6gb"), nullptr);
  EXPECT_EQ(FindMigProfile(BoardOf("a100-40"), ""), nullptr);
  EXPECT_EQ(FindMigProfile(BoardOf("h200-141"), "7g.141gb")->memory, Mebibytes::Of(143360));
  EXPECT_EQ(FindMigProfile(BoardOf("h200-141"), "1g.18gb")->memory, Mebibytes::Of(16384));
}

TEST(MigTest, ResourceTailsRoundTrip) {
  const struct {
    std::string_view tail;
    std::string_view profile;
    bool shared;
  } kCases[] = {
      {"1g.5gb", "1g.5gb", false},
      {"7g.141gb", "7g.141gb", false},
      {"1g.5gb.me", "1g.5gb+me", false},
      {"1g.24gb.gfx", "1g.24gb+gfx", false},
      {"1g.24gb.me.all", "1g.24gb+me.all", false},
      {"1g.24gb-me", "1g.24gb-me", false},
      {"1g.5gb.shared", "1g.5gb", true},
      {"1g.5gb.me.shared", "1g.5gb+me", true},
      {"1g.24gb.me.all.shared", "1g.24gb+me.all", true},
      {"1g.24gb-me.shared", "1g.24gb-me", true},
  };
  for (const auto& c : kCases) {
    const std::optional<MigResourceName> name = ParseMigResourceTail(c.tail);
    ASSERT_TRUE(name.has_value()) << c.tail;
    EXPECT_EQ(name->profile, c.profile);
    EXPECT_EQ(name->shared, c.shared) << c.tail;
    EXPECT_EQ(FormatMigResource(*name), "nvidia.com/mig-" + std::string(c.tail));
  }
  for (const MigBoard& board : MigBoards()) {
    for (const MigProfile& profile : board.profiles) {
      const std::string text = FormatMigResource({std::string(profile.name), true});
      const std::optional<MigResourceName> back = ParseMigResourceTail(
          std::string_view(text).substr(std::string("nvidia.com/mig-").size()));
      ASSERT_TRUE(back.has_value()) << text;
      EXPECT_EQ(back->profile, profile.name);
      EXPECT_TRUE(back->shared);
    }
  }
}

TEST(MigTest, RefusesTailsThatAreNoProfile) {
  for (const std::string_view tail : {"",
                                      ".shared",
                                      "shared",
                                      "1g",
                                      "1g.",
                                      "1g.gb",
                                      "1g.5",
                                      "0g.5gb",
                                      "8g.80gb",
                                      "10g.5gb",
                                      "1G.5gb",
                                      "1g.5GB",
                                      "1g.05gb",
                                      "1g.0gb",
                                      "1g.12345gb",
                                      "1g.5gbx",
                                      "1g.5gb.",
                                      "1g.5gb.me.",
                                      "1g.5gb.mee",
                                      "1g.5gb+me",
                                      "1g.5gb.-me",
                                      "1g.5gb-gfx",
                                      "1g.5gb.all",
                                      "1g.5gb.me.gfx",
                                      "1g.5gb.shared.me",
                                      "1g.5gb.shared.shared",
                                      "1c.2g.10gb",
                                      " 1g.5gb",
                                      "1g.5gb ",
                                      "1g.5gb/x",
                                      "-1g.5gb",
                                      "1g.-5gb"}) {
    EXPECT_FALSE(ParseMigResourceTail(tail).has_value()) << tail;
  }
}

// Counts per profile of the board from "3g.40gb" -> 2 pairs.
std::vector<int> Counts(const MigBoard& board, const std::map<std::string_view, int>& wanted) {
  std::vector<int> counts(board.profiles.size(), 0);
  for (const auto& [name, count] : wanted) {
    counts[static_cast<size_t>(FindMigProfile(board, name) - board.profiles.data())] = count;
  }
  return counts;
}

void ExpectLayOut(const MigBoard& board, const std::vector<int>& counts, int gpus) {
  const auto layout = LayOutMig(board, counts, gpus);
  ASSERT_TRUE(layout.has_value());
  ASSERT_EQ(layout->size(), static_cast<size_t>(gpus));
  std::vector<int> placed(counts.size(), 0);
  for (const std::vector<MigInstance>& gpu : *layout) {
    EXPECT_TRUE(IsLegalMigSet(board, gpu));
    EXPECT_TRUE(std::is_sorted(gpu.begin(), gpu.end(), [](const auto& left, const auto& right) {
      return left.start < right.start;
    }));
    const Multiset here = MultisetOf(board, gpu);
    for (size_t i = 0; i < here.size(); ++i) placed[i] += here[i];
  }
  EXPECT_EQ(placed, counts);
}

TEST(MigTest, LaysOutEveryAchievableMultisetOfOneGpuAndOfEightAlike) {
  for (const std::string_view id : {"h100-80", "a30-24", "rtx-pro-6000-96"}) {
    const MigBoard& board = BoardOf(id);
    for (const Multiset& counts : TakeCensus(board, {}).multisets) {
      SCOPED_TRACE(id);
      ExpectLayOut(board, counts, 1);
      Multiset eightfold = counts;
      for (int& count : eightfold) count *= 8;
      ExpectLayOut(board, eightfold, 8);
    }
  }
}

TEST(MigTest, LaysOutNodesWhoseGpusAreCutDifferently) {
  const MigBoard& board = BoardOf("h100-80");
  const std::map<std::string_view, int> kNodes[] = {
      {},
      {{"7g.80gb", 4}, {"1g.10gb", 28}},
      {{"3g.40gb", 4}, {"1g.10gb", 42}},
      {{"4g.40gb", 2}, {"3g.40gb", 2}, {"7g.80gb", 3}, {"2g.20gb", 9}},
      {{"4g.40gb", 8}, {"1g.10gb+me", 8}, {"2g.20gb", 8}},
      {{"1g.20gb", 16}, {"1g.10gb", 20}},
  };
  for (const auto& node : kNodes) ExpectLayOut(board, Counts(board, node), 8);
}

TEST(MigTest, AnImpossibleLayoutIsAnsweredWithNone) {
  const MigBoard& board = BoardOf("h100-80");
  const struct {
    std::map<std::string_view, int> counts;
    int gpus;
  } kCases[] = {
      {{{"1g.10gb", 8}}, 1},
      {{{"2g.20gb", 4}}, 1},
      {{{"4g.40gb", 2}}, 1},
      {{{"3g.40gb", 2}, {"1g.10gb", 1}}, 1},
      {{{"1g.10gb+me", 9}}, 8},
      {{{"7g.80gb", 8}, {"1g.10gb", 1}}, 8},
      {{{"3g.40gb", 16}, {"1g.10gb", 1}}, 8},
      {{{"1g.10gb", 1}}, 0},
      {{{"1g.10gb", 1}}, -1},
      {{{"1g.10gb", -1}}, 8},
      {{{"1g.10gb", 2'000'000'000}}, 8},
  };
  for (const auto& c : kCases) {
    EXPECT_FALSE(LayOutMig(board, Counts(board, c.counts), c.gpus).has_value())
        << c.counts.begin()->first;
  }
}

TEST(MigTest, EnginesCanForbidALayoutThatUnitsAndSlicesWouldAllow) {
  const MigBoard& board = BoardOf("rtx-pro-6000-96");
  const std::map<std::string_view, int> fits = {{"1g.24gb+me.all", 15}, {"1g.24gb", 4}};
  ExpectLayOut(board, Counts(board, fits), 16);
  for (const std::string_view extra : {"1g.24gb", "1g.24gb+gfx", "1g.24gb+me"}) {
    const std::map<std::string_view, int> refused = {
        {"1g.24gb+me.all", 16}, {extra, 1}, {"1g.24gb-me", 40}};
    EXPECT_FALSE(LayOutMig(board, Counts(board, refused), 16).has_value()) << extra;
  }
}

TEST(MigTest, AThreeSliceInstanceLeavesTheFourSliceOneItsOnlyPlace) {
  const MigBoard& board = BoardOf("h100-80");
  const auto layout = LayOutMig(board, Counts(board, {{"3g.40gb", 1}}), 1);
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->front().front().start, 4);
}

}  // namespace THIS_FILE
}  // namespace tranche
