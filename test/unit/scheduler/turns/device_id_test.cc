#include "scheduler/turns/device_id.h"

#include <gtest/gtest.h>

namespace tranche::agent {
namespace THIS_FILE {

TEST(DeviceId, IsReadAsItIsWritten) {
  const DeviceId whole{GpuUuid("GPU-1f3c"), std::nullopt};
  EXPECT_EQ(whole.str(), "GPU-1f3c");
  EXPECT_EQ(ParseDeviceId("GPU-1f3c"), whole);
  const DeviceId place{GpuUuid("GPU-1f3c"), MigDevice{"1g.10gb+me", 6, 1}};
  EXPECT_EQ(place.str(), "GPU-1f3c/1g.10gb+me@6+1");
  EXPECT_EQ(ParseDeviceId(place.str()), place);
  const DeviceId slot{GpuUuid("GPU-1f3c"), std::nullopt, 11};
  EXPECT_EQ(slot.str(), "GPU-1f3c/slot-11");
  EXPECT_EQ(ParseDeviceId(slot.str()), slot);
  for (const char* text :
       {"GPU-1f3c/slot-", "GPU-1f3c/slot-x", "GPU-1f3c/slot-1x", "GPU-1f3c/", "GPU-1f3c/1g@",
        "GPU-1f3c/1g@6", "GPU-1f3c/1g@6+", "GPU-1f3c/1g@6+1x", "GPU-1f3c/1g@x+1"}) {
    EXPECT_EQ(ParseDeviceId(text), whole) << text << " stands for all of the GPU";
  }
}

TEST(DeviceId, OverlapsWhatHasAUnitInCommon) {
  const struct {
    const char* one;
    const char* other;
    bool overlap;
  } table[] = {
      {"a", "a", true},
      {"a", "b", false},
      {"a", "a/1g@3+1", true},
      {"a/1g@3+1", "a/1g@4+1", false},
      {"a/3g@0+4", "a/1g@3+1", true},
      {"a/3g@0+4", "a/3g@4+4", false},
      {"a/3g@0+4", "b/3g@0+4", false},
      {"a/slot-1", "a/slot-1", true},
      {"a/slot-1", "a/slot-2", false},
      {"a/slot-1", "b/slot-1", false},
      {"a/slot-1", "a", true},
  };
  for (const auto& row : table) {
    EXPECT_EQ(Overlap(ParseDeviceId(row.one), ParseDeviceId(row.other)), row.overlap)
        << row.one << " " << row.other;
    EXPECT_EQ(Overlap(ParseDeviceId(row.other), ParseDeviceId(row.one)), row.overlap)
        << row.other << " " << row.one;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::agent
