#include "topology/machine/machine_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "test/builders/machines.h"
#include "test/unit/topology/machine/captured.h"

namespace tranche {
namespace THIS_FILE {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSubsetOf;

GpuSet SetOf(const std::string& digits) {
  GpuSet set;
  for (const char digit : digits) set.Add(digit <= '9' ? digit - '0' : digit - 'a' + 10);
  return set;
}

std::string Digits(GpuSet set) {
  std::string digits;
  for (const int gpu : set) digits += static_cast<char>(gpu < 10 ? '0' + gpu : 'a' + gpu - 10);
  return digits;
}

std::shared_ptr<const Machine> Share(Machine machine) {
  return std::make_shared<const Machine>(std::move(machine));
}

std::string BestOf(MachineTable& table, const std::string& free, int count, SetRules rules = {}) {
  const std::optional<SetChoice> choice = table.Best(SetOf(free), count, rules);
  return choice ? Digits(choice->set) : "none";
}
std::string BestOf(const std::string& machine, const std::string& free, int count,
                   SetRules rules = {}) {
  MachineTable table(Share(CapturedMachine(machine)));
  return BestOf(table, free, count, rules);
}

constexpr const char* kAll = "01234567";
constexpr SetRules kPreserving = {.goal = SetGoal::kPreserve};

// gpu-topology section 4: of all sets of a size, those that are best by what NVLink gives them.
struct BestRow {
  const char* machine;
  int count;
  int links;  // of each of them
  std::vector<std::string> sets;
};

// The fields of the key that are about NVLink.
bool IsLinkedBetter(const SetQuality& left, const SetQuality& right) {
  const auto key = [](const SetQuality& quality) {
    return std::tuple(quality.connected, quality.ring_links, quality.links, quality.ring_weakest);
  };
  return key(left) > key(right);
}

TEST(MachineTable, TheSetsThatAreBestByNvlinkAreTheKnownOnes) {
  const std::vector<BestRow> rows = {
      {"dgx1-v100", 2, 2, {"03", "04", "12", "15", "23", "47", "56", "67"}},
      {"dgx1-v100", 3, 5, {"023", "123", "467", "567"}},
      {"dgx1-v100", 4, 9, {"0123", "4567"}},
      {"dgx1-v100-numa", 4, 9, {"0123", "4567"}},
      {"hgx1-v100-alt-numbering", 2, 2, {"02", "07", "13", "16", "23", "45", "46", "57"}},
      {"hgx1-v100-alt-numbering", 3, 5, {"023", "123", "456", "457"}},
      {"hgx1-v100-alt-numbering", 4, 9, {"0123", "4567"}},
      {"dgx1-p100",
       2,
       1,
       {"01", "02", "03", "04", "12", "13", "15", "23", "26", "37", "45", "46", "47", "56", "57",
        "67"}},
      {"dgx1-p100", 4, 6, {"0123", "4567"}},
      {"8x-h100-nvl", 2, 12, {"01", "23", "45", "67"}},
      {"8x-h100-nvl", 4, 24, {"0123", "0145", "0167", "2345", "2367", "4567"}},
      {"8x-h100-pcie-cross-numa-bridge", 2, 12, {"05", "12", "34", "67"}},
      {"8x-h100-pcie-cross-numa-bridge", 4, 24, {"0125", "0345", "0567", "1234", "1267", "3467"}},
      {"4x-a100-pcie-azure", 2, 12, {"01", "23"}},
      {"4x-a100-pcie-azure", 3, 12, {"012", "013", "023", "123"}},
      {"4x-a100-pcie-azure", 4, 24, {"0123"}},
      {"4x-a100-degraded-link", 2, 12, {"01"}},
      {"4x-rtx8000-nvlink", 2, 2, {"03", "12"}},
  };
  for (const BestRow& row : rows) {
    MachineTable table(Share(CapturedMachine(row.machine)));
    const GpuSet all = table.machine().all();
    SetQuality most = table.QualityOf(table.Best(all, row.count, {})->set);
    std::vector<std::string> found;
    for (uint64_t bits = 0; bits <= all.bits(); ++bits) {
      const GpuSet set = GpuSet::Of(bits);
      if (set.size() != row.count) continue;
      EXPECT_FALSE(IsLinkedBetter(table.QualityOf(set), most)) << row.machine << Digits(set);
      if (!IsLinkedBetter(most, table.QualityOf(set))) found.push_back(Digits(set));
    }
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, row.sets) << row.machine << " " << row.count;
    EXPECT_EQ(most.links, row.links) << row.machine << " " << row.count;
    EXPECT_THAT(std::vector<std::string>{Digits(table.Best(all, row.count, {})->set)},
                IsSubsetOf(row.sets));
  }
}

struct WorstRow {
  const char* machine;
  int links;  // NVLinks of the poorest sets of four
  int sets;
};

TEST(MachineTable, TheSetsOfFourWithFewestLinksAreTheKnownOnes) {
  for (const WorstRow& row : {WorstRow{"dgx1-v100", 2, 2},
                              {"hgx1-v100-alt-numbering", 2, 2},
                              {"dgx1-p100", 2, 6},
                              {"8x-h100-nvl", 0, 16},
                              {"8x-h100-pcie-cross-numa-bridge", 0, 16}}) {
    MachineTable table(Share(CapturedMachine(row.machine)));
    int64_t fewest = 1000;
    int sets = 0;
    for (uint64_t bits = 0; bits < 256; ++bits) {
      if (GpuSet::Of(bits).size() != 4) continue;
      const int64_t links = table.QualityOf(GpuSet::Of(bits)).links;
      if (links < fewest) sets = 0;
      fewest = std::min(fewest, links);
      sets += links == fewest ? 1 : 0;
    }
    EXPECT_EQ(fewest, row.links) << row.machine;
    EXPECT_EQ(sets, row.sets) << row.machine;
  }
}

TEST(MachineTable, SameSocketPairsComeBeforePairsAcrossSockets) {
  EXPECT_EQ(BestOf("8x-h100-nvl", kAll, 4), "0123");
  EXPECT_EQ(BestOf("8x-h100-nvl", "0145", 4), "0145");
  // The only two pairs of one NUMA node.
  EXPECT_EQ(BestOf("8x-h100-pcie-cross-numa-bridge", kAll, 4), "3467");
  // Links come before NUMA: every GPU is alone on its node.
  EXPECT_EQ(BestOf("4x-a100-pcie-azure", "0123", 2), "01");
}

struct KeepRow {
  const char* what;
  const char* machine;
  const char* free;
  int count;
  const char* best;
};

TEST(MachineTable, WhatIsLeftDecidesBetweenEqualSets) {
  const std::vector<KeepRow> rows = {
      {"a single GPU takes the loner", "8x-h100-nvl", "0124567", 1, "2"},
      {"although its NIC is farther", "8x-h100-nvl", "01245", 1, "2"},
      {"and of two loners the lower", "8x-a40-nvlink-bridge", "0245", 1, "0"},
      {"two GPUs take a whole pair", "8x-a40-nvlink-bridge", "0234", 2, "23"},
      {"two loners where no pair is free", "8x-a40-nvlink-bridge", "0246", 2, "02"},
      {"three: a pair and a loner", "8x-a40-nvlink-bridge", "0123467", 3, "467"},
      {"a single GPU breaks the weaker bridge", "4x-a100-degraded-link", "0123", 1, "2"},
      {"not the bridge but the pair on PCIe", "4x-mixed-bridge", "0123", 1, "2"},
      {"a GPU of the quad that is broken", "dgx1-v100", "1234567", 1, "3"},
      {"a strong pair inside the broken quad", "dgx1-v100", "01234567", 2, "03"},
      {"no pair across two quads", "dgx1-v100", "01234", 2, "12"},
      {"a NUMA node in use before an idle one", "dgx-h100", "34567", 1, "3"},
      {"and the one with fewer left", "dgx-h100", "2345", 1, "2"},
      {"the pair of a switch in use", "hgx-b200-gke-a4", "1234567", 1, "1"},
      {"a switch whole", "hgx-b200-gke-a4", "1234567", 2, "23"},
      {"a NUMA pair whole", "dgx-a100", "1234567", 2, "23"},
      {"four in one NUMA node", "dgx-h100", "01234567", 4, "0123"},
      {"also when it is the second", "dgx-h100", "1234567", 4, "4567"},
      {"four on one socket", "dgx-a100", "01234567", 4, "0123"},
      {"five leave three together", "dgx-h100", "01234567", 5, "01234"},
      {"four of one PCIe switch, in the NUMA node in use", "dgx2-v100", "01234567abcdef", 4,
       "cdef"},
      {"pairs of one PCIe switch", "8x-l40s-pcie", "0145", 2, "45"},
      {"PCIe: a GPU of the broken pair", "8x-l40s-pcie", "0167", 1, "0"},
      {"PCIe: the loner of three", "8x-l40s-pcie", "02367", 1, "0"},
      {"six and two: two take the small node", "8x-pcie-asymmetric-6plus2", kAll, 2, "67"},
  };
  for (const KeepRow& row : rows) {
    EXPECT_EQ(BestOf(row.machine, row.free, row.count), row.best) << row.what;
  }
}

TEST(MachineTable, WorkThatDoesNotCareLeavesTheGoodSetsToOthers) {
  EXPECT_EQ(BestOf("8x-h100-nvl", "012456", 2, kPreserving), "26");
  EXPECT_EQ(BestOf("8x-h100-nvl", "012456", 2), "01");
  EXPECT_EQ(BestOf("dgx1-v100", "0124567", 3, kPreserving), "012");
}

TEST(MachineTable, RulesNarrowTheChoice) {
  const SetRules nvlink = {.require_nvlink = true};
  EXPECT_EQ(BestOf("dgx1-v100", "0234567", 4, nvlink), "4567");
  EXPECT_EQ(BestOf("dgx1-v100", "023467", 4, nvlink), "none");
  EXPECT_EQ(BestOf("dgx1-v100", kAll, 8, nvlink), "none");  // a cube mesh is not all to all
  EXPECT_EQ(BestOf("dgx-h100", kAll, 8, nvlink), kAll);
  EXPECT_EQ(BestOf("dgx1-v100", "6", 1, nvlink), "6");  // one GPU always meets it
  EXPECT_EQ(BestOf("hgx-h100-nvlink-down", kAll, 2, nvlink), "none");

  const SetRules nv2 = {.floor = LinkFloor{PathClass::kSys, 2}};
  EXPECT_EQ(BestOf("dgx1-v100", "0125", 2, nv2), "12");
  EXPECT_EQ(BestOf("dgx1-v100", "0126", 3, nv2), "none");
  const SetRules pix = {.floor = LinkFloor{PathClass::kPix, 0}};
  EXPECT_EQ(BestOf("8x-l40s-pcie", "0267", 2, pix), "67");
  EXPECT_EQ(BestOf("8x-l40s-pcie", "0246", 2, pix), "none");

  const SetRules near_nic = {.nic_floor = PathClass::kPxb};
  EXPECT_EQ(BestOf("8x-l40s-pcie", kAll, 1, near_nic), "2");
  EXPECT_EQ(BestOf("8x-l40s-pcie", "0167", 1, near_nic), "none");
  EXPECT_EQ(BestOf("8x-l40s-pcie", kAll, 4, near_nic), "2345");
  EXPECT_EQ(BestOf("8x-rtx4090-2socket", kAll, 1, near_nic), "none");  // there is no NIC

  const SetRules one_numa = {.one_numa = true};
  EXPECT_EQ(BestOf("8x-h100-pcie-cross-numa-bridge", kAll, 5, one_numa), "34567");
  EXPECT_EQ(BestOf("8x-h100-pcie-cross-numa-bridge", "0123", 2, one_numa), "12");
  EXPECT_EQ(BestOf("8x-h100-pcie-cross-numa-bridge", "012", 3, one_numa), "012");
  EXPECT_EQ(BestOf("8x-h100-pcie-cross-numa-bridge", "05", 2, one_numa), "none");
  EXPECT_EQ(BestOf("dgx1-v100", "0123", 2, one_numa), "none");  // nobody says
}

TEST(MachineTable, OnlyWhatIsFreeAndThereIsTaken) {
  MachineTable table(Share(test::CubeMesh()));
  EXPECT_EQ(BestOf(table, "", 1), "none");
  EXPECT_EQ(BestOf(table, "01", 3), "none");
  EXPECT_EQ(BestOf(table, "01", 0), "none");
  EXPECT_EQ(BestOf(table, "5abc", 1), "5");
  EXPECT_EQ(BestOf(table, "5abc", 2), "none");
}

struct LossRow {
  const char* machine;
  const char* free;
  int count;
  int loss;
};

TEST(MachineTable, LossSaysHowFarUpTheKeyTheSetFallsShort) {
  for (const LossRow& row : {LossRow{"dgx1-v100", "4567", 4, 0},
                             {"dgx1-v100", "1256", 4, 6},
                             {"dgx1-v100", "012", 3, 5},
                             {"dgx1-v100", "56", 2, 0},
                             {"dgx1-v100", "57", 2, 5},
                             {"8x-h100-nvl", "0145", 4, 3},
                             {"8x-h100-pcie-cross-numa-bridge", "05", 2, 2},
                             {"8x-l40s-pcie", "01", 2, 1},
                             {"8x-l40s-pcie", "0", 1, 0}}) {
    MachineTable table(Share(CapturedMachine(row.machine)));
    EXPECT_EQ(table.Best(SetOf(row.free), row.count, {})->loss, row.loss)
        << row.machine << " " << row.free;
    EXPECT_EQ(table.Best(SetOf(row.free), row.count, kPreserving)->loss, 0);
  }
}

TEST(MachineTable, DamageCountsGpusThatStayFreeButLoseTheirGroup) {
  const auto damage = [](const std::string& machine, const std::string& free, int count) {
    MachineTable table(Share(CapturedMachine(machine)));
    return table.Best(SetOf(free), count, {})->damage;
  };
  EXPECT_EQ(damage("8x-a40-nvlink-bridge", kAll, 2), 0);
  EXPECT_EQ(damage("8x-a40-nvlink-bridge", kAll, 1), 1);
  EXPECT_EQ(damage("8x-a40-nvlink-bridge", "0234567", 1), 0);
  EXPECT_EQ(damage("dgx-h100", kAll, 8), 0);
  EXPECT_EQ(damage("dgx-h100", kAll, 4), 4);   // an octet is gone
  EXPECT_EQ(damage("dgx-h100", kAll, 1), 10);  // and a quad
  EXPECT_EQ(damage("dgx-h100", "34567", 1), 0);
  EXPECT_EQ(damage("8x-rtx4090-2socket", kAll, 1), 0);
}

TEST(MachineTable, MissingNamesTheLinkThatIsInTheWay) {
  MachineTable table(Share(CapturedMachine("dgx1-v100")));
  const SetRules nvlink = {.require_nvlink = true};
  const auto missing = table.Missing(SetOf("0126"), 4, nvlink);
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->left, 0);
  EXPECT_EQ(missing->right, 6);
  EXPECT_EQ(missing->found, (Link{PathClass::kSys, 0}));
  // 0124, 0126 and 0246 lack two pairs, which is fewest; 0124 has most links: it lacks 14 and 24.
  EXPECT_EQ(table.Missing(SetOf("01246"), 4, nvlink)->left, 1);
  EXPECT_EQ(table.Missing(SetOf("01246"), 4, nvlink)->right, 4);
  EXPECT_EQ(table.Missing(SetOf("0123"), 4, nvlink), std::nullopt);
  EXPECT_EQ(table.Missing(SetOf("012"), 4, nvlink), std::nullopt);  // too few are free

  MachineTable without_nic(Share(CapturedMachine("8x-rtx4090-2socket")));
  const auto alone = without_nic.Missing(SetOf("56"), 1, {.nic_floor = PathClass::kPxb});
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->left, 5);
  EXPECT_EQ(alone->right, 5);
}

TEST(MachineTable, RankedGoesFromTheBestDown) {
  MachineTable table(Share(CapturedMachine("dgx1-v100")));
  const GpuSet all = table.machine().all();
  std::vector<std::string> sets;
  for (const SetChoice& choice : table.Ranked(all, 4, {}, 4)) sets.push_back(Digits(choice.set));
  EXPECT_THAT(sets, ElementsAre("0123", "4567", "0347", "1256"));
  EXPECT_EQ(table.Ranked(all, 4, {}, 1000).size(), 70U);
  EXPECT_EQ(table.Ranked(all, 4, {.require_nvlink = true}, 1000).size(), 2U);
  EXPECT_THAT(table.Ranked(all, 4, {}, 0), IsEmpty());
}

TEST(MachineTable, TheSameQuestionHasTheSameAnswer) {
  MachineTable table(Share(CapturedMachine("dgx2-v100")));
  const SetChoice first = *table.Best(SetOf("12345679bcdef"), 5, {});
  // More questions than are remembered.
  for (uint64_t bits = 1; bits < 6000; ++bits) {
    static_cast<void>(table.Best(GpuSet::Of(bits), 1, {}));
  }
  const SetChoice again = *table.Best(SetOf("12345679bcdef"), 5, {});
  EXPECT_EQ(first.set, again.set);
  EXPECT_EQ(first.quality, again.quality);
  EXPECT_EQ(first.damage, again.damage);
}

TEST(MachineTable, BeyondSixteenGpusFindsWholeGroupsAndSaysThatItIsNotExact) {
  MachineTable pairs(Share(test::BridgedPairs(20)));
  GpuSet free = pairs.machine().all();
  free.Remove(6);
  EXPECT_EQ(Digits(pairs.Best(free, 1, {})->set), "7");
  EXPECT_EQ(pairs.Best(free, 4, {})->quality.links, 24);
  EXPECT_EQ(pairs.Best(free, 4, {})->quality.numa_nodes, 1);
  EXPECT_FALSE(pairs.Best(free, 4, {})->exact);
  EXPECT_EQ(pairs.Best(free, 3, {.require_nvlink = true}), std::nullopt);
  const auto missing = pairs.Missing(free, 3, {.require_nvlink = true});
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->found.nvlinks, 0);

  MachineTable switched(Share(test::Switched(20, 20)));
  EXPECT_EQ(Digits(switched.Best(free, 7, {})->set), "0123457");
  EXPECT_TRUE(switched.Best(free, 7, {})->exact);
}

TEST(MachineTables, InterchangeableMachinesShareOneTable) {
  MachineTables tables;
  Machine renamed = CapturedMachine("8x-h100-nvl-spaces");
  const auto first = tables.Of(Share(CapturedMachine("8x-h100-nvl")));
  EXPECT_EQ(tables.Of(Share(std::move(renamed))), first);
  EXPECT_NE(tables.Of(Share(CapturedMachine("8x-a40-nvlink-bridge"))), first);
  EXPECT_NE(tables.Of(Share(CapturedMachine("hgx1-v100-alt-numbering"))),
            tables.Of(Share(CapturedMachine("dgx1-v100-numa"))));
}

}  // namespace THIS_FILE
}  // namespace tranche
