#include "topology/machine/machine_parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "test/fakes/places.h"
#include "test/unit/topology/machine/captured.h"

namespace tranche {
namespace THIS_FILE {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string NumaText(const Machine& machine) {
  std::string text;
  for (const MachineGpu& gpu : machine.gpus()) {
    text += gpu.numa ? std::to_string(*gpu.numa) : "-";
  }
  return text;
}

int TotalLinks(const Machine& machine) {
  int total = 0;
  for (int left = 0; left < machine.size(); ++left) {
    for (int right = 0; right < left; ++right) total += machine.link(left, right).nvlinks;
  }
  return total;
}

std::string NicText(const Machine& machine) {
  std::string text;
  for (const MachineNic& nic : machine.nics()) {
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", nic.name, nic.fabric ? "" : "!");
  }
  return text;
}

struct CaseRow {
  const char* name;
  int gpus;
  int links;  // NVLinks summed over pairs
  const char* numa;
  const char* nics;  // "!": no fabric NIC
};
constexpr CaseRow kCases[] = {
    {"1x-single-gpu", 1, 0, "0", ""},
    {"2x-k80-legacy-soc", 4, 0, "----", "mlx4_0"},
    {"4x-a100-degraded-link", 4, 22, "0000", ""},
    {"4x-a100-pcie-azure", 4, 24, "0123", ""},
    {"4x-a100-sxm-nv4", 4, 24, "0000", "NIC0 NIC1 NIC2 NIC3"},
    {"4x-a30-nvlink-bridge", 4, 8, "0011", "NIC0"},
    {"4x-a6000-nvlink-bridge", 4, 8, "0000", ""},
    {"4x-mixed-bridge", 4, 12, "0011", ""},
    {"4x-rtx8000-nvlink", 4, 4, "0011", ""},
    {"8x-a40-nvlink-bridge", 8, 16, "00001111", ""},
    {"8x-h100-nvl-spaces", 8, 48, "00001111", "mlx5_0 mlx5_1"},
    {"8x-h100-nvl", 8, 48, "00001111", "mlx5_0 mlx5_1"},
    {"8x-h100-pcie-cross-numa-bridge", 8, 48, "00011111", ""},
    {"8x-l40s-pcie", 8, 0, "00001111", "NIC0 NIC1"},
    {"8x-pcie-asymmetric-6plus2", 8, 0, "00000011", ""},
    {"8x-pcie-pix-pxb-tree", 8, 0, "--------", "mlx5_0"},
    {"8x-rtx4090-2socket", 8, 0, "00001111", ""},
    {"8x-rtx4090-nps4", 8, 0, "32107654", ""},
    {"dgx-a100", 8, 28 * 12, "33117755",
     "mlx5_0 mlx5_1 mlx5_2 mlx5_3 mlx5_4! mlx5_5! mlx5_6 mlx5_7 mlx5_8 mlx5_9 mlx5_10! mlx5_11!"},
    {"dgx-h100", 8, 28 * 18, "00001111", "NIC0 NIC1 NIC2 NIC3 NIC4 NIC5 NIC6 NIC7"},
    {"dgx-h200", 8, 28 * 18, "00001111", "NIC0 NIC1 NIC2 NIC3 NIC4 NIC5 NIC6 NIC7"},
    {"dgx1-p100", 8, 16, "--------", ""},
    {"dgx1-v100-numa", 8, 24, "00001111", "mlx5_2 mlx5_0 mlx5_3 mlx5_1"},
    {"dgx1-v100", 8, 24, "--------", "mlx5_2 mlx5_0 mlx5_3 mlx5_1"},
    {"dgx2-v100", 16, 120 * 6, "0000000011111111",
     "mlx5_0 mlx5_1 mlx5_2 mlx5_3 mlx5_4 mlx5_5 mlx5_6 mlx5_7 mlx5_8! mlx5_9!"},
    {"gb200-nvl72-tray", 4, 6 * 18, "0011",
     "mlx5_0 mlx5_1 mlx5_2 mlx5_3 mlx5_4 mlx5_5 mlx5_6 mlx5_7"},
    {"gb200-tray-no-gpu-numa", 4, 6 * 18, "0011", ""},
    {"hgx-b200-gke-a4", 8, 28 * 18, "00001111",
     "mlx5_0 mlx5_1 mlx5_2 mlx5_3 mlx5_4 mlx5_5 mlx5_6 mlx5_7"},
    {"hgx-h100-4gpu", 4, 6 * 6, "3175", "NIC0 NIC1 NIC2 NIC3"},
    {"hgx-h100-nvlink-down", 8, 0, "00001111", "NIC0 NIC1 NIC2 NIC3 NIC4 NIC5 NIC6 NIC7"},
    {"hgx-h20-8gpu-8nic", 8, 28 * 18, "00001111",
     "mlx5_1 mlx5_2 mlx5_3 mlx5_4 mlx5_5 mlx5_6 mlx5_7 mlx5_8"},
    {"hgx1-v100-alt-numbering", 8, 24, "00001111", ""},
};

TEST(MachineParseTest, ReadsEveryKeptMachineWithoutProblems) {
  for (const CaseRow& row : kCases) {
    SCOPED_TRACE(row.name);
    const Machine machine = CapturedMachine(row.name);
    EXPECT_EQ(machine.size(), row.gpus);
    EXPECT_EQ(TotalLinks(machine), row.links);
    EXPECT_EQ(NumaText(machine), row.numa);
    EXPECT_EQ(NicText(machine), row.nics);
  }
}

TEST(MachineParseTest, EveryKeptMachineHasARowAbove) {
  std::set<std::string> names;
  for (const CaseRow& row : kCases) names.insert(std::string(row.name) + ".txt");
  for (const auto& file :
       std::filesystem::directory_iterator(fakes::SourceFolder() + "/test/cases/topologies")) {
    const std::string name = file.path().filename().string();
    EXPECT_TRUE(names.contains(name) || name == "README.md") << name;
  }
}

TEST(MachineParseTest, BlanksAreAsGoodAsTabs) {
  EXPECT_EQ(CapturedMachine("8x-h100-nvl-spaces"), CapturedMachine("8x-h100-nvl"));
}

TEST(MachineParseTest, LinksAndPathsAreThoseOfTheCells) {
  const Machine machine = CapturedMachine("dgx1-v100-numa");
  EXPECT_EQ(machine.link(0, 3), (Link{PathClass::kNode, 2}));
  EXPECT_EQ(machine.link(0, 4), (Link{PathClass::kSys, 2})) << "other socket: the path is inferred";
  EXPECT_EQ(machine.link(0, 5), (Link{PathClass::kSys, 0}));
  EXPECT_EQ(machine.gpu(4).name, "GPU4");
  EXPECT_EQ(machine.gpu(4).cpus, "20-39,60-79");
  EXPECT_EQ(machine.nics()[1].name, "mlx5_0");
  EXPECT_EQ(machine.nics()[1].paths[0], PathClass::kPix);
  EXPECT_EQ(machine.nics()[1].paths[2], PathClass::kPhb);
  EXPECT_EQ(CapturedMachine("dgx1-v100").link(0, 3), (Link{PathClass::kSys, 2}))
      << "NUMA nodes unknown";
}

// Two GPUs and what differs from case to case.
std::string Two(std::string_view cell, std::string_view back) {
  return fmt::format(
      "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t{}\t0-7\t0\n"
      "GPU1\t{}\t X \t0-7\t0\n",
      cell, back);
}

TEST(MachineParseTest, OldNewAndOddWaysToPrintAreRead) {
  const std::string plain = Two("NV2", "NV2");
  std::string windows;
  for (const char c : plain) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const std::string texts[] = {
      windows,
      "$ nvidia-smi topo -m\n\n# a comment\n" + plain,
      plain + "\nLegend:\n\n  X    = Self\n  NV#  = bonded links\n  GPU0 = no row\n",
      "\t\x1b[4mGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
      "GPU0\t X \tNV2\t0-7\t0\t\tN/A\nGPU1\tNV2\t X \t0-7\t0\t\tN/A\n",
      "GPU0 GPU1 CPU Affinity NUMA Affinity\nGPU0 X NV2 0-7 0\n\nGPU1 NV2 X 0-7 0",
  };
  const Machine expected = ParseMachine(plain)->machine;
  for (const std::string& text : texts) {
    const auto parsed = ParseMachine(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status() << text;
    EXPECT_EQ(parsed->machine, expected) << text;
    EXPECT_THAT(parsed->problems, IsEmpty()) << text;
  }
}

TEST(MachineParseTest, SocIsSys) {
  EXPECT_EQ(ParseMachine(Two("SOC", "SYS"))->machine.link(0, 1).path, PathClass::kSys);
}

TEST(MachineParseTest, NicsMayStandAnywhereAndHaveNoRows) {
  const auto parsed = ParseMachine(
      "mlx5_1 GPU0 mlx5_0 GPU1 CPU Affinity\nmlx5_1 X PIX NODE SYS\nGPU0 PIX X PHB NV1 0\n"
      "GPU1 SYS NV1 PXB X 0\n\nNIC Legend:\n\n  mlx5_0: mlx5_bond_0\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(parsed->problems, IsEmpty());
  EXPECT_EQ(NicText(parsed->machine), "mlx5_1 mlx5_bond_0");
  EXPECT_THAT(parsed->machine.nics()[0].paths, ElementsAre(PathClass::kPix, PathClass::kSys));
  EXPECT_THAT(parsed->machine.nics()[1].paths, ElementsAre(PathClass::kPhb, PathClass::kPxb));
}

TEST(MachineParseTest, NumaNodesAreTheLowestOfAListOrUnknown) {
  const auto numa = [](std::string_view cell) {
    return ParseMachine(fmt::format("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
                                    "GPU0\t X \t{}\n",
                                    cell))
        ->machine.gpu(0);
  };
  EXPECT_EQ(numa("72-143\t19-25,1,27-33\t18").numa, 1);
  EXPECT_EQ(numa("N/A\tN/A\tN/A").numa, std::nullopt);
  EXPECT_EQ(numa("\t\t\tN/A").numa, std::nullopt) << "empty cells stay empty";
  EXPECT_EQ(numa("6,14,22,30\t3\tN/A").cpus, "6,14,22,30");
  EXPECT_EQ(numa("").cpus, "");
}

struct ProblemRow {
  const char* what;
  std::string text;
  const char* problem;
  Link link;
};

TEST(MachineParseTest, WhatCannotBeUnderstoodIsTakenForTheWorstAndSaid) {
  const Link sys{PathClass::kSys, 0};
  const ProblemRow rows[] = {
      {"another vendor's code", Two("XGMI", "NV2"),
       "line 2, row GPU0, column GPU1: expected NV1 to NV18, PIX, PXB, PHB, NODE or SYS, found "
       "\"XGMI\"; taken as SYS",
       sys},
      {"no links at all", Two("NV0", "NV0"), "found \"NV0\"", sys},
      {"more links than exist", Two("NV19", "NV19"), "found \"NV19\"", sys},
      {"X off the diagonal", Two("X", "X"), "found \"X\"", sys},
      {"directions differ",
       Two("NV12", "NV10"),
       "line 3, row GPU1, column GPU0: expected NV12 as in line 2, found NV10; the worse counts",
       {PathClass::kNode, 10}},
      {"a stray line",
       "\tGPU0\tGPU1\nGPU0\tX\tPIX\nwarning: slow\nGPU1\tPIX\tX\n",
       "line 3: expected the row of a device, found \"warning:\"; left out",
       {PathClass::kPix, 0}},
      {"odd NUMA node",
       "GPU0 GPU1 CPU Affinity NUMA Affinity\nGPU0 X PIX 0 zero\nGPU1 PIX X 0 0\n",
       "line 2, row GPU0, column NUMA Affinity: expected numbers or N/A, found \"zero\"",
       {PathClass::kPix, 0}},
      {"odd CPUs",
       "GPU0 GPU1 CPU Affinity\nGPU0 X PIX all\nGPU1 PIX X 0\n",
       "line 2, row GPU0, column CPU Affinity: expected CPU numbers, found \"all\"",
       {PathClass::kPix, 0}},
      {"NVLink to a NIC",
       "GPU0 GPU1 NIC0\nGPU0 X PIX NV4\nGPU1 PIX X SYS\n",
       "line 2, row GPU0, column NIC0: expected PIX, PXB, PHB, NODE or SYS, found \"NV4\"",
       {PathClass::kPix, 0}},
      {"a NIC's row against its column",
       "GPU0 GPU1 NIC0\nGPU0 X PIX PIX\nGPU1 PIX X SYS\n"
       "NIC0 PHB SYS X\n",
       "line 4, row NIC0, column GPU0: expected \"PIX\" as in line 2, found \"PHB\"; the worse "
       "counts",
       {PathClass::kPix, 0}},
  };
  for (const ProblemRow& row : rows) {
    SCOPED_TRACE(row.what);
    const auto parsed = ParseMachine(row.text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    ASSERT_FALSE(parsed->problems.empty());
    EXPECT_THAT(parsed->problems.front(), HasSubstr(row.problem));
    EXPECT_EQ(parsed->machine.link(0, 1), row.link);
  }
}

TEST(MachineParseTest, WhereANicsRowAndColumnDifferTheWorseCounts) {
  for (const auto& [cell, back] : {std::pair("PIX", "PHB"), {"PHB", "PIX"}}) {
    const auto parsed = ParseMachine(fmt::format("GPU0 NIC0\nGPU0 X {}\nNIC0 {} X\n", cell, back));
    EXPECT_THAT(parsed->machine.nics()[0].paths, ElementsAre(PathClass::kPhb));
  }
}

TEST(MachineParseTest, TextThatIsNoMatrixIsRefusedWithThePlace) {
  struct Row {
    std::string text;
    const char* error;
  };
  std::string header;
  for (int gpu = 0; gpu < 65; ++gpu) header += fmt::format("\tGPU{}", gpu);
  const Row rows[] = {
      {"", "line 0: expected a header row that names GPU0, found the end"},
      {"No devices were found\n", "line 1: expected a header row that names GPU0, found the end"},
      {"GPU0\t X \tNV1\n", "line 1: expected the header row with the names of the devices"},
      {"GPU0 GPU0\n", "line 1: expected every device once in the header, found \"GPU0\" again"},
      {"NIC0 CPU Affinity GPU0\n", "line 1: expected GPUs in the header row, found \"NIC0 CPU"},
      {header + "\n", "line 1: expected at most 64 GPUs, found 65"},
      {"GPU0 GPU1\nGPU0 X NV1\n",
       "line 2: expected a row for each of 2 GPUs, found the end and none of GPU1"},
      {"GPU0 GPU1\nGPU0 X\n", "line 2: row GPU0: expected 2 cells, found 1: none in column GPU1"},
      {"GPU0 GPU1\nGPU1 NV1 X\nGPU0 X NV1\n",
       "line 2: expected the row of GPU0, in the order of the header, found GPU1"},
      {"GPU0 GPU1\nGPU0 NV1 X\n", "line 2: row GPU0: expected X in column GPU0, found \"NV1\""},
      {"GPU0 GPU1\nGPU0 X NV1\nGPU0 X NV1\n",
       "line 3: expected one row of GPU0, found another after line 2"},
      {"GPU0 GPU1\nGPU0 X NV1\nGPU2 NV1 X\n",
       "line 3: expected rows of the header's devices, found \"GPU2\""},
      {std::string(300 * 1024, 'x'), "expected at most 262144 bytes of matrix, found 307200"},
  };
  for (const Row& row : rows) {
    const auto parsed = ParseMachine(row.text);
    ASSERT_FALSE(parsed.ok()) << row.error;
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(row.error));
  }
}

TEST(MachineParseTest, SixtyFourGpusAreRead) {
  std::string text;
  for (int gpu = 0; gpu < 64; ++gpu) text += fmt::format("\tGPU{}", gpu);
  for (int row = 0; row < 64; ++row) {
    text += fmt::format("\nGPU{}", row);
    for (int column = 0; column < 64; ++column) text += row == column ? "\t X " : "\tNV1";
  }
  const auto parsed = ParseMachine(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(TotalLinks(parsed->machine), 64 * 63 / 2);
}

TEST(MachineParseTest, ProblemsAreCountedRatherThanListedWithoutEnd) {
  std::string text;
  for (int gpu = 0; gpu < 16; ++gpu) text += fmt::format("\tGPU{}", gpu);
  for (int row = 0; row < 16; ++row) {
    text += fmt::format("\nGPU{}", row);
    for (int column = 0; column < 16; ++column) text += row == column ? "\tX" : "\tXGMI";
  }
  const auto parsed = ParseMachine(text);
  ASSERT_TRUE(parsed.ok());
  ASSERT_EQ(parsed->problems.size(), 33U);
  EXPECT_EQ(parsed->problems.back(), "and 208 more of the kind");
}

TEST(MachineParseTest, ErrorsDoNotRepeatWhatSteersATerminal) {
  const auto parsed =
      ParseMachine(Two("\x07"
                       "bell" +
                           std::string(100, 'y'),
                       "PIX"));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(parsed->problems.front(),
              HasSubstr("found \"?bell" + std::string(27, 'y') + "\"..."));
}

}  // namespace THIS_FILE
}  // namespace tranche
