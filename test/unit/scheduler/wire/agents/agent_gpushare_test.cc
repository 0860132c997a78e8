// gpushare's five keys. Source: request-dialects section 7.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/agents/agent_cases.h"

namespace tranche::wire {
namespace THIS_FILE {

PodRequest OneApp() { return Asking(RequestStyle::kGpushare, {App("main")}, {1}); }

TEST(Gpushare, WritesCardAmountsAndTimeInThePluginsUnit) {
  struct Row {
    int64_t unit, mib;
    std::string_view pod, card;
  };
  for (const Row& row : {
           Row{1024, 8192, "8", "16"},     // GiB, the plugin's default
           Row{1, 2000, "2000", "16384"},  // --memory-unit=MiB
           Row{1024, 8193, "9", "16"},     // never less than was given
       }) {
    AgentCall call = CallOf(AgentKind::kGpushare);
    call.memory_unit = Mebibytes::Of(row.unit);
    const Texts texts =
        AgentAnnotations(call, OneApp(), Exact({{"main", {Share(3, "", 0, row.mib)}}}));
    EXPECT_EQ(texts, (Texts{{"ALIYUN_COM_GPU_MEM_IDX", "3"},
                            {"ALIYUN_COM_GPU_MEM_POD", std::string(row.pod)},
                            {"ALIYUN_COM_GPU_MEM_DEV", std::string(row.card)},
                            {"ALIYUN_COM_GPU_MEM_ASSIGNED", "false"},
                            {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "1767323045000000007"}}));
    EXPECT_EQ(Read(texts, OneApp()), "main: 3 - 0m 0Mi");
    EXPECT_EQ(TextOf(texts).Progress(OneApp()), AgentProgress::kWaiting);
  }
}

// Its own extender gives one card to all containers of a pod.
TEST(Gpushare, ReadsOneCardForEveryContainerThatAsked) {
  const PodRequest request =
      Asking(RequestStyle::kGpushare, {App("a"), App("plain"), App("b")}, {1, 0, 1});
  EXPECT_EQ(Read({{"ALIYUN_COM_GPU_MEM_IDX", "2"}, {"ALIYUN_COM_GPU_MEM_POD", "8"}}, request),
            "a: 2 - 0m 0Mi; b: 2 - 0m 0Mi");
}

TEST(Gpushare, NamesTheCardThatIsNone) {
  for (const std::string_view text : {"", "-1", "64", "0,1", "9223372036854775808", "1 "}) {
    EXPECT_EQ(Read({{"ALIYUN_COM_GPU_MEM_IDX", std::string(text)}}, OneApp()),
              fmt::format("expected a card from 0 to 63, found {}, in ALIYUN_COM_GPU_MEM_IDX",
                          Quoted(text)));
  }
}

TEST(Gpushare, IsServedWhenAssigned) {
  const auto progress = [](std::string_view assigned) {
    return TextOf({{"ALIYUN_COM_GPU_MEM_ASSIGNED", std::string(assigned)}}).Progress(OneApp());
  };
  EXPECT_EQ(progress("false"), AgentProgress::kWaiting);
  EXPECT_EQ(progress("true"), AgentProgress::kServed);
  EXPECT_EQ(progress("perhaps"), AgentProgress::kUnknown);
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
