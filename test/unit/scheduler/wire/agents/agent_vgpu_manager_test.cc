// vgpu-manager's pre-allocated list. Source: request-dialects section 10.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/agents/agent_cases.h"

namespace tranche::wire {
namespace THIS_FILE {

constexpr std::string_view kPlanned = "nvidia.com/pre-allocated";

PodRequest MainAndSide() {
  return Asking(RequestStyle::kVgpuManager, {App("main"), App("side")}, {2, 1});
}

TEST(VgpuManager, WritesIndexUuidCoresAndMemory) {
  const Allocation allocation =
      Exact({{"main", {Share(0, "GPU-a", 200, 2048), Share(1, "GPU-b", 200, 2048)}},
             {"side", {Share(2, "GPU-c", 0, 4096)}}});
  const Texts texts = AgentAnnotations(CallOf(AgentKind::kVgpuManager), MainAndSide(), allocation);
  EXPECT_EQ(texts, (Texts{{"nvidia.com/predicate-node", "n1"},
                          {"nvidia.com/predicate-time", "1767323045000000007"},
                          {"nvidia.com/real-allocated", ""},
                          {"nvidia.com/pre-allocated",
                           "main[0_GPU-a_20_2048,1_GPU-b_20_2048];side[2_GPU-c_0_4096]"}}));
  const absl::StatusOr<std::optional<Allocation>> read =
      TextOf(texts).Devices(MainAndSide(), NodeName("n1"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, allocation);
}

TEST(VgpuManager, PutsInitContainersFirstAndOnlyThoseWithAClaim) {
  const PodRequest request =
      Asking(RequestStyle::kVgpuManager, {Init("warm"), Init("copy"), App("plain"), App("main")},
             {1, 0, 0, 1});
  const Texts texts = AgentAnnotations(
      CallOf(AgentKind::kVgpuManager), request,
      Exact({{"main", {Share(1, "GPU-b", 1000, 16'384)}}, {"warm", {Share(0, "GPU-a", 5, 1)}}}));
  EXPECT_EQ(texts.at(std::string(kPlanned)), "warm[0_GPU-a_1_1];main[1_GPU-b_100_16384]");
  EXPECT_EQ(Read(texts, request), "warm: 0 GPU-a 10m 1Mi; main: 1 GPU-b 1000m 16384Mi");
}

TEST(VgpuManager, NamesWhatIsWrong) {
  struct Row {
    std::string_view text;
    std::string_view message;
  };
  for (const Row& row : {
           Row{"main", "expected <container>[<devices>], found \"main\", in KEY"},
           Row{"[0_G_1_1]", "expected <container>[<devices>], found \"[0_G_1_1]\", in KEY"},
           Row{"main[0_G_1_1", "expected <container>[<devices>], found \"main[0_G_1_1\", in KEY"},
           Row{"main[]",
               "expected <index>_<uuid>_<percent of cores>_<MiB>, found \"\", in device 0 of "
               "container \"main\" of KEY"},
           Row{"main[0_G_1]",
               "expected <index>_<uuid>_<percent of cores>_<MiB>, found \"0_G_1\", in device 0 of "
               "container \"main\" of KEY"},
           Row{"main[0_G_1_1,x_G_1_1]",
               "expected a card from 0 to 63, found \"x\", in device 1 of container \"main\" of "
               "KEY"},
           Row{"main[0__1_1]",
               "expected a uuid, found \"\", in device 0 of container \"main\" of KEY"},
           Row{"main[0_G_101_1]",
               "expected cores from 0 to 100 percent, found \"101\", in device 0 of container "
               "\"main\" of KEY"},
           Row{"main[0_G_1_1_1]",
               "expected memory in MiB, found \"1_1\", in device 0 of container \"main\" of KEY"},
           Row{"other[0_G_1_1]", "expected the name of a container, found \"other\", in KEY"},
           Row{"main[0_G_1_1];main[0_G_1_1]",
               "expected every container once, found \"main\", in KEY"},
           Row{"main[0_G_1_1];", "expected <container>[<devices>], found \"\", in KEY"},
       }) {
    std::string message(row.message);
    message.replace(message.find("KEY"), 3, kPlanned);
    EXPECT_EQ(Read({{std::string(kPlanned), std::string(row.text)}}, MainAndSide()), message);
  }
  EXPECT_EQ(Read({{std::string(kPlanned), ""}}, MainAndSide()), "nothing");
  std::string many = "main[0_G_1_1";
  for (int i = 1; i < 65; ++i) many += ",0_G_1_1";
  EXPECT_TRUE(Read({{std::string(kPlanned), many + "]"}}, MainAndSide())
                  .starts_with("expected at most 64 devices, found"));
}

TEST(VgpuManager, TellsTheAgentsProgress) {
  struct Row {
    std::string_view phase, time;
    AgentProgress progress;
  };
  for (const Row& row : {
           Row{"", "1767323045000000007", AgentProgress::kWaiting},
           Row{"allocating", "1767323045000000007", AgentProgress::kWaiting},
           Row{"", "9223372036854775807", AgentProgress::kServed},
           Row{"succeed", "1767323045000000007", AgentProgress::kServed},
           Row{"failed", "1767323045000000007", AgentProgress::kFailed},
       }) {
    const Texts texts = {{"nvidia.com/assigned-phase", std::string(row.phase)},
                         {"nvidia.com/predicate-time", std::string(row.time)}};
    EXPECT_EQ(TextOf(texts).Progress(MainAndSide()), row.progress) << row.phase << " " << row.time;
  }
  EXPECT_EQ(TextOf({{std::string(kPlanned), ""}}).Progress(MainAndSide()), AgentProgress::kUnknown);
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
