#include "topology/machine/ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "test/builders/machines.h"
#include "test/unit/topology/machine/captured.h"
#include "topology/machine/ring_table.h"

namespace tranche {
namespace THIS_FILE {

using testing::ElementsAre;
using testing::IsEmpty;

GpuSet SetOf(const std::vector<int>& gpus) {
  GpuSet set;
  for (const int gpu : gpus) set.Add(gpu);
  return set;
}

// "0347" -> {0, 3, 4, 7}.
GpuSet SetOf(const std::string& digits) {
  GpuSet set;
  for (const char digit : digits) set.Add(digit - '0');
  return set;
}

struct QuadRow {
  const char* machine;
  std::vector<std::string> quads;  // those of four that have a ring over NVLink alone
};

TEST(Ring, TheQuadsWithARingOverNvlinkAloneAreTheKnownOnes) {
  const std::vector<std::string> dgx = {"0123", "0145", "0246", "0347",
                                        "1256", "1357", "2367", "4567"};
  const std::vector<QuadRow> rows = {
      {"dgx1-v100", dgx},
      {"dgx1-v100-numa", dgx},
      {"dgx1-p100", dgx},
      {"hgx1-v100-alt-numbering", {"0123", "0167", "0257", "0347", "1256", "1346", "2345", "4567"}},
      {"8x-h100-nvl", {}},
      {"8x-h100-pcie-cross-numa-bridge", {}},
  };
  for (const QuadRow& row : rows) {
    const Machine machine = CapturedMachine(row.machine);
    std::vector<std::string> found;
    for (uint64_t bits = 0; bits < 256; ++bits) {
      const GpuSet set = GpuSet::Of(bits);
      if (set.size() != 4 || BestRing(machine, set).weakest == 0) continue;
      std::string digits;
      for (const int gpu : set) digits += std::to_string(gpu);
      found.push_back(digits);
    }
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, row.quads) << row.machine;
  }
}

TEST(Ring, GoesOverTheStrongLinksAndStartsAtTheLowestGpu) {
  const Ring ring = BestRing(test::CubeMesh(), SetOf("0123"));
  EXPECT_EQ(ring.weakest, 1);
  EXPECT_EQ(ring.links, 7);
  EXPECT_THAT(ring.order, ElementsAre(0, 1, 2, 3));
}

TEST(Ring, PrefersAStrongWeakestHopToMoreLinks) {
  // 0-1-2-3 has 1+1+1+1 links; 0-2-1-3 has 6 and 6, and two hops of none.
  const Machine machine =
      test::MakeMachine({{0, 1, 6, 1}, {1, 0, 1, 6}, {6, 1, 0, 1}, {1, 6, 1, 0}}, {0, 0, 0, 0});
  const Ring all = BestRing(machine, SetOf("0123"));
  EXPECT_EQ(all.weakest, 1);
  EXPECT_EQ(all.links, 14);  // 0-1-3-2: 1 + 6 + 1 + 6
  EXPECT_THAT(all.order, ElementsAre(0, 1, 3, 2));

  const Machine torn =
      test::MakeMachine({{0, 1, 6, 0}, {1, 0, 1, 1}, {6, 1, 0, 6}, {0, 1, 6, 0}}, {0, 0, 0, 0});
  EXPECT_EQ(BestRing(torn, SetOf("0123")).weakest, 1);
  EXPECT_THAT(BestRing(torn, SetOf("0123")).order, ElementsAre(0, 1, 3, 2));
}

TEST(Ring, OfTwoCountsTheirLinkTwiceAndOfOneNothing) {
  const Machine machine = test::CubeMesh();
  EXPECT_EQ(BestRing(machine, SetOf("03")).links, 4);
  EXPECT_EQ(BestRing(machine, SetOf("03")).weakest, 2);
  EXPECT_EQ(BestRing(machine, SetOf("5")).links, 0);
  EXPECT_THAT(BestRing(machine, SetOf("5")).order, ElementsAre(5));
  EXPECT_THAT(BestRing(machine, GpuSet()).order, IsEmpty());
}

TEST(Ring, BeyondTheExactSizeIsStillRightWhereAllLinksAreAlike) {
  const Ring ring = BestRing(test::Switched(16, 8), GpuSet::FirstOf(16));
  EXPECT_EQ(ring.weakest, 18);
  EXPECT_EQ(ring.links, 16 * 18);
  EXPECT_EQ(SetOf(ring.order), GpuSet::FirstOf(16));
  EXPECT_EQ(ring.order.size(), 16U);
}

TEST(RingTable, SaysWhatTheRingsOfSingleSetsSay) {
  for (const char* name : {"dgx1-v100", "8x-h100-nvl", "4x-a100-degraded-link", "dgx-h100"}) {
    const Machine machine = CapturedMachine(name);
    const std::vector<RingValue> table = RingTable(machine);
    for (uint64_t bits = 1; bits < table.size(); ++bits) {
      const Ring ring = BestRing(machine, GpuSet::Of(bits));
      EXPECT_EQ(table[bits].weakest, ring.weakest) << name << " " << bits;
      EXPECT_GE(table[bits].links, ring.links) << name << " " << bits;
    }
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
