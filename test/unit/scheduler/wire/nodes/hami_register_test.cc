// HAMi's device register on nodes. Source: request-dialects section 4.2.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scheduler/wire/nodes/agent_registers.h"

namespace tranche::wire {
namespace THIS_FILE {

TEST(AgentRegister, ReadsTheShortTextForm) {
  const absl::StatusOr<AgentRegister> found = ParseHamiRegister(
      "GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,true:"
      "GPU-1,5,16384,150,NVIDIA-Tesla V100-PCIE-16GB,1,false:");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->minor, 4);
  ASSERT_EQ(found->devices.size(), 2u);
  const AgentDevice& first = found->devices[0];
  EXPECT_EQ(first.uuid, GpuUuid("GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448"));
  EXPECT_EQ(first.index, 0);
  EXPECT_EQ(first.slots, 10);
  EXPECT_EQ(first.memory, Mebibytes::Of(32768));
  EXPECT_EQ(first.cores_percent, 100);
  EXPECT_EQ(first.type, "NVIDIA-Tesla V100-PCIE-32GB");
  EXPECT_EQ(first.numa, 0);
  EXPECT_EQ(first.mode, "hami-core");
  EXPECT_TRUE(first.healthy);
  EXPECT_EQ(found->devices[1].index, 1);
  EXPECT_EQ(found->devices[1].cores_percent, 150);
  EXPECT_FALSE(found->devices[1].healthy);
}

TEST(AgentRegister, ReadsTheLongTextFormInIndexOrder) {
  const absl::StatusOr<AgentRegister> found = ParseHamiRegister(
      "GPU-b,10,1,100,NVIDIA-T4,1,true,1,mig:GPU-a,10,1,100,NVIDIA-T4,0,true,0,hami-core:");
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->devices.size(), 2u);
  EXPECT_EQ(found->devices[0].uuid, GpuUuid("GPU-a"));
  EXPECT_EQ(found->devices[1].mode, "mig");
}

TEST(AgentRegister, ReadsJsonWhereZeroValuesAreLeftOut) {
  const absl::StatusOr<AgentRegister> found = ParseHamiRegister(
      R"([{"id":"GPU-a","count":10,"devmem":81920,"devcore":100,"type":"NVIDIA-A100","mode":"mig",)"
      R"("health":true},{"id":"GPU-b","index":1,"count":10,"devmem":81920,"devcore":100,)"
      R"("type":"NVIDIA-A100","numa":1}])");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->minor, 9);
  ASSERT_EQ(found->devices.size(), 2u);
  EXPECT_EQ(found->devices[0].index, 0);
  EXPECT_TRUE(found->devices[0].healthy);
  EXPECT_EQ(found->devices[0].mode, "mig");
  EXPECT_EQ(found->devices[1].numa, 1);
  EXPECT_EQ(found->devices[1].mode, "hami-core");
  EXPECT_FALSE(found->devices[1].healthy);
}

TEST(AgentRegister, MigProfilesMarkMinorTen) {
  const absl::StatusOr<AgentRegister> found = ParseHamiRegister(
      R"([{"id":"GPU-a","count":7,"devmem":40960,"devcore":100,"type":"NVIDIA-A100","mode":"mig",)"
      R"("health":true,"migProfiles":[{"name":"1g.5gb","memoryMB":4864,"core":15,"sliceCount":1,)"
      R"("placements":[{"start":6,"size":1},{"size":1}]}]}])");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->minor, 10);
  ASSERT_EQ(found->devices.at(0).mig_profiles.size(), 1u);
  const AgentMigProfile& profile = found->devices[0].mig_profiles[0];
  EXPECT_EQ(profile.name, "1g.5gb");
  EXPECT_EQ(profile.memory, Mebibytes::Of(4864));
  EXPECT_EQ(profile.cores_percent, 15);
  EXPECT_EQ(profile.placements, (std::vector<std::pair<int, int>>{{6, 1}, {0, 1}}));
}

TEST(AgentRegister, AnEmptyListIsANodeWithoutDevices) {
  EXPECT_TRUE(ParseHamiRegister("[]")->devices.empty());
  EXPECT_TRUE(ParseHamiRegister("")->devices.empty());
}

TEST(AgentRegister, NamesDeviceFieldAndValueThatAreWrong) {
  struct Row {
    std::string_view text;
    std::string_view message;
  };
  for (const Row& row : {
           Row{"GPU-a,10,1,100,T,0,true",
               "expected \":\" behind every device, found \"GPU-a,10,1,100,T,0,true\", behind "
               "device 0"},
           Row{"GPU-a,10,1,100,T,0:",
               "expected 7 or 9 fields, found \"GPU-a,10,1,100,T,0\", in the fields of device 0"},
           Row{"GPU-a,ten,1,100,T,0,true:",
               "expected whole number from 0 to 1000000, found \"ten\", in count of device 0"},
           Row{"GPU-a,1,1,100,T,0,true:GPU-b,1,-1,100,T,0,true:",
               "expected whole number from 0 to 2147483647, found \"-1\", in devmem of device 1"},
           Row{"GPU-a,1,1,100,T,0,yes:",
               "expected true or false, found \"yes\", in health of device 0"},
           Row{",1,1,100,T,0,true:", "expected text, found \"\", in uuid of device 0"},
           Row{"GPU-a,1,1,100,T,0,true,64,mig:",
               "expected whole number from 0 to 63, found \"64\", in index of device 0"},
           Row{"GPU-a,1,1,1,T,0,true,3,mps:GPU-b,1,1,1,T,0,true,3,mps:",
               "expected one device of index 3, found \"GPU-a\" and \"GPU-b\", in the register"},
           Row{"GPU-a,1,1,1,T,0,true:GPU-a,1,1,1,T,0,true:",
               "expected distinct uuids, found \"GPU-a\" twice, in the register"},
           Row{"[{}]", "expected a uuid, found none, in device 0.id"},
           Row{"[7]", "expected object, found number 7, in device 0"},
           Row{R"([{"id":"GPU-a","devmem":"1"}])",
               "expected whole number from 0 to 2147483647, found text \"1\", in device 0.devmem"},
           Row{R"([{"id":"GPU-a","count":-3}])",
               "expected whole number from 0 to 1000000, found number -3, in device 0.count"},
           Row{R"([{"id":"GPU-a","health":"true"}])",
               "expected true or false, found text \"true\", in device 0.health"},
           Row{R"([{"id":"GPU-a","migProfiles":[{"memoryMB":1}]}])",
               "expected a name, found none, in device 0.migProfiles"},
           Row{"[{\"id\":",
               "expected JSON, found a malformed structure (brackets, commas, colons or text "
               "behind the end)"},
       }) {
    const absl::StatusOr<AgentRegister> found = ParseHamiRegister(row.text);
    ASSERT_FALSE(found.ok()) << row.text;
    EXPECT_EQ(std::string(found.status().message()), row.message);
  }
}

TEST(AgentRegister, RefusesMoreDevicesThanAMachineHas) {
  std::string text;
  for (int i = 0; i < 65; ++i) text += fmt::format("GPU-{},1,1,1,T,0,true:", i);
  EXPECT_EQ(std::string(ParseHamiRegister(text).status().message()),
            "expected at most 64 devices, found more, in the register");
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
