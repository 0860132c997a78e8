#include "topology/machine/plugin_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "test/builders/machines.h"
#include "test/unit/topology/machine/captured.h"

namespace tranche {
namespace THIS_FILE {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

GpuSet GpusOf(const std::string& digits) {
  GpuSet set;
  for (const char digit : digits) set.Add(digit - '0');
  return set;
}

std::vector<std::string> Choices(const Machine& machine, const std::string& free, int count) {
  std::vector<std::string> choices;
  for (const GpuSet set : PluginChoices(machine, GpusOf(free), count)) {
    std::string digits;
    for (const int gpu : set) digits += std::to_string(gpu);
    choices.push_back(digits);
  }
  return choices;
}

TEST(PluginChoice, TakesWholeQuadsAndStrongPairsOfACubeMesh) {
  const Machine machine = CapturedMachine("dgx1-v100");
  EXPECT_THAT(Choices(machine, "01234567", 4), ElementsAre("0123", "4567"));
  // The pairs are those that leave only strong ones, whichever of them comes first.
  for (const std::string& pair : Choices(machine, "01234567", 2)) {
    EXPECT_EQ(machine.link(pair[0] - '0', pair[1] - '0').nvlinks, 2) << pair;
  }
  EXPECT_THAT(Choices(machine, "4567", 4), ElementsAre("4567"));
}

TEST(PluginChoice, TakesWholePairsOfABridgedBox) {
  const Machine machine = CapturedMachine("8x-h100-pcie-cross-numa-bridge");
  EXPECT_THAT(Choices(machine, "01234567", 2), UnorderedElementsAre("12", "34", "67"));
  EXPECT_THAT(Choices(machine, "0256", 2), ElementsAre("05"));
}

TEST(PluginChoice, OfOneIsAnyThatIsFree) {
  EXPECT_THAT(Choices(test::CubeMesh(), "257", 1), ElementsAre("2", "5", "7"));
  EXPECT_EQ(PluginChoice(test::CubeMesh(), GpusOf("257"), 1), GpusOf("2"));
}

TEST(PluginChoice, SeesNoNvlinkBehindASwitch) {
  // NUMA nodes decide, as paths over PCIe do on the machine itself.
  EXPECT_THAT(Choices(test::Switched(8, 4), "01234567", 4), ElementsAre("0123", "4567"));
  EXPECT_THAT(Choices(CapturedMachine("dgx-a100"), "01234567", 2),
              ElementsAre("01", "23", "45", "67"));
  // Direct links of four GPUs, six to each of the others, are links.
  EXPECT_EQ(Choices(CapturedMachine("hgx-h100-4gpu"), "0123", 2).size(), 6U);
}

TEST(PluginChoice, SaysNothingWhereTheDivisionsAreTooMany) {
  const Machine machine = test::Switched(16, 8);
  EXPECT_THAT(PluginChoices(machine, machine.all(), 4), IsEmpty());  // 2.6 million
  EXPECT_EQ(PluginChoice(machine, machine.all(), 4), std::nullopt);
  EXPECT_EQ(PluginChoice(machine, machine.all(), 16), machine.all());
  EXPECT_TRUE(PluginChoice(machine, GpuSet::FirstOf(10), 4));
}

TEST(PluginChoice, SaysNothingWhereTooFewAreFree) {
  EXPECT_EQ(PluginChoice(test::CubeMesh(), GpusOf("012"), 4), std::nullopt);
  EXPECT_EQ(PluginChoice(test::CubeMesh(), GpusOf("012"), 0), std::nullopt);
}

TEST(PluginChoice, SaysNothingWhereThePluginItselfWouldTakeTheSmallerSet) {
  // 0 and 1 are bridged, 2, 3 and 4 share a NUMA node: {2, 3, 4} and {0, 1} score most together,
  // and {0, 1} most by itself.
  std::vector<std::vector<int>> nvlinks(5, std::vector<int>(5, 0));
  nvlinks[0][1] = nvlinks[1][0] = 12;
  const Machine machine = test::MakeMachine(nvlinks, {0, 0, 1, 1, 1});
  EXPECT_THAT(PluginChoices(machine, machine.all(), 3), IsEmpty());
}

// The oracle: the rule as a person would carry it out on GPUs in one given order.
class SlowPlugin {
 public:
  SlowPlugin(const Machine& machine, std::vector<int> order, int count)
      : machine_(machine), order_(std::move(order)), count_(static_cast<std::size_t>(count)) {
    while (order_.size() % count_ != 0) order_.push_back(kPadding);
    padding_ = std::count(order_.begin(), order_.end(), kPadding);
  }

  GpuSet Choose() {
    Divide(std::vector<bool>(order_.size(), false), {});
    const std::vector<int>* best = nullptr;
    for (const std::vector<int>& part : best_) {
      if (best == nullptr || Score(part) > Score(*best)) best = &part;
    }
    GpuSet set;
    for (const int gpu : *best) {
      if (gpu != kPadding) set.Add(gpu);
    }
    return set;
  }

 private:
  static constexpr int kPadding = -1;

  int Score(const std::vector<int>& part) const {
    int score = 0;
    for (std::size_t i = 0; i < part.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (part[i] == kPadding || part[j] == kPadding) continue;
        const Link link = machine_.link(part[i], part[j]);
        score += 100 * link.nvlinks + 10 + 10 * static_cast<int>(link.path);
      }
    }
    return score;
  }

  void Divide(const std::vector<bool>& used, const std::vector<std::vector<int>>& parts) {
    const auto first = std::find(used.begin(), used.end(), false);
    if (first == used.end()) {
      int score = 0;
      for (const std::vector<int>& part : parts) score += Score(part);
      if (score > most_) best_ = parts;
      most_ = std::max(most_, score);
      return;
    }
    // Every way to mark the others of the part, earlier positions first.
    const auto begin = static_cast<std::size_t>(first - used.begin());
    std::vector<bool> mask(used.size(), false);
    std::fill_n(mask.begin(), count_, true);
    do {
      std::vector<int> part;
      std::vector<bool> now = used;
      for (std::size_t i = 0; i < mask.size(); ++i) {
        if (!mask[i] || used[i]) continue;
        part.push_back(order_[i]);
        now[i] = true;
      }
      const auto padding = std::count(part.begin(), part.end(), kPadding);
      if (!mask[begin] || part.size() != count_ || (padding != 0 && padding != padding_)) continue;
      std::vector<std::vector<int>> grown = parts;
      grown.push_back(part);
      Divide(now, grown);
    } while (std::prev_permutation(mask.begin(), mask.end()));
  }

  const Machine& machine_;
  std::vector<int> order_;
  std::size_t count_;
  std::ptrdiff_t padding_ = 0;
  int most_ = -1;
  std::vector<std::vector<int>> best_;
};

// Links of few kinds, so that sets are often equal.
Machine RandomMachine(std::mt19937_64& random, std::size_t gpus) {
  std::vector<std::vector<int>> nvlinks(gpus, std::vector<int>(gpus, 0));
  std::vector<int> numa;
  for (std::size_t i = 0; i < gpus; ++i) {
    numa.push_back(static_cast<int>(random() % 2));
    for (std::size_t j = 0; j < i; ++j) {
      nvlinks[i][j] = nvlinks[j][i] = static_cast<int>(random() % 4 == 0 ? 1 + random() % 2 : 0);
    }
  }
  return test::MakeMachine(nvlinks, numa);
}

TEST(PluginChoice, NamesEverySetThatSomeOrderOfTheGpusLeadsTo) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 20; ++round) {
    const std::size_t gpus = 3 + random() % 3;
    const Machine machine = RandomMachine(random, gpus);
    for (int count = 1; count <= static_cast<int>(gpus); ++count) {
      std::vector<int> order(gpus);
      std::iota(order.begin(), order.end(), 0);
      std::set<uint64_t> expected;
      const GpuSet ascending = SlowPlugin(machine, order, count).Choose();
      bool fails = false;
      do {
        const GpuSet set = SlowPlugin(machine, order, count).Choose();
        expected.insert(set.bits());
        fails = fails || set.size() != count;
      } while (std::next_permutation(order.begin(), order.end()));
      std::set<uint64_t> found;
      const std::vector<GpuSet> choices = PluginChoices(machine, machine.all(), count);
      for (const GpuSet set : choices) found.insert(set.bits());
      if (fails) {
        EXPECT_THAT(choices, IsEmpty()) << "round " << round << ", of " << count;
        continue;
      }
      EXPECT_EQ(found, expected) << "round " << round << ", of " << count;
      EXPECT_EQ(choices.front(), ascending) << "round " << round << ", of " << count;
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
