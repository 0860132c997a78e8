// Koordinator's device list. Source: request-dialects section 12.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/agents/agent_cases.h"

namespace tranche::wire {
namespace THIS_FILE {

constexpr std::string_view kAllocated = "scheduling.koordinator.sh/device-allocated";

PodRequest OneAppOf(int64_t count) {
  PodRequest request = Asking(RequestStyle::kKoordinator, {App("main")}, {count});
  request.containers[0].plugin_count = 0;  // it has no device plugin
  return request;
}

Texts Write(const PodRequest& request, const Allocation& allocation) {
  return AgentAnnotations(CallOf(AgentKind::kKoordinator), request, allocation);
}

std::string Entry(int minor, std::string_view id, int core, std::string_view memory, int ratio) {
  return fmt::format(
      R"({{"minor":{},"id":"{}","resources":{{"koordinator.sh/gpu-core":"{}",)"
      R"("koordinator.sh/gpu-memory":"{}","koordinator.sh/gpu-memory-ratio":"{}"}}}})",
      minor, id, core, memory, ratio);
}

TEST(Koordinator, AlwaysFillsInAllThreeResources) {
  struct Row {
    int64_t milli, mib;
    int core;
    std::string_view memory;
    int ratio;
  };
  for (const Row& row : {
           Row{500, 8192, 50, "8Gi", 50}, Row{1000, 16'384, 100, "16Gi", 100},
           Row{0, 4000, 0, "4000Mi", 24},  // memory alone; floor of 24.4
           Row{5, 0, 1, "0", 0},           // cores alone; never "no limit"
       }) {
    const Allocation allocation = Exact({{"main", {Share(1, "GPU-b", row.milli, row.mib)}}});
    const Texts texts = Write(OneAppOf(1), allocation);
    EXPECT_EQ(texts,
              (Texts{{std::string(kAllocated),
                      "{\"gpu\":[" + Entry(1, "GPU-b", row.core, row.memory, row.ratio) + "]}"}}));
    EXPECT_EQ(Read(texts, OneAppOf(1)),
              fmt::format("main: 1 GPU-b {}m {}Mi", row.core * 10, row.mib));
  }
}

TEST(Koordinator, ListsEachCardOnceAndLeavesTheIdOutWhereItIsUnknown) {
  const PodRequest request = Asking(RequestStyle::kKoordinator, {App("a"), App("b")}, {1, 1});
  EXPECT_EQ(
      Write(request,
            Exact({{"a", {Share(0, "GPU-a", 300, 4096)}}, {"b", {Share(0, "GPU-a", 200, 4096)}}})),
      (Texts{{std::string(kAllocated), "{\"gpu\":[" + Entry(0, "GPU-a", 50, "8Gi", 50) + "]}"}}));
  const Texts two = Write(request, Exact({{"a", {Share(3, "", 300, 0)}}, {"b", {Bare(2)}}}));
  EXPECT_TRUE(two.at(std::string(kAllocated)).starts_with(R"({"gpu":[{"minor":2,"resources")"));
  EXPECT_EQ(Read(two, request), "a: 2 - 0m 0Mi; b: 3 - 300m 0Mi");
}

// Init containers run before the others and alone, but beside the sidecars started before them.
TEST(Koordinator, CountsWhatThePodTakesAtOnce) {
  const PodRequest request =
      Asking(RequestStyle::kKoordinator, {Init("warm"), Sidecar("log"), Init("copy"), App("a")},
             {1, 1, 1, 1});
  const auto core = [&](int64_t warm, int64_t log, int64_t copy, int64_t app) {
    const Allocation allocation = Exact({{"warm", {Share(0, "G", warm, 0)}},
                                         {"log", {Share(0, "G", log, 0)}},
                                         {"copy", {Share(0, "G", copy, 0)}},
                                         {"a", {Share(0, "G", app, 0)}}});
    return Write(request, allocation).at(std::string(kAllocated));
  };
  EXPECT_EQ(core(100, 100, 100, 500), "{\"gpu\":[" + Entry(0, "G", 60, "0", 0) + "]}");
  EXPECT_EQ(core(800, 100, 100, 500), "{\"gpu\":[" + Entry(0, "G", 80, "0", 0) + "]}");
  EXPECT_EQ(core(800, 100, 750, 500), "{\"gpu\":[" + Entry(0, "G", 85, "0", 0) + "]}");
}

TEST(Koordinator, SaysNothingOfMigInstances) {
  Device slice = Share(0, "GPU-a", 140, 4864);
  slice.mig = MigDevice{"1g.5gb", 0, 1};
  EXPECT_TRUE(Write(OneAppOf(1), Exact({{"main", {slice}}})).empty());
}

TEST(Koordinator, ReadsWhatItsOwnSchedulerWrites) {
  struct Row {
    std::string_view text;
    std::string_view devices;
  };
  for (const Row& row : {
           Row{R"({"gpu":[{"minor":0,"id":"GPU-a","resources":{"koordinator.sh/gpu-core":"50",)"
               R"("koordinator.sh/gpu-memory":"8589934592",)"
               R"("koordinator.sh/gpu-memory-ratio":"50"}}]})",
               "main: 0 GPU-a 500m 8192Mi"},
           Row{R"({"gpu":[{"minor":1,"resources":{"koordinator.sh/gpu-core":100}}],)"
               R"("rdma":[{"minor":7}]})",
               "main: 1 - 1000m 0Mi"},
           Row{R"({"gpu":[{"minor":2}]})", "main: 2 - 0m 0Mi"},
           Row{R"({"rdma":[{"minor":7}]})", "nothing"},
           Row{R"({"gpu":[]})", "nothing"},
       }) {
    EXPECT_EQ(Read({{std::string(kAllocated), std::string(row.text)}}, OneAppOf(1)), row.devices);
  }
}

TEST(Koordinator, NamesWhatIsWrong) {
  struct Row {
    std::string_view text;
    std::string_view message;
  };
  for (const Row& row : {
           Row{"", "expected JSON, found nothing, in KEY"},
           Row{"[]", "expected object, found array, in KEY"},
           Row{R"({"gpu":{}})", "expected array, found object, in KEY.gpu"},
           Row{R"({"gpu":[0]})", "expected object, found number 0, in device 0 of KEY"},
           Row{R"({"gpu":[{}]})", "expected a minor, found none, in device 0 of KEY"},
           Row{R"({"gpu":[{"minor":64}]})",
               "expected whole number from 0 to 63, found number 64, in device 0 of KEY.minor"},
           Row{R"({"gpu":[{"minor":0},{"minor":0}]})",
               "expected different minors, found 0, in device 1 of KEY"},
           Row{R"({"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"101"}}]})",
               "expected whole number from 0 to 100, found text \"101\", in "
               "koordinator.sh/gpu-core of device 0 of KEY"},
           Row{R"({"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-memory":"-1Gi"}}]})",
               "expected whole number from 0 to 2251799812636672, found text \"-1Gi\", in "
               "koordinator.sh/gpu-memory of device 0 of KEY"},
           Row{R"({"gpu":[{"minor":0},{"minor":1}]})",
               "expected 1 devices as asked for, found 2, in KEY"},
       }) {
    std::string message(row.message);
    message.replace(message.find("KEY"), 3, kAllocated);
    EXPECT_EQ(Read({{std::string(kAllocated), std::string(row.text)}}, OneAppOf(1)), message);
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
