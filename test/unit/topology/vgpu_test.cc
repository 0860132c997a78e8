#include "topology/vgpu.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "topology/gpu_model.h"

namespace tranche {
namespace THIS_FILE {

TEST(VgpuTypeTest, ATypeNamesItsCardAndItsPartOfIt) {
  const struct {
    std::string_view product;
    std::string_view model;
    GpuPart part;
  } rows[] = {
      // Time-sliced: gigabytes of the card's.
      {"GRID-A100-10C", "a100-40gb", {10, 40, 10, 40}},
      {"GRID-A100-8C", "a100-40gb", {8, 40, 8, 40}},
      {"GRID A100D-20C", "a100-80gb", {20, 80, 20, 80}},
      {"GRID-A100DX-80C", "a100-80gb", {80, 80, 80, 80}},
      {"GRID-V100D-16C", "v100-32gb", {16, 32, 16, 32}},
      {"GRID-V100DX-2Q", "v100-32gb", {2, 32, 2, 32}},
      {"GRID-T4-8Q", "t4", {8, 16, 8, 16}},
      {"GRID-T4-2B-SHARED", "t4", {2, 16, 2, 16}},
      {"NVIDIA-A40-48Q", "a40", {48, 48, 48, 48}},
      {"NVIDIA-L40S-12C", "l40s", {12, 48, 12, 48}},
      {"NVIDIA-H100XM-40C", "h100", {40, 80, 40, 80}},
      {"NVIDIA-H100L-47C", "h100-nvl", {47, 94, 47, 94}},
      {"NVIDIA-H200X-35C", "h200", {35, 141, 35, 141}},
      {"NVIDIA-H20X-141C", "h20-141gb", {141, 141, 141, 141}},
      {"NVIDIA-GRID A100-10C", "a100-40gb", {10, 40, 10, 40}},
      // Backed by MIG: slices and memory units of the instance.
      {"GRID-A100-1-5C", "a100-40gb", {1, 7, 1, 8}},
      {"GRID-A100D-3-40C", "a100-80gb", {3, 7, 4, 8}},
      {"NVIDIA-H100XM-1-20C", "h100", {1, 7, 2, 8}},
      {"NVIDIA-H100XM-1-10CME", "h100", {1, 7, 1, 8}},
      {"NVIDIA-H100XM-7-80C", "h100", {7, 7, 8, 8}},
      {"NVIDIA-A30-2-12C", "a30", {2, 4, 2, 4}},
  };
  for (const auto& row : rows) {
    const std::optional<VgpuType> type = VgpuTypeOf(row.product);
    ASSERT_TRUE(type.has_value()) << row.product;
    EXPECT_EQ(type->part, row.part) << row.product;
    EXPECT_EQ(GpuModelName(type->card), row.model) << row.product;
    EXPECT_EQ(GpuModelName(row.product), row.model) << row.product;
    EXPECT_TRUE(IsCatalogueModel(row.product)) << row.product;
  }
}

TEST(VgpuTypeTest, WhatIsNoKnownTypeIsNone) {
  for (const std::string& product : {
           std::string(),
           std::string("NVIDIA-A100-SXM4-40GB"),
           std::string("Tesla-V100-SXM2-16GB"),
           std::string("NVIDIA-A10"),
           std::string("GRID-A100-80C"),    // more than the card has
           std::string("GRID-A100-0C"),     // nothing
           std::string("GRID-A100-010C"),   // no number as they write it
           std::string("GRID-A100-1000C"),  // likewise
           std::string("GRID-A100-10"),     // no series
           std::string("GRID-A100-10X"),    // no known one
           std::string("GRID-A100-10CME"),  // media engines are of instances
           std::string("GRID-A100-1-7C"),   // no profile of the board
           std::string("GRID-A100-8-40C"),  // likewise
           std::string("GRID-A40-1-48Q"),   // a card without MIG
           std::string("GRID-Z9-10C"),      // no known card
           std::string("GRID--10C"),
           std::string("-10C"),
           std::string("10C"),
           "GRID-" + std::string(100, 'A') + "-10C",
       }) {
    EXPECT_FALSE(VgpuTypeOf(product).has_value()) << product;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
