// The annotation tranche.dev/allocation. Source: DESIGN section 9.
#include "scheduler/wire/records/allocation_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tranche::wire {
namespace THIS_FILE {

Device Card(int card, std::string_view uuid, int64_t milli, int64_t mib) {
  Device device;
  device.card = card;
  device.uuid = GpuUuid(uuid);
  device.milli = MilliGpu::Of(milli);
  device.memory = Mebibytes::Of(mib);
  return device;
}

Allocation Sample(Knowledge knowledge) {
  Device slice = Card(1, knowledge == Knowledge::kCounts ? "" : "GPU-b", 142, 9728);
  slice.mig = MigDevice{"1g.10gb+me", 3, 1};
  Allocation allocation;
  allocation.epoch = 12;
  allocation.leaf = "team-a";
  allocation.knowledge = knowledge;
  allocation.containers = {
      {"main", {Card(0, knowledge == Knowledge::kCounts ? "" : "GPU-a", 500, 40537), slice}},
      {"side", {Card(63, "", 0, 0)}}};
  return allocation;
}

TEST(AllocationJson, WritesTheFormOfTheContract) {
  Allocation allocation = Sample(Knowledge::kExact);
  allocation.containers.pop_back();
  EXPECT_EQ(EncodeAllocation(allocation),
            R"({"v":1,"epoch":12,"leaf":"team-a","knowledge":"exact","containers":[{"name":"main",)"
            R"("devices":[{"index":0,"uuid":"GPU-a","milli":500,"mib":40537,"mig":null},)"
            R"({"index":1,"uuid":"GPU-b","milli":142,"mib":9728,)"
            R"("mig":{"profile":"1g.10gb+me","start":3,"size":1}}]}]})");
}

TEST(AllocationJson, NamesNoDeviceWhereOnlyCountsAreKnown) {
  Allocation allocation = Sample(Knowledge::kCounts);
  allocation.containers.erase(allocation.containers.begin());
  EXPECT_EQ(
      EncodeAllocation(allocation),
      R"({"v":1,"epoch":12,"leaf":"team-a","knowledge":"counts","containers":[{"name":"side",)"
      R"("devices":[{"index":null,"slot":63,"uuid":null,"milli":0,"mib":0,"mig":null}]}]})");
}

TEST(AllocationJson, ReadsBackWhatItWrote) {
  for (const Knowledge knowledge : {Knowledge::kExact, Knowledge::kPredicted, Knowledge::kCounts}) {
    const Allocation written = Sample(knowledge);
    const absl::StatusOr<Allocation> read = DecodeAllocation(EncodeAllocation(written));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, written);
  }
  Allocation odd;
  odd.leaf = "team.a-1";
  EXPECT_EQ(DecodeAllocation(EncodeAllocation(odd)).value(), odd);
}

TEST(AllocationJson, RefusesWhatItNeverWrites) {
  const auto with_device = [](std::string_view device) {
    return fmt::format(R"({{"v":1,"epoch":1,"leaf":"","knowledge":"exact","containers":)"
                       R"([{{"name":"main","devices":[{}]}}]}})",
                       device);
  };
  struct Row {
    std::string text;
    std::string_view part;
  };
  std::string many = R"({"index":0,"uuid":null,"milli":1,"mib":1})";
  for (int i = 0; i < 64; ++i) many += R"(,{"index":0,"uuid":null,"milli":1,"mib":1})";
  for (const Row& row : {
           Row{"", "expected JSON"},
           Row{"[]", "found array"},
           Row{R"({"v":2,"epoch":1})", "found number 2, in allocation.v"},
           Row{R"({"epoch":1})", "found nothing, in allocation.v"},
           Row{R"({"v":1,"epoch":-1})", "found number -1, in allocation.epoch"},
           Row{R"({"v":1,"epoch":2147483648})", "found number 2147483648, in allocation.epoch"},
           Row{R"({"v":1,"epoch":"1"})", "found text \"1\", in allocation.epoch"},
           Row{R"({"v":1,"epoch":1,"knowledge":"sure","containers":[]})", "found \"sure\""},
           Row{R"({"v":1,"epoch":1,"knowledge":"exact"})", "allocation.containers"},
           Row{R"({"v":1,"epoch":1,"knowledge":"exact","containers":[{"devices":[]}]})",
               "expected a name"},
           Row{with_device(R"({"index":64,"milli":1,"mib":1})"), "number 64"},
           Row{with_device(R"({"index":-1,"milli":1,"mib":1})"), "number -1"},
           Row{with_device(R"({"index":null,"milli":1,"mib":1})"), "found nothing"},
           Row{with_device(R"({"index":0,"milli":1001,"mib":1})"), "number 1001"},
           Row{with_device(R"({"index":0,"milli":-1,"mib":1})"), "number -1"},
           Row{with_device(R"({"index":0,"milli":0.5,"mib":1})"), "number 0.5"},
           Row{with_device(R"({"index":0,"milli":1,"mib":-1})"), "number -1"},
           Row{with_device(R"({"index":0,"milli":1,"mib":9223372036854775807})"), "main"},
           Row{with_device(R"({"index":0,"milli":1,"mib":1,"mig":{"start":0,"size":1}})"),
               "MIG profile"},
           Row{with_device(R"({"index":0,"milli":1,"mib":1,"mig":{"profile":"1g.5gb","start":99,)"
                           R"("size":1}})"),
               "number 99"},
           Row{with_device(R"({"index":0,"milli":1,"mib":1,"mig":7})"), "expected object"},
           Row{with_device(many), "expected at most 64 devices"},
       }) {
    const absl::StatusOr<Allocation> read = DecodeAllocation(row.text);
    ASSERT_FALSE(read.ok()) << row.text;
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(std::string(read.status().message()).find(row.part), std::string::npos)
        << read.status();
  }
}

TEST(AllocationJson, ALeafThatCouldBeNoneIsLeftOut) {
  for (const std::string leaf : {"\\u001b]0;owned\\u0007", "Team-A", "a b", "a/b"}) {
    const absl::StatusOr<Allocation> read = DecodeAllocation(fmt::format(
        R"({{"v":1,"epoch":1,"leaf":"{}","knowledge":"counts","containers":[]}})", leaf));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->leaf, "") << leaf;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
