// HAMi's and 4pd's device lists on pods. Source: request-dialects sections 4.3, 4.4, 5.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/agents/agent_cases.h"

namespace tranche::wire {
namespace THIS_FILE {

constexpr std::string_view kRecord = "hami.io/vgpu-devices-allocated";

PodRequest TwoApps() { return Asking(RequestStyle::kHami, {App("a"), App("b")}, {1, 1}); }
PodRequest InitAndApps() {
  return Asking(RequestStyle::kHami, {Init("warm"), Sidecar("log"), App("a"), App("b")},
                {0, 1, 0, 2});
}

std::string Record(const PodRequest& request, const Allocation& allocation, int minor) {
  return AgentAnnotations(CallOf(AgentKind::kHami, minor), request, allocation)
      .at(std::string(kRecord));
}

std::string ReadRecord(std::string_view text, const PodRequest& request) {
  return Read({{std::string(kRecord), std::string(text)}}, request);
}

TEST(Hami, WritesTheKeysTheAgentReads) {
  const Allocation two_on_one_card =
      Exact({{"a", {Share(0, "GPU-0fc3", 0, 3000)}}, {"b", {Share(0, "GPU-0fc3", 0, 5000)}}});
  const std::string list = "GPU-0fc3,NVIDIA,3000,0:;GPU-0fc3,NVIDIA,5000,0:;";
  for (const int minor : {4, 7, 8, 9, 10}) {
    EXPECT_EQ(AgentAnnotations(CallOf(AgentKind::kHami, minor), TwoApps(), two_on_one_card),
              (Texts{{"hami.io/vgpu-node", "n1"},
                     {"hami.io/vgpu-time", "1767323045"},
                     {"hami.io/vgpu-devices-to-allocate", list},
                     {"hami.io/vgpu-devices-allocated", list},
                     {"hami.io/bind-phase", "allocating"},
                     {"hami.io/bind-time", "1767323045"}}));
  }
}

TEST(Hami, GivesInitContainersSlotsFromMinorNineOn) {
  const Allocation on_last =
      Exact({{"b", {Share(0, "GPU-a", 300, 8000), Share(1, "GPU-b", 300, 8000)}}});
  const std::string devices = "GPU-a,NVIDIA,8000,30:GPU-b,NVIDIA,8000,30:;";
  EXPECT_EQ(Record(InitAndApps(), on_last, 4), ";" + devices);
  EXPECT_EQ(Record(InitAndApps(), on_last, 8), ";" + devices);
  EXPECT_EQ(Record(InitAndApps(), on_last, 9), ";;;" + devices);
  EXPECT_EQ(Record(InitAndApps(), on_last, 10), ";;;" + devices);
  const Allocation on_sidecar = Exact({{"log", {Share(0, "GPU-a", 1000, 9)}}});
  EXPECT_EQ(Record(InitAndApps(), on_sidecar, 9), ";GPU-a,NVIDIA,9,100:;;;");
}

TEST(Hami, RoundsCoresDownButNeverToNoLimit) {
  struct Row {
    int64_t milli;
    std::string_view cores;
  };
  for (const Row& row :
       {Row{0, "0"}, Row{1, "1"}, Row{9, "1"}, Row{125, "12"}, Row{999, "99"}, Row{1000, "100"}}) {
    const Allocation allocation = Exact({{"a", {Share(0, "G", row.milli, 1)}}});
    EXPECT_EQ(Record(TwoApps(), allocation, 10), fmt::format("G,NVIDIA,1,{}:;;", row.cores));
  }
}

TEST(Hami, WritesMigInstancesAsJsonFromMinorTenOn) {
  Device slice = Share(0, "GPU-a", 140, 9728);
  slice.mig = MigDevice{"1g.10gb", 0, 1};
  Device other = slice;
  other.mig = MigDevice{"1g.10gb", 6, 1};
  const Allocation allocation = Exact({{"b", {slice, other}}});
  const std::string key = "hami.io/vgpu-mig-allocations";
  const Texts texts = AgentAnnotations(CallOf(AgentKind::kHami, 10), InitAndApps(), allocation);
  EXPECT_EQ(texts.at(key),
            R"([{"containerIndex":3,"deviceIndex":0,"gpuUUID":"GPU-a","profile":"1g.10gb",)"
            R"("placement":{"start":0,"size":1}},)"
            R"({"containerIndex":3,"deviceIndex":1,"gpuUUID":"GPU-a","profile":"1g.10gb",)"
            R"("placement":{"start":6,"size":1}}])");
  EXPECT_EQ(Read(texts, InitAndApps()),
            "b: 0 GPU-a 140m 9728Mi 1g.10gb@0+1, 0 GPU-a 140m 9728Mi 1g.10gb@6+1");
  EXPECT_EQ(AgentAnnotations(CallOf(AgentKind::kHami, 9), InitAndApps(), allocation).count(key),
            0U);
}

TEST(Hami, ReadsBackWhatABindingSays) {
  const Allocation written = Exact({{"a", {Share(0, "GPU-a", 300, 8000), Share(0, "GPU-b", 0, 1)}},
                                    {"b", {Share(0, "GPU-a", 1000, 0)}}});
  for (const PodRequest& request : {TwoApps(), InitAndApps()}) {
    for (const int minor : {4, 8, 9, 10}) {
      const Texts texts = AgentAnnotations(CallOf(AgentKind::kHami, minor), request, written);
      const absl::StatusOr<std::optional<Allocation>> read =
          TextOf(texts).Devices(request, NodeName("n1"));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(*read, written) << minor;
    }
  }
}

TEST(Hami, TellsSlotsOfInitContainersByTheLength) {
  struct Row {
    std::string_view text;
    std::string_view holder;
  };
  for (const Row& row : {
           Row{"GPU-a,NVIDIA,1,1:;;", "a"},  // app containers only
           Row{";GPU-a,NVIDIA,1,1:;", "b"},
           Row{"GPU-a,NVIDIA,1,1:;;;;", "warm"},  // init containers first
           Row{";GPU-a,NVIDIA,1,1:;;;", "log"},
           Row{";;GPU-a,NVIDIA,1,1:;;", "a"},
       }) {
    EXPECT_EQ(ReadRecord(row.text, InitAndApps()), fmt::format("{}: 0 GPU-a 10m 1Mi", row.holder))
        << row.text;
  }
  EXPECT_EQ(ReadRecord(";;", TwoApps()), "nothing");
}

TEST(Hami, NamesContainerDeviceAndValueThatAreWrong) {
  struct Row {
    std::string_view text;
    std::string_view message;
  };
  for (const Row& row : {
           Row{"", "expected the devices of 2 containers, found \"\", in KEY"},
           Row{";", "expected the devices of 2 containers, found \";\", in KEY"},
           Row{";;;", "expected the devices of 2 containers, found \";;;\", in KEY"},
           Row{";;x", "expected \";\" behind every container, found \"x\", in KEY"},
           Row{"GPU-a,NVIDIA,1,1;;",
               "expected \":\" behind every device, found \"GPU-a,NVIDIA,1,1\", in container "
               "\"a\" of KEY"},
           Row{"GPU-a,NVIDIA,1:;;",
               "expected uuid,NVIDIA,<memory>,<percent of cores>, found \"GPU-a,NVIDIA,1\", in "
               "device 0 of container \"a\" of KEY"},
           Row{";GPU-a,NVIDIA,1,1:GPU-b,DCU,1,1:;",
               "expected the device type NVIDIA, found \"DCU\", in device 1 of container \"b\" of "
               "KEY"},
           Row{",NVIDIA,1,1:;;",
               "expected a uuid, found \"\", in device 0 of container \"a\" of KEY"},
           Row{"GPU-a,NVIDIA,-1,1:;;",
               "expected memory in MiB, found \"-1\", in device 0 of container \"a\" of KEY"},
           Row{"GPU-a,NVIDIA,2147483648,1:;;",
               "expected memory in MiB, found \"2147483648\", in device 0 of container \"a\" of "
               "KEY"},
           Row{"GPU-a,NVIDIA,1,101:;;",
               "expected cores from 0 to 100 percent, found \"101\", in device 0 of container "
               "\"a\" of KEY"},
           Row{"GPU-a[0-1],NVIDIA,1,1:;;",
               "expected a uuid without MIG template, found \"GPU-a[0-1]\", in device 0 of "
               "container \"a\" of KEY"},
       }) {
    std::string message(row.message);
    message.replace(message.find("KEY"), 3, kRecord);
    EXPECT_EQ(ReadRecord(row.text, TwoApps()), message);
  }
  EXPECT_EQ(ReadRecord(";", InitAndApps()),
            "expected the devices of 2 or 4 containers, found \";\", in "
            "hami.io/vgpu-devices-allocated");
}

TEST(Hami, HoldsToLimits) {
  std::string text;
  for (int i = 0; i < 64; ++i) text += "GPU-a,NVIDIA,1,1:";
  EXPECT_TRUE(ReadRecord(text + ";;", TwoApps()).starts_with("a: 0 GPU-a"));
  EXPECT_TRUE(ReadRecord(text + "GPU-a,NVIDIA,1,1:;;", TwoApps())
                  .starts_with("expected at most 64 devices, found"));
  const std::string uuid(128, 'u');
  EXPECT_TRUE(ReadRecord(uuid + ",NVIDIA,1,1:;;", TwoApps()).starts_with("a: 0 u"));
  EXPECT_TRUE(ReadRecord(uuid + "u,NVIDIA,1,1:;;", TwoApps())
                  .starts_with("expected a uuid of at most 128 bytes"));
}

TEST(Hami, RefusesMigInstancesThatContradictTheList) {
  struct Row {
    std::string_view mig;
    std::string_view message;
  };
  const PodRequest request = Asking(RequestStyle::kHami, {App("a")}, {1});
  constexpr std::string_view kGood =
      R"("gpuUUID":"GPU-a","profile":"1g.10gb","placement":{"start":1,"size":1})";
  for (const Row& row : {
           Row{"{",
               "expected JSON, found a malformed structure (brackets, commas, colons or text "
               "behind the end), in hami.io/vgpu-mig-allocations"},
           Row{"{}", "expected an array, found \"{}\", in hami.io/vgpu-mig-allocations"},
           Row{"[1]", "expected object, found number 1, in hami.io/vgpu-mig-allocations"},
           Row{R"([{"containerIndex":1,"deviceIndex":0,)",
               "expected a device of hami.io/vgpu-devices-allocated, found containerIndex 1 "
               "deviceIndex 0, in hami.io/vgpu-mig-allocations"},
           Row{R"([{"containerIndex":0,"deviceIndex":1,)",
               "expected a device of hami.io/vgpu-devices-allocated, found containerIndex 0 "
               "deviceIndex 1, in hami.io/vgpu-mig-allocations"},
           Row{R"([{"deviceIndex":-1,)",
               "expected whole number from 0 to 10000, found number -1, in "
               "hami.io/vgpu-mig-allocations.deviceIndex"},
           Row{R"([{"gpuUUID":"GPU-b"}])",
               "expected gpuUUID \"GPU-a\", found \"GPU-b\", in device 0 of container \"a\" of "
               "hami.io/vgpu-mig-allocations"},
           Row{R"([{"gpuUUID":"GPU-a","profile":"big"}])",
               "expected a MIG profile, found \"big\", in device 0 of container \"a\" of "
               "hami.io/vgpu-mig-allocations"},
           Row{R"([{"gpuUUID":"GPU-a","profile":"1g.5gb"}])",
               "expected a placement, found none, in device 0 of container \"a\" of "
               "hami.io/vgpu-mig-allocations"},
       }) {
    std::string mig(row.mig);
    if (mig.ends_with(',')) mig += std::string(kGood) + "}]";
    EXPECT_EQ(
        Read({{std::string(kRecord), "GPU-a,NVIDIA,1,1:;"}, {"hami.io/vgpu-mig-allocations", mig}},
             request),
        row.message);
  }
}

TEST(Hami, TellsTheAgentsProgress) {
  const auto progress = [](std::string_view phase) {
    return TextOf({{"hami.io/bind-phase", std::string(phase)}}).Progress(TwoApps());
  };
  EXPECT_EQ(progress("allocating"), AgentProgress::kWaiting);
  EXPECT_EQ(progress("success"), AgentProgress::kServed);
  EXPECT_EQ(progress("failed"), AgentProgress::kFailed);
  EXPECT_EQ(progress("Allocating"), AgentProgress::kUnknown);
  EXPECT_EQ(AgentText().Progress(TwoApps()), AgentProgress::kUnknown);
}

TEST(FourPd, WritesHamisListsUnderItsOwnKeys) {
  const Allocation allocation = Exact({{"b", {Share(0, "GPU-a", 500, 4000)}}});
  const std::string list = ";GPU-a,NVIDIA,4000,50:;";
  const Texts texts = AgentAnnotations(CallOf(AgentKind::kFourPd), InitAndApps(), allocation);
  EXPECT_EQ(texts, (Texts{{"4pd.io/vgpu-node", "n1"},
                          {"4pd.io/vgpu-time", "1767323045"},
                          {"4pd.io/bind-phase", "allocating"},
                          {"4pd.io/bind-time", "1767323045"},
                          {"hami.sh/vgpu-devices-to-allocate", list},
                          {"hami.sh/vgpu-devices-allocated", list}}));
  EXPECT_EQ(Read(texts, InitAndApps()), "b: 0 GPU-a 500m 4000Mi");
  EXPECT_EQ(TextOf(texts).Progress(InitAndApps()), AgentProgress::kWaiting);
}

// Its own scheduler puts one mark behind all containers; the first versions join them.
TEST(FourPd, ReadsTheListsOfItsOwnScheduler) {
  const std::string run_together = "GPU-a,NVIDIA,1,1:GPU-b,NVIDIA,2,2:;";
  const std::string both = "a: 0 GPU-a 10m 1Mi; b: 0 GPU-b 20m 2Mi";
  EXPECT_EQ(Read({{"hami.sh/vgpu-devices-allocated", run_together}}, TwoApps()), both);
  EXPECT_EQ(Read({{"4pd.io/vgpu-ids-new", "GPU-a,NVIDIA,1,1:;GPU-b,NVIDIA,2,2:"}}, TwoApps()),
            both);
  EXPECT_EQ(Read({{"hami.sh/vgpu-devices-allocated",
                   "GPU-a,NVIDIA,1,1:GPU-b,NVIDIA,1,1:"
                   "GPU-c,NVIDIA,1,1:;"}},
                 TwoApps()),
            "expected 2 devices as asked for, found 3, in hami.sh/vgpu-devices-allocated");
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
