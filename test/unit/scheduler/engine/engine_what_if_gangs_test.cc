// Questions about gangs that do not exist: whole or not at all.
#include "scheduler/engine/what_if.h"
#include "test/unit/scheduler/engine/engine_quota_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Quota;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class EngineWhatIfGangsTest : public EngineQuotaTest {
 protected:
  EngineWhatIfGangsTest() {
    Nodes({test::StockNode("n1", 8), test::StockNode("n2", 8)});
    Declare({.quotas = {Quota("team-a").Owns("a").Line("any", "16", "0")}});
  }
  static std::vector<PodRequest> Gang(const std::string& name, int pods, int size, int64_t gpus) {
    std::vector<PodRequest> members;
    for (int i = 0; i < pods; ++i) {
      members.push_back(Pod("a", fmt::format("{}-{}", name, i), gpus));
      members.back().gang = name;
      members.back().gang_size = size;
    }
    return members;
  }
  std::vector<std::string> Ask(std::vector<std::vector<PodRequest>> gangs, bool in_steps = false) {
    WhatIfCase question;
    for (std::vector<PodRequest>& gang : gangs)
      question.pods.insert(question.pods.end(), gang.begin(), gang.end());
    while (!question.done())
      engine_.WhatIf(
          question, [&] { return !in_steps; }, now_);
    std::vector<std::string> found;
    for (const WhatIfResult& result : question.results) {
      found.push_back(result.fits ? result.node.str() : std::string(Describe(result.reason).code));
      details_.push_back(result.detail);
    }
    return found;
  }
  std::vector<std::string> details_;
};

TEST_F(EngineWhatIfGangsTest, AGangFitsWholeOrNotAtAll) {
  EXPECT_THAT(Ask({Gang("g", 2, 2, 8)}), ElementsAre("n1", "n2"));
  EXPECT_THAT(Ask({Gang("g", 3, 3, 8)}),
              ElementsAre("GangNoRoom", "GangNoRoom", "WaitingForQuota"));
  EXPECT_THAT(details_[2], HasSubstr("expected room for 3 pods of gang g, found room for 2"));
  EXPECT_THAT(Ask({Gang("g", 3, 2, 8)}), ElementsAre("n1", "n2", "WaitingForQuota"))
      << "two are enough";
}

TEST_F(EngineWhatIfGangsTest, WhatAGangDidNotGetIsLeftForThoseAfterIt) {
  for (const bool in_steps : {false, true}) {
    SCOPED_TRACE(in_steps);
    EXPECT_THAT(Ask({Gang("g", 3, 3, 8), Gang("h", 2, 2, 8)}, in_steps),
                ElementsAre("GangNoRoom", "GangNoRoom", "WaitingForQuota", "n1", "n2"));
    EXPECT_THAT(engine_.Audit(), IsEmpty());
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
