// tkestack's cards by position of the container. Source: request-dialects section 8.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/agents/agent_cases.h"

namespace tranche::wire {
namespace THIS_FILE {

TEST(Tkestack, CountsAppContainersFromZero) {
  const PodRequest request = Asking(RequestStyle::kTkestack,
                                    {Init("warm"), App("plain"), App("a"), App("b")}, {0, 0, 1, 2});
  const Texts texts =
      AgentAnnotations(CallOf(AgentKind::kTkestack), request,
                       Exact({{"a", {Share(2, "", 300, 256)}},
                              {"b", {Share(0, "", 1000, 9), Share(1, "", 1000, 9)}}}));
  EXPECT_EQ(texts, (Texts{{"tencent.com/predicate-gpu-idx-1", "2"},
                          {"tencent.com/predicate-gpu-idx-2", "0,1"},
                          {"tencent.com/predicate-node", "n1"},
                          {"tencent.com/predicate-time", "1767323045000000007"},
                          {"tencent.com/gpu-assigned", "false"}}));
  EXPECT_EQ(Read(texts, request), "a: 2 - 0m 0Mi; b: 0 - 0m 0Mi, 1 - 0m 0Mi");
  EXPECT_EQ(TextOf(texts).Progress(request), AgentProgress::kWaiting);
  EXPECT_EQ(TextOf({{"tencent.com/gpu-assigned", "true"}}).Progress(request),
            AgentProgress::kServed);
}

TEST(Tkestack, NamesWhatIsWrong) {
  const PodRequest request = Asking(RequestStyle::kTkestack, {App("a"), App("b")}, {1, 1});
  struct Row {
    std::string_view key, text;
    std::string_view message;
  };
  for (const Row& row : {
           Row{"tencent.com/predicate-gpu-idx-2", "0",
               "expected the position of one of 2 containers, found \"2\", in "
               "tencent.com/predicate-gpu-idx-2"},
           Row{"tencent.com/predicate-gpu-idx-", "0",
               "expected the position of one of 2 containers, found \"\", in "
               "tencent.com/predicate-gpu-idx-"},
           Row{"tencent.com/predicate-gpu-idx-1", "GPU-a",
               "expected a card from 0 to 63, found \"GPU-a\", in "
               "tencent.com/predicate-gpu-idx-1"},
           Row{"tencent.com/predicate-gpu-idx-1", "0,1,0",
               "expected different cards, found \"0\", in tencent.com/predicate-gpu-idx-1"},
       }) {
    EXPECT_EQ(Read({{std::string(row.key), std::string(row.text)}}, request), row.message);
  }
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
