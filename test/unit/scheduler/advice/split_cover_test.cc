// The fewest GPUs for so many instances: against what is known of the grids, and against trying
// every way to add one GPU after another.
#include "scheduler/advice/split_cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "topology/mig_space.h"

namespace tranche {
namespace THIS_FILE {

const MigBoard& H100() {
  static const MigBoard& board = *FindMigBoard("NVIDIA-H100-80GB-HBM3", Mebibytes::Of(81559));
  return board;
}

std::vector<int64_t> Counts(const std::vector<std::pair<std::string, int64_t>>& wanted) {
  std::vector<int64_t> counts(H100().profiles.size(), 0);
  for (const auto& [name, count] : wanted) {
    counts[static_cast<std::size_t>(FindMigProfile(H100(), name) - H100().profiles.data())] = count;
  }
  return counts;
}

void ExpectCovered(const std::vector<int64_t>& counts, const InstanceCover& cover) {
  std::vector<int64_t> held(counts.size(), 0);
  int64_t gpus = 0;
  for (const auto& [cut, times] : cover.cuts) {
    EXPECT_TRUE(LayOutMig(H100(), cut, 1).has_value());
    for (std::size_t i = 0; i < cut.size(); ++i) held[i] += cut[i] * times;
    gpus += times;
  }
  EXPECT_EQ(gpus, cover.gpus);
  EXPECT_LE(cover.at_least, cover.gpus);
  for (std::size_t i = 0; i < counts.size(); ++i) EXPECT_GE(held[i], counts[i]);
}

TEST(CoverFinder, FindsTheFewestGpus) {
  struct Row {
    std::vector<std::pair<std::string, int64_t>> wanted;
    int64_t gpus;
  };
  const Row rows[] = {
      {{}, 0},
      {{{"1g.10gb", 1}}, 1},
      {{{"1g.10gb", 7}}, 1},
      {{{"1g.10gb", 20}}, 3},
      {{{"1g.10gb", 70'000}}, 10'000},
      {{{"3g.40gb", 2}, {"1g.10gb", 8}}, 2},
      {{{"3g.40gb", 1}, {"1g.10gb", 5}}, 2},
      {{{"2g.20gb", 4}}, 2},
      {{{"7g.80gb", 3}, {"1g.10gb", 1}}, 4},
      {{{"4g.40gb", 2}, {"3g.40gb", 2}}, 2},
      {{{"1g.10gb+me", 2}}, 2},
      {{{"3g.40gb", 1'000}, {"1g.10gb", 4'000}}, 1'000},
      {{{"4g.40gb", 500}, {"2g.20gb", 500}, {"1g.10gb", 500}}, 500},
  };
  CoverFinder finder(H100());
  for (const Row& row : rows) {
    const std::vector<int64_t> counts = Counts(row.wanted);
    const InstanceCover cover = finder.Find(counts);
    EXPECT_EQ(cover.gpus, row.gpus);
    ExpectCovered(counts, cover);
  }
}

// What `gpus` GPUs can hold, GPU by GPU, without the sets that another one contains: the oracle.
TEST(CoverFinder, IsExactForSmallCounts) {
  const std::vector<std::string> names = {"1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb"};
  const MigSpace& space = MigSpaceOf(H100());
  std::set<std::vector<int64_t>> cuts;
  for (std::size_t layout = 0; layout < space.size(); ++layout) {
    std::vector<int64_t> cut(names.size(), 0);
    for (const MigInstance& instance : space.instances(static_cast<LayoutId>(layout))) {
      const auto at = std::ranges::find(names, instance.profile->name);
      if (at != names.end()) ++cut[static_cast<std::size_t>(at - names.begin())];
    }
    cuts.insert(cut);
  }
  constexpr int64_t kMost = 3;  // of each profile
  const std::vector<int64_t> all(names.size(), kMost);
  std::set<std::vector<int64_t>> reached = {all};  // what is left after so many GPUs
  std::map<std::vector<int64_t>, int64_t> fewest;  // of the part that was held
  for (int64_t gpus = 0; !reached.contains(std::vector<int64_t>(names.size(), 0)); ++gpus) {
    std::set<std::vector<int64_t>> next;
    for (const std::vector<int64_t>& left : reached) {
      std::vector<int64_t> held;
      for (const int64_t count : left) held.push_back(kMost - count);
      fewest.emplace(held, gpus);
      for (const std::vector<int64_t>& cut : cuts) {
        std::vector<int64_t> less = left;
        for (std::size_t i = 0; i < less.size(); ++i)
          less[i] = std::max<int64_t>(less[i] - cut[i], 0);
        next.insert(less);
      }
    }
    reached = std::move(next);
  }
  CoverFinder finder(H100());
  ASSERT_GT(fewest.size(), 100u);
  for (const auto& [held, gpus] : fewest) {
    std::vector<std::pair<std::string, int64_t>> wanted;
    for (std::size_t i = 0; i < names.size(); ++i) wanted.emplace_back(names[i], held[i]);
    const InstanceCover cover = finder.Find(Counts(wanted));
    EXPECT_EQ(cover.gpus, gpus) << testing::PrintToString(held);
    ExpectCovered(Counts(wanted), cover);
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
