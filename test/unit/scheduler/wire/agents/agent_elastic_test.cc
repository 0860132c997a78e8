// elastic-gpu's cards by container name. Source: request-dialects section 9.
#include <gtest/gtest.h>

#include "test/unit/scheduler/wire/agents/agent_cases.h"

namespace tranche::wire {
namespace THIS_FILE {

TEST(Elastic, WritesAKeyForEachContainer) {
  const PodRequest request =
      Asking(RequestStyle::kElastic, {App("a"), App("plain"), App("b")}, {1, 0, 2});
  const Texts texts =
      AgentAnnotations(CallOf(AgentKind::kElastic), request,
                       Exact({{"a", {Share(3, "", 500, 0)}},
                              {"plain", {}},
                              {"b", {Share(0, "", 1000, 9), Share(1, "", 1000, 9)}}}));
  EXPECT_EQ(texts, (Texts{{"elasticgpu.io/container-a", "3"},
                          {"elasticgpu.io/container-b", "0,1"},
                          {"elasticgpu.io/assumed", "true"}}));
  EXPECT_EQ(Read(texts, request), "a: 3 - 0m 0Mi; b: 0 - 0m 0Mi, 1 - 0m 0Mi");
  EXPECT_EQ(TextOf(texts).Progress(request), AgentProgress::kUnknown);
}

TEST(Elastic, NamesWhatIsWrong) {
  const PodRequest request = Asking(RequestStyle::kElastic, {App("a")}, {1});
  EXPECT_EQ(Read({{"elasticgpu.io/container-x", "0"}}, request),
            "expected the name of a container, found \"x\", in elasticgpu.io/container-x");
  EXPECT_EQ(Read({{"elasticgpu.io/container-a", "0;1"}}, request),
            "expected a card from 0 to 63, found \"0;1\", in elasticgpu.io/container-a");
  EXPECT_EQ(Read({{"elasticgpu.io/assumed", "true"}}, request), "nothing");
}

}  // namespace THIS_FILE
}  // namespace tranche::wire
