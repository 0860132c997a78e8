#include "topology/machine/machine_catalog.h"

#include "gtest/gtest.h"
#include "test/unit/topology/machine/captured.h"

namespace tranche {
namespace THIS_FILE {

// Links and NUMA nodes, without NICs and what only a capture knows.
void ExpectLinksOf(const Machine& machine, const char* captured, bool with_numa) {
  const Machine expected = CapturedMachine(captured);
  ASSERT_EQ(machine.size(), expected.size());
  for (int left = 0; left < machine.size(); ++left) {
    if (with_numa) {
      EXPECT_EQ(machine.gpu(left).numa, expected.gpu(left).numa);
    }
    for (int right = 0; right < left; ++right) {
      EXPECT_EQ(machine.link(left, right).nvlinks, expected.link(left, right).nvlinks)
          << left << " " << right;
    }
  }
}

struct BoardRow {
  const char* product;
  const char* machine;
  int gpus;
  const char* captured;
  bool with_numa = false;
};

TEST(MachineCatalogTest, BoardsAreLinkedAsTheirCapturesShow) {
  const BoardRow rows[] = {
      {"Tesla-V100-SXM3-32GB", "", 16, "dgx2-v100"},
      {"Tesla-V100-SXM3-32GB", "NVIDIA-DGX-2", 16, "dgx2-v100", true},
      {"NVIDIA-A100-SXM4-40GB", "", 8, "dgx-a100"},
      {"NVIDIA-A100-SXM4-80GB", "DGXA100-920-23687-2530-000", 8, "dgx-a100", true},
      {"NVIDIA-A100-SXM4-80GB", "", 4, "4x-a100-sxm-nv4"},
      {"NVIDIA-H100-80GB-HBM3", "", 8, "dgx-h100"},
      {"NVIDIA-H100-80GB-HBM3", "", 4, "hgx-h100-4gpu"},
      {"NVIDIA-H200", "", 8, "dgx-h200"},
      {"NVIDIA-H200", "DGXH200", 8, "dgx-h200", true},
      {"NVIDIA-H20", "", 8, "hgx-h20-8gpu-8nic"},
      {"NVIDIA-B200", "Google-Compute-Engine", 8, "hgx-b200-gke-a4"},
      {"NVIDIA-GB200", "", 4, "gb200-nvl72-tray"},
      {"Tesla-V100-SXM2-16GB", "DGX-1-with-V100-16", 8, "dgx1-v100-numa", true},
      {"Tesla-P100-SXM2-16GB", "NVIDIA-DGX-1", 8, "dgx1-p100"},
      {"NVIDIA-L40S", "", 8, "8x-l40s-pcie"},
  };
  for (const BoardRow& row : rows) {
    SCOPED_TRACE(row.product);
    const auto machine = CatalogueMachine(row.product, row.machine, row.gpus);
    ASSERT_NE(machine, nullptr);
    ExpectLinksOf(*machine, row.captured, row.with_numa);
    EXPECT_EQ(CatalogueMachine(row.product, row.machine, row.gpus), machine) << "the same object";
  }
}

TEST(MachineCatalogTest, BoardsOfUnknownServersHaveNoNumaNodes) {
  const auto machine = CatalogueMachine("NVIDIA-A100-SXM4-40GB", "p4d.24xlarge", 8);
  EXPECT_EQ(machine->gpu(0).numa, std::nullopt);
  EXPECT_TRUE(machine->uniform());
}

TEST(MachineCatalogTest, CardsWithoutNvlinkHaveNoneInAnyNumber) {
  for (const char* product : {"Tesla-T4", "NVIDIA-L4", "NVIDIA-A10", "NVIDIA-A10G", "NVIDIA-L40"}) {
    for (const int gpus : {1, 4, 16}) {
      const auto machine = CatalogueMachine(product, "", gpus);
      ASSERT_NE(machine, nullptr) << product;
      EXPECT_EQ(machine->size(), gpus);
      EXPECT_TRUE(machine->uniform());
      if (gpus > 1) {
        EXPECT_EQ(machine->link(0, 1), Link{});
      }
    }
  }
}

TEST(MachineCatalogTest, WhatComesInSeveralWiringsIsNotInIt) {
  const BoardRow rows[] = {
      {"Tesla-V100-SXM2-16GB", "", 8, ""},  // cube meshes numbered in several ways
      {"Tesla-V100-SXM2-16GB", "HGX-1", 8, ""},
      {"Tesla-V100-PCIE-32GB", "DGX-1", 8, ""},
      {"NVIDIA-H100-PCIe", "", 8, ""},  // with bridges or without
      {"NVIDIA-H100-NVL", "", 8, ""},
      {"NVIDIA-H200-NVL", "", 8, ""},
      {"NVIDIA-A100-PCIE-40GB", "", 4, ""},
      {"NVIDIA-A100-80GB-PCIe", "", 4, ""},
      {"NVIDIA-A40", "", 8, ""},
      {"NVIDIA-RTX-A6000", "", 4, ""},
      {"NVIDIA-A30", "", 4, ""},
      {"NVIDIA-H100-80GB-HBM3", "", 6, ""},  // part of a board
      {"NVIDIA-GH200-480GB", "", 1, ""},
      {"NVIDIA-B200", "", 4, ""},
      {"NVIDIA-L40S", "", 17, ""},
      {"NVIDIA-L40S", "", 0, ""},
      {"", "DGX-1", 8, ""},
  };
  for (const BoardRow& row : rows) {
    EXPECT_EQ(CatalogueMachine(row.product, row.machine, row.gpus), nullptr)
        << row.product << " x " << row.gpus;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
