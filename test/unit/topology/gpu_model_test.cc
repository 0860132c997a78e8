#include "topology/gpu_model.h"

#include <string_view>

#include "gtest/gtest.h"

namespace tranche {
namespace THIS_FILE {

TEST(GpuModelTest, NamesTheModelOfAProductLabel) {
  const struct {
    std::string_view product;
    std::string_view model;
  } kCases[] = {
      {"NVIDIA-H100-80GB-HBM3", "h100"},
      {"NVIDIA-H100-PCIe", "h100"},
      {"NVIDIA-H100-NVL", "h100-nvl"},
      {"NVIDIA-H200", "h200"},
      {"NVIDIA-H20", "h20"},
      {"NVIDIA-H20-3e", "h20-141gb"},
      {"NVIDIA-GH200-480GB", "gh200-96gb"},
      {"NVIDIA-GH200-144G-HBM3e", "gh200-144gb"},
      {"NVIDIA-B200", "b200"},
      {"NVIDIA-GB200", "gb200"},
      {"NVIDIA-A100-SXM4-40GB", "a100-40gb"},
      {"NVIDIA-A100-80GB-PCIe", "a100-80gb"},
      {"A100-SXM4-80GB", "a100-80gb"},
      {"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "a100-40gb"},
      {"NVIDIA-A100-SXM4-40GB-MIG-INVALID", "a100-40gb"},
      {"NVIDIA-L40S", "l40s"},
      {"NVIDIA-L40", "l40"},
      {"NVIDIA-L4-SHARED", "l4"},
      {"NVIDIA-A10", "a10"},
      {"NVIDIA-A10G", "a10g"},
      {"Tesla-T4", "t4"},
      {"Tesla-V100-SXM2-16GB", "v100-16gb"},
      {"Tesla-V100-SXM3-32GB", "v100-32gb"},
      {"NVIDIA-Tesla V100-PCIE-32GB", "v100-32gb"},
      {"Tesla-P100-PCIE-16GB", "p100"},
      {"NVIDIA-RTX-A6000", "rtx-a6000"},
      {"NVIDIA-RTX-6000-Ada-Generation", "rtx-6000-ada"},
      {"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "rtx-pro-6000"},
      {"NVIDIA-GeForce-RTX-4090", "geforce-rtx-4090"},
      {"NVIDIA-Tesla-M60", "m60"},
      {"GPU-series-1", "gpu-series-1"},
      {"", "unknown"},
      {"NVIDIA-", "unknown"},
      {"-SHARED", "unknown"},
  };
  for (const auto& c : kCases) EXPECT_EQ(GpuModelName(c.product), c.model) << c.product;
}

TEST(GpuModelTest, BaseProductDropsWhatSharingAndMigAppend) {
  const struct {
    std::string_view product;
    std::string_view base;
  } kCases[] = {
      {"NVIDIA-L4", "NVIDIA-L4"},
      {"NVIDIA-L4-SHARED", "NVIDIA-L4"},
      {"NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "NVIDIA-H100-80GB-HBM3"},
      {"NVIDIA-H100-80GB-HBM3-MIG-1g.10gb-SHARED", "NVIDIA-H100-80GB-HBM3"},
      {"NVIDIA-H100-80GB-HBM3-MIG-INVALID", "NVIDIA-H100-80GB-HBM3"},
      {"SHARED", "SHARED"},
      {"", ""},
  };
  for (const auto& c : kCases) EXPECT_EQ(BaseProduct(c.product), c.base) << c.product;
}

TEST(GpuModelTest, CatalogueMemoryIsKnownOrZero) {
  const struct {
    std::string_view product;
    int64_t mib;
  } kCases[] = {
      {"NVIDIA-H100-80GB-HBM3", 81559},
      {"NVIDIA-H200", 143771},
      {"NVIDIA-H20", 97871},
      {"NVIDIA-L40S-SHARED", 46068},
      {"NVIDIA-L4", 23034},
      {"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", 40536},
      {"Tesla-V100-SXM2-16GB", 16160},
      {"Tesla-T4", 15109},
      {"NVIDIA-A100", 0},  // of which memory?
      {"NVIDIA-GeForce-RTX-4090", 0},
      {"", 0},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(CatalogueMemory(c.product), Mebibytes::Of(c.mib)) << c.product;
  }
}

TEST(GpuModelTest, APatternMatchesWholeWordsOfTheLabelOrTheModel) {
  const struct {
    std::string_view pattern;
    std::string_view product;
    bool matches;
  } kCases[] = {
      {"h100", "NVIDIA-H100-80GB-HBM3", true},
      {"H100", "NVIDIA-H100-80GB-HBM3", true},
      {"a100", "NVIDIA-A100-SXM4-40GB", true},
      {"a100-40gb", "NVIDIA-A100-SXM4-40GB", true},
      {"a100-80gb", "NVIDIA-A100-SXM4-40GB", false},
      {"a100-80gb", "NVIDIA-A100-80GB-PCIe", true},
      {"v100-32gb", "Tesla-V100-SXM3-32GB", true},
      {"v100-32", "Tesla-V100-SXM3-32GB", false},
      {"l4", "NVIDIA-L40S", false},
      {"l40", "NVIDIA-L40S", false},
      {"a10", "NVIDIA-A100-SXM4-40GB", false},
      {"h200", "NVIDIA-GH200-480GB", false},
      {"Tesla V100", "Tesla-V100-SXM3-32GB", true},
      {"nvidia-a100-sxm4", "NVIDIA-A100-SXM4-40GB", true},
      {"h200", "NVIDIA-H100-80GB-HBM3", false},
      {"l40s", "NVIDIA-L40", false},
      {"h1000", "NVIDIA-H100-80GB-HBM3", false},
      {"", "NVIDIA-H100-80GB-HBM3", false},
      {"*l4*", "NVIDIA-L40S", true},
      {"*00-SXM*", "NVIDIA-A100-SXM4-40GB", true},
      {"*h100*", "NVIDIA-A100-SXM4-40GB", false},
      {"**", "NVIDIA-A100-SXM4-40GB", false},
      {"h100", "", false},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(MatchesModel(c.pattern, c.product), c.matches) << c.pattern << " in " << c.product;
  }
}

TEST(GpuModel, TheCatalogueKnowsModelsByAnyOfTheirNames) {
  for (const char* known : {"h100", "H100", "a100", "a100-40gb", "NVIDIA-H100-80GB-HBM3",
                            "Tesla-V100-SXM3-32GB", "NVIDIA-A10-SHARED", "*100*"}) {
    EXPECT_TRUE(IsCatalogueModel(known)) << known;
  }
  for (const char* unknown : {"", "h1000", "h10", "mi300x", "*mi300*"}) {
    EXPECT_FALSE(IsCatalogueModel(unknown)) << unknown;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
