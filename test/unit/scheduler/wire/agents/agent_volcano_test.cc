// Volcano's device lists on pods, new and old. Source: request-dialects section 6.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/agents/agent_cases.h"

namespace tranche::wire {
namespace THIS_FILE {

PodRequest TwoVolcanoApps() { return Asking(RequestStyle::kVolcano, {App("a"), App("b")}, {1, 1}); }

std::string ReadVolcanoRecord(std::string_view text, const PodRequest& request) {
  return Read({{"volcano.sh/vgpu-ids-new", std::string(text)}}, request);
}

TEST(Volcano, WritesTheKeysTheAgentReads) {
  const Allocation allocation =
      Exact({{"a", {Share(0, "GPU-a", 300, 4000)}}, {"b", {Share(1, "GPU-b", 0, 8000)}}});
  const std::string list = "GPU-a,NVIDIA,4000,30:;GPU-b,NVIDIA,8000,0:";
  const Texts texts = AgentAnnotations(CallOf(AgentKind::kVolcano), TwoVolcanoApps(), allocation);
  EXPECT_EQ(texts, (Texts{{"volcano.sh/vgpu-node", "n1"},
                          {"volcano.sh/vgpu-time", "1767323045"},
                          {"volcano.sh/vgpu-ids-new", list},
                          {"volcano.sh/devices-to-allocate", list},
                          {"volcano.sh/bind-phase", "allocating"},
                          {"volcano.sh/bind-time", "1767323045"}}));
  EXPECT_EQ(Read(texts, TwoVolcanoApps()), "a: 0 GPU-a 300m 4000Mi; b: 0 GPU-b 0m 8000Mi");
}

// The plugin multiplies what it reads by its factor.
TEST(Volcano, CountsMemoryInThePluginsFactor) {
  const PodRequest request = Asking(RequestStyle::kVolcano, {App("a")}, {1});
  struct Row {
    int64_t mib;
    std::string_view units;
  };
  for (const Row& row : {Row{4000, "400"}, Row{4005, "400"}, Row{3, "1"}, Row{0, "0"}}) {
    AgentCall call = CallOf(AgentKind::kVolcano);
    call.memory_unit = Mebibytes::Of(10);
    const Texts texts =
        AgentAnnotations(call, request, Exact({{"a", {Share(0, "GPU-a", 0, row.mib)}}}));
    EXPECT_EQ(texts.at("volcano.sh/vgpu-ids-new"), fmt::format("GPU-a,NVIDIA,{},0:", row.units));
  }
}

TEST(Volcano, HasSlotsForAppContainersOnlyAndNoMarkBehindTheLast) {
  const PodRequest request =
      Asking(RequestStyle::kVolcano, {Init("warm"), App("a"), App("b"), App("c")}, {0, 0, 2, 0});
  const Texts texts =
      AgentAnnotations(CallOf(AgentKind::kVolcano), request,
                       Exact({{"b", {Share(0, "GPU-a", 0, 1), Share(1, "GPU-b", 0, 2)}}}));
  EXPECT_EQ(texts.at("volcano.sh/vgpu-ids-new"), ";GPU-a,NVIDIA,1,0:GPU-b,NVIDIA,2,0:;");
  EXPECT_EQ(Read(texts, request), "b: 0 GPU-a 0m 1Mi, 0 GPU-b 0m 2Mi");
}

// Volcano's own scheduler leaves containers without a claim out of the list.
TEST(Volcano, ReadsListsOfTheContainersThatAsked) {
  const PodRequest request = Asking(RequestStyle::kVolcano, {App("a"), App("b")}, {0, 1});
  EXPECT_EQ(ReadVolcanoRecord("GPU-a,NVIDIA,1,1:", request), "b: 0 GPU-a 10m 1Mi");
  EXPECT_EQ(ReadVolcanoRecord(";GPU-a,NVIDIA,1,1:", request), "b: 0 GPU-a 10m 1Mi");
}

TEST(Volcano, NamesWhatIsWrong) {
  struct Row {
    std::string_view text;
    std::string_view message;
  };
  for (const Row& row : {
           Row{"GPU-a,NVIDIA,1,1:",
               "expected the devices of 2 containers, found \"GPU-a,NVIDIA,1,1:\", in "
               "volcano.sh/vgpu-ids-new"},
           Row{";;",
               "expected the devices of 2 containers, found \";;\", in "
               "volcano.sh/vgpu-ids-new"},
           Row{";GPU-a,NVIDIA,1,1",
               "expected \":\" behind every device, found \"GPU-a,NVIDIA,1,1\", in container "
               "\"b\" of volcano.sh/vgpu-ids-new"},
           Row{";GPU-0fc3[group2-3],NVIDIA,1,1:",
               "expected a uuid without MIG template, found \"GPU-0fc3[group2-3]\", in device 0 "
               "of container \"b\" of volcano.sh/vgpu-ids-new"},
       }) {
    EXPECT_EQ(ReadVolcanoRecord(row.text, TwoVolcanoApps()), row.message);
  }
}

TEST(Volcano, TellsTheAgentsProgress) {
  struct Row {
    std::string_view phase, time;
    AgentProgress progress;
  };
  constexpr std::string_view kDone = "18446744073709551615";
  for (const Row& row : {
           Row{"allocating", "1767323045", AgentProgress::kWaiting},
           Row{"success", "1767323045", AgentProgress::kServed},
           Row{"allocating", kDone, AgentProgress::kServed},
           Row{"success", kDone, AgentProgress::kServed},
           Row{"failed", kDone, AgentProgress::kFailed},
           Row{"", "1767323045", AgentProgress::kWaiting},  // the agent does not need the phase
       }) {
    const Texts texts = {{"volcano.sh/bind-phase", std::string(row.phase)},
                         {"volcano.sh/vgpu-time", std::string(row.time)}};
    EXPECT_EQ(TextOf(texts).Progress(TwoVolcanoApps()), row.progress)
        << row.phase << " " << row.time;
  }
}

TEST(VolcanoOld, WritesTheCardsOfThePodAndTheTime) {
  const PodRequest request = Asking(RequestStyle::kVolcanoOld, {App("a")}, {2});
  const Texts texts =
      AgentAnnotations(CallOf(AgentKind::kVolcanoOld), request,
                       Exact({{"a", {Share(1, "", 1000, 9), Share(0, "", 1000, 9)}}}));
  EXPECT_EQ(texts, (Texts{{"volcano.sh/gpu-index", "0,1"},
                          {"volcano.sh/predicate-time", "1767323045000000007"}}));
  EXPECT_EQ(Read(texts, request), "a: 0 - 0m 0Mi, 1 - 0m 0Mi");
  EXPECT_EQ(TextOf(texts).Progress(request), AgentProgress::kWaiting);
  EXPECT_EQ(TextOf({{"volcano.sh/gpu-assigned", "true"}}).Progress(request),
            AgentProgress::kServed);
}

TEST(VolcanoOld, NamesWhatIsWrong) {
  const PodRequest request = Asking(RequestStyle::kVolcanoOld, {App("a")}, {1});
  struct Row {
    std::string_view text;
    std::string_view message;
  };
  for (const Row& row : {
           Row{"", "expected a card from 0 to 63, found \"\", in volcano.sh/gpu-index"},
           Row{"64", "expected a card from 0 to 63, found \"64\", in volcano.sh/gpu-index"},
           Row{"-1", "expected a card from 0 to 63, found \"-1\", in volcano.sh/gpu-index"},
           Row{"0,", "expected a card from 0 to 63, found \"\", in volcano.sh/gpu-index"},
           Row{"1,1", "expected different cards, found \"1\", in volcano.sh/gpu-index"},
           Row{"0,1", "expected 1 devices as asked for, found 2, in volcano.sh/gpu-index"},
       }) {
    EXPECT_EQ(Read({{"volcano.sh/gpu-index", std::string(row.text)}}, request), row.message);
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
