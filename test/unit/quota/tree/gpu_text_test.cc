#include "quota/tree/gpu_text.h"

#include "gtest/gtest.h"
#include "quota/tree/charge.h"

namespace tranche {
namespace THIS_FILE {

constexpr int64_t kMilli = kQuantaPerGpu / 1000;

TEST(GpuTextTest, WhatIsUsedIsRoundedUpAndWhatCanBeHadDown) {
  const struct {
    Limit limit;
    const char* up;
    const char* down;
  } kRows[] = {
      {0, "0", "0"},
      {12 * kQuantaPerGpu, "12", "12"},
      {7500 * kMilli, "7.5", "7.5"},
      {50 * kMilli, "0.05", "0.05"},
      // A seventh, and a quantum beside a whole one.
      {kQuantaPerGpu / 7, "0.143", "0.142"},
      {kQuantaPerGpu + 1, "1.001", "1"},
      {kQuantaPerGpu - 1, "1", "0.999"},
      // Less than nothing: more is in use than there is.
      {-2 * kQuantaPerGpu, "-2", "-2"},
      {-500 * kMilli, "-0.5", "-0.5"},
      {-kQuantaPerGpu / 7, "-0.142", "-0.143"},
      {{}, "unlimited", "unlimited"},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(GpusRoundedUp(row.limit), row.up);
    EXPECT_EQ(GpusRoundedDown(row.limit), row.down);
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
