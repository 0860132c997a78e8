#include "topology/machine/machine_draw.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "test/unit/topology/machine/captured.h"

namespace tranche {
namespace THIS_FILE {

using testing::HasSubstr;
using testing::Not;

TEST(MachineDrawTest, DrawsNodesNicsMatrixAndASentence) {
  EXPECT_EQ(DrawMachine(CapturedMachine("4x-a30-nvlink-bridge"), false),
            R"(NUMA node 0  CPUs 0-23,48-71
  GPU0 GPU1
NUMA node 1  CPUs 24-47,72-95
  GPU2  -- PXB  -- NIC0
  GPU3  -- PIX  -- NIC0

        0    1    2    3
GPU0    .  NV4  SYS  SYS
GPU1  NV4    .  SYS  SYS
GPU2  SYS  SYS    .  NV4
GPU3  SYS  SYS  NV4    .

2 NVLink pairs (NV4): 2 NUMA nodes, 1 fabric NIC
NVLink joins GPU0=GPU1 GPU2=GPU3
)");
}

TEST(MachineDrawTest, DrawsASingleGpu) {
  EXPECT_EQ(DrawMachine(CapturedMachine("1x-single-gpu"), false),
            "NUMA node 0  CPUs 0-15\n  GPU0\n\n1 GPU: 1 NUMA node\n");
}

TEST(MachineDrawTest, NicsThatAreNobodysAreListedApart) {
  const std::string dgx = DrawMachine(CapturedMachine("dgx-a100"), false);
  EXPECT_THAT(dgx, HasSubstr("NUMA node 3  CPUs 48-63,176-191\n"
                             "  GPU0 GPU1  -- PXB  -- mlx5_0 mlx5_1\nNUMA node 1"));
  EXPECT_THAT(dgx, HasSubstr("\nNICs for storage or management: mlx5_4 mlx5_5 mlx5_10 mlx5_11\n"));
  EXPECT_THAT(DrawMachine(CapturedMachine("gb200-nvl72-tray"), false),
              HasSubstr("\nNICs near no GPU: mlx5_0 mlx5_1"));
}

TEST(MachineDrawTest, UnknownNumaNodesAreSaid) {
  const std::string text = DrawMachine(CapturedMachine("dgx1-p100"), false);
  EXPECT_THAT(text, HasSubstr("NUMA node unknown\n  GPU0 GPU1 GPU2"));
  EXPECT_THAT(text, HasSubstr(": NUMA nodes unknown\n"));
}

TEST(MachineDrawTest, EightGpusFitInto100ColumnsAndEscapesComeOnlyWithColour) {
  for (const char* name : {"dgx1-v100-numa", "dgx-a100", "hgx-b200-gke-a4", "8x-h100-nvl",
                           "8x-pcie-asymmetric-6plus2", "dgx2-v100"}) {
    const Machine machine = CapturedMachine(name);
    std::istringstream lines(DrawMachine(machine, false));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
    EXPECT_THAT(DrawMachine(machine, false), Not(HasSubstr("\x1b")));
    EXPECT_THAT(DrawMachine(machine, true), HasSubstr("\x1b[2m  ")) << "PCIe is dim";
  }
  EXPECT_THAT(DrawMachine(CapturedMachine("dgx-a100"), true), HasSubstr("\x1b[1;32m NV12\x1b[0m"));
}

TEST(MachineDrawTest, ManyNicsAreBrokenIntoLines) {
  std::vector<MachineNic> nics;
  for (int nic = 0; nic < 20; ++nic) {
    nics.push_back({"mlx5_" + std::to_string(nic), true, {PathClass::kNode}});
  }
  const std::string text = DrawMachine(Machine({{"GPU0", {}, 0, ""}}, {Link{}}, nics), false);
  EXPECT_THAT(text, HasSubstr(" mlx5_10\n                   mlx5_11 mlx5_12"));
}

TEST(MachineDrawTest, MachinesAreDescribedByTheirLinks) {
  struct Row {
    const char* name;
    const char* text;
  };
  const Row rows[] = {
      {"1x-single-gpu", "1 GPU"},
      {"2x-k80-legacy-soc", "4 GPUs, PCIe only"},
      {"4x-a100-degraded-link", "2 NVLink pairs (NV10 to NV12)"},
      {"4x-a100-sxm-nv4", "4 GPUs, NVLink mesh, all to all (NV4)"},
      {"4x-mixed-bridge", "1 NVLink pair (NV12) and 2 GPUs without NVLink"},
      {"8x-h100-pcie-cross-numa-bridge", "4 NVLink pairs (NV12)"},
      {"dgx-a100", "8 GPUs, NVSwitch, all to all (NV12)"},
      {"dgx1-p100", "hybrid cube mesh of 8 GPUs (NV1)"},
      {"dgx1-v100", "hybrid cube mesh of 8 GPUs (NV1 to NV2)"},
      {"dgx2-v100", "16 GPUs, NVSwitch, all to all (NV6)"},
      {"hgx-h100-4gpu", "4 GPUs, NVLink mesh, all to all (NV6)"},
      {"hgx-h100-nvlink-down", "8 GPUs, PCIe only"},
      {"hgx1-v100-alt-numbering", "hybrid cube mesh of 8 GPUs (NV1 to NV2)"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(DescribeMachine(CapturedMachine(row.name)), row.text) << row.name;
  }
}

// GPUs without NUMA nodes; `links` row by row.
Machine Linked(int gpus, const std::vector<int>& links) {
  std::vector<Link> cells;
  for (const int nvlinks : links) cells.push_back({PathClass::kSys, static_cast<uint8_t>(nvlinks)});
  return {std::vector<MachineGpu>(static_cast<size_t>(gpus)), cells, {}};
}

TEST(MachineDrawTest, OddMachinesAreDescribedToo) {
  EXPECT_EQ(DescribeMachine(Linked(0, {})), "no GPU");
  EXPECT_EQ(DescribeMachine(Linked(2, {0, 4, 4, 0})), "1 NVLink pair (NV4)");
  EXPECT_EQ(DescribeMachine(Linked(3, {0, 1, 0, 1, 0, 1, 0, 1, 0})),
            "3 GPUs, 2 of 3 pairs with NVLink (NV1)");
  EXPECT_EQ(DescribeMachine(Linked(4, {0, 2, 2, 0, 2, 0, 2, 0, 2, 2, 0, 0, 0, 0, 0, 0})),
            "1 NVLink group of 3 (NV2) and 1 GPU without NVLink");
}

}  // namespace THIS_FILE
}  // namespace tranche
