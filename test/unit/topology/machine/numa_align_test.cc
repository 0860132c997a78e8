#include "topology/machine/numa_align.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace tranche {
namespace THIS_FILE {

// GPUs in all and free, CPUs in all and free.
ZoneRoom Zone(int gpus, int gpus_free, int cpus = 0, int cpus_free = 0) {
  return {gpus, gpus_free, MilliCpu::Of(1000 * cpus), MilliCpu::Of(1000 * cpus_free)};
}

AlignedNeed Need(int gpus, int cpus = 0) { return {gpus, MilliCpu::Of(1000 * cpus)}; }

struct Row {
  const char* what;
  std::vector<ZoneRoom> zones;
  AlignedNeed need;
  bool restricted;
  bool single;
};

TEST(NumaAlign, RowsOfTheKubeletsRules) {
  const std::vector<Row> rows = {
      {"3 + 5: four fit the larger node alone", {Zone(3, 3), Zone(5, 5)}, Need(4), true, true},
      {"3 + 5: not once it has three left", {Zone(3, 3), Zone(5, 3)}, Need(4), false, false},
      {"two free on different nodes are no pair", {Zone(4, 1), Zone(4, 1)}, Need(2), false, false},
      {"eight can only span both", {Zone(4, 4), Zone(4, 4)}, Need(8), true, false},
      {"six span both although one is part used", {Zone(4, 4), Zone(4, 2)}, Need(6), true, false},
      {"one fits where one is free", {Zone(4, 0), Zone(4, 1)}, Need(1), true, true},
      {"nothing to align", {Zone(4, 0), Zone(4, 0)}, Need(0), true, true},
      {"too few free at all", {Zone(4, 1), Zone(4, 0)}, Need(2), false, false},
      {"more than there are", {Zone(4, 4), Zone(4, 4)}, Need(9), false, false},
      {"CPUs beside the GPUs", {Zone(4, 4, 32, 32), Zone(4, 4, 32, 8)}, Need(2, 16), true, true},
      {"free CPUs on the one, free GPUs on the other",
       {Zone(4, 0, 32, 32), Zone(4, 4, 32, 8)},
       Need(2, 16),
       false,
       false},
      {"CPUs that need two nodes beside GPUs that need one never agree",
       {Zone(4, 4, 32, 32), Zone(4, 4, 32, 32)},
       Need(2, 48),
       false,
       false},
      {"both need two", {Zone(4, 4, 32, 32), Zone(4, 4, 32, 32)}, Need(8, 48), true, false},
      {"CPUs nobody counts are not asked about", {Zone(4, 4), Zone(4, 4)}, Need(2, 48), true, true},
      {"CPUs alone", {Zone(0, 0, 8, 2), Zone(0, 0, 8, 4)}, Need(0, 4), true, true},
      {"two of four nodes, in either half",
       {Zone(2, 2), Zone(2, 0), Zone(2, 0), Zone(2, 2)},
       Need(4),
       true,
       false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(KubeletAdmits(NumaPolicy::kRestricted, row.zones, row.need), row.restricted)
        << row.what;
    EXPECT_EQ(KubeletAdmits(NumaPolicy::kSingleNode, row.zones, row.need), row.single) << row.what;
    EXPECT_TRUE(KubeletAdmits(NumaPolicy::kBestEffort, row.zones, row.need)) << row.what;
    EXPECT_TRUE(KubeletAdmits(NumaPolicy::kNone, row.zones, row.need)) << row.what;
  }
}

TEST(NumaAlign, WhatNoZoneHasIsNotAligned) {
  EXPECT_TRUE(KubeletAdmits(NumaPolicy::kSingleNode, {{Zone(0, 0), Zone(0, 0)}}, Need(4)))
      << "GPUs of a virtual machine that names no NUMA node";
  EXPECT_FALSE(KubeletAdmits(NumaPolicy::kSingleNode, {{Zone(4, 4), Zone(0, 0)}}, Need(5)));
  std::vector<ZoneRoom> tray(36);
  tray[0] = tray[1] = Zone(2, 2);
  EXPECT_TRUE(KubeletAdmits(NumaPolicy::kRestricted, tray, Need(4)))
      << "NUMA nodes that are a GPU's memory do not count among the eight";
}

// A container in turn: GPUs, and whether it is an init container.
struct Turns {
  const char* what;
  std::vector<ZoneRoom> zones;
  std::vector<std::pair<int, bool>> containers;
  bool restricted;
  bool single;
};

// What the kubelet's own code does with these: test/kubelet.
TEST(NumaAlign, ContainersInTurn) {
  const std::vector<Turns> rows = {
      {"a pair on each side", {Zone(2, 2), Zone(2, 2)}, {{2, false}, {2, false}}, true, true},
      {"no second pair", {Zone(3, 3), Zone(2, 1)}, {{2, false}, {2, false}}, false, false},
      {"the first takes the lower side",
       {Zone(5, 2), Zone(3, 1)},
       {{1, false}, {2, false}},
       false,
       false},
      {"init first, over both: one of them is no longer near",
       {Zone(2, 2), Zone(1, 1)},
       {{3, true}, {1, false}},
       false,
       false},
      {"init first, on one side, lends it",
       {Zone(4, 4), Zone(4, 0)},
       {{4, true}, {2, false}},
       true,
       true},
      {"a sidecar keeps what it has",
       {Zone(4, 4), Zone(4, 0)},
       {{4, false}, {2, false}},
       false,
       false},
      {"init after init goes on from what is lent",
       {Zone(2, 2), Zone(2, 2)},
       {{2, true}, {4, true}, {4, false}},
       true,
       false},
      {"which of three sides of two is left over is the plugin's choice",
       {Zone(2, 2), Zone(2, 2), Zone(2, 2)},
       {{3, false}, {1, false}, {2, false}},
       true,
       false},
      {"one choice of the plugin leaves no pair",
       {Zone(3, 3), Zone(3, 3)},
       {{4, false}, {2, false}},
       false,
       false},
      {"nothing is asked", {Zone(2, 0), Zone(2, 0)}, {{0, false}}, true, true},
  };
  for (const Turns& row : rows) {
    std::vector<AlignedTurn> turns;
    for (const auto& [gpus, lends] : row.containers) turns.push_back({Need(gpus), lends});
    EXPECT_EQ(KubeletAdmits(NumaPolicy::kRestricted, row.zones, turns), row.restricted) << row.what;
    EXPECT_EQ(KubeletAdmits(NumaPolicy::kSingleNode, row.zones, turns), row.single) << row.what;
    EXPECT_TRUE(KubeletAdmits(NumaPolicy::kBestEffort, row.zones, turns)) << row.what;
  }
}

TEST(NumaAlign, WithMoreZonesThanTheKubeletTakesRestrictedIsSingleNode) {
  const std::vector<ZoneRoom> zones(9, Zone(2, 2));
  EXPECT_TRUE(KubeletAdmits(NumaPolicy::kRestricted, zones, Need(2)));
  EXPECT_FALSE(KubeletAdmits(NumaPolicy::kRestricted, zones, Need(4)));
}

TEST(NumaAlign, PoliciesAndScopesAreSpelledAsTheKubeletSpellsThem) {
  EXPECT_EQ(ParseNumaPolicy("none"), NumaPolicy::kNone);
  EXPECT_EQ(ParseNumaPolicy("best-effort"), NumaPolicy::kBestEffort);
  EXPECT_EQ(ParseNumaPolicy("restricted"), NumaPolicy::kRestricted);
  EXPECT_EQ(ParseNumaPolicy("single-numa-node"), NumaPolicy::kSingleNode);
  EXPECT_EQ(ParseNumaPolicy("Restricted"), std::nullopt);
  EXPECT_EQ(ParseNumaScope("container"), NumaScope::kContainer);
  EXPECT_EQ(ParseNumaScope("pod"), NumaScope::kPod);
  EXPECT_EQ(ParseNumaScope(""), std::nullopt);
}

// The oracle: hints of every provider, one by one, and every combination of them merged.
struct Hint {
  unsigned nodes = 0;
  bool preferred = false;
};

std::vector<Hint> HintsOf(const std::vector<int64_t>& capacity, const std::vector<int64_t>& free,
                          int64_t need) {
  const unsigned all = (1U << capacity.size()) - 1;
  const bool known = std::ranges::any_of(capacity, [](int64_t held) { return held > 0; });
  if (need == 0 || !known) return {{all, true}};
  int fewest = static_cast<int>(capacity.size());
  std::vector<Hint> hints;
  for (unsigned nodes = 1; nodes <= all; ++nodes) {
    int64_t held = 0;
    int64_t left = 0;
    for (std::size_t i = 0; i < capacity.size(); ++i) {
      if ((nodes >> i & 1U) == 0) continue;
      held += capacity[i];
      left += free[i];
    }
    if (held >= need) fewest = std::min(fewest, std::popcount(nodes));
    if (left >= need) hints.push_back({nodes, false});
  }
  for (Hint& hint : hints) hint.preferred = std::popcount(hint.nodes) == fewest;
  return hints;
}

bool OracleAdmits(NumaPolicy policy, const std::vector<ZoneRoom>& zones, const AlignedNeed& need) {
  std::vector<int64_t> gpus, gpus_free, cpus, cpus_free;
  for (const ZoneRoom& zone : zones) {
    gpus.push_back(zone.gpus_capacity);
    gpus_free.push_back(zone.gpus_free);
    cpus.push_back(zone.cpus_capacity.count());
    cpus_free.push_back(zone.cpus_free.count());
  }
  const bool has_gpus = std::ranges::any_of(gpus, [](int64_t held) { return held > 0; });
  const bool asks_gpus = need.gpus > 0 && has_gpus;
  const bool asks_cpus = need.cpus > MilliCpu();
  for (const Hint& gpu : HintsOf(gpus, gpus_free, need.gpus)) {
    for (const Hint& cpu : HintsOf(cpus, cpus_free, need.cpus.count())) {
      const bool one = (!asks_gpus || std::popcount(gpu.nodes) == 1) &&
                       (!asks_cpus || std::popcount(cpu.nodes) == 1);
      if (policy == NumaPolicy::kSingleNode && !one) continue;
      const bool equal = !asks_gpus || !asks_cpus || gpu.nodes == cpu.nodes;
      const bool merges = (gpu.nodes & cpu.nodes) != 0;
      if (merges && equal && gpu.preferred && cpu.preferred) return true;
    }
  }
  return false;
}

TEST(NumaAlign, AgreesWithHintsMergedOneByOne) {
  std::mt19937_64 random(7);
  const auto below = [&](uint64_t bound) { return static_cast<int>(random() % bound); };
  int admitted = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<ZoneRoom> zones;
    const int count = 1 + below(4);
    for (int i = 0; i < count; ++i) {
      const int gpus = below(5);
      const int cpus = 1 + below(8);
      zones.push_back(Zone(gpus, below(static_cast<uint64_t>(gpus) + 1), cpus,
                           below(static_cast<uint64_t>(cpus) + 1)));
    }
    const AlignedNeed need = Need(below(8), below(2) * below(12));
    for (const NumaPolicy policy : {NumaPolicy::kRestricted, NumaPolicy::kSingleNode}) {
      const bool expected = OracleAdmits(policy, zones, need);
      admitted += expected ? 1 : 0;
      ASSERT_EQ(KubeletAdmits(policy, zones, need), expected) << "round " << round;
    }
  }
  EXPECT_GT(admitted, 500);
}

}  // namespace THIS_FILE
}  // namespace tranche
