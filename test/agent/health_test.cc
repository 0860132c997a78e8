// What the driver tells of the health of GPUs closes them for new work.
#include <gmock/gmock.h>

#include "scheduler/agent/health_watch.h"
#include "test/agent/agent_node.h"

namespace tranche::agent {
namespace {

using ::testing::HasSubstr;

constexpr int kXid = 8;
constexpr int kEcc = 2;

TEST_F(AgentTest, ACriticalErrorClosesItsGpu) {
  config_.watch_health = true;
  StartAgent();
  Bind("one", {"GPU-a"});
  ASSERT_TRUE(kubelet_->Admit(Managed("one", 1)).ok());
  // A program's own fault, and a GPU that fell off the bus.
  node_->Tell({{{"uuid", "GPU-b"}, {"type", kXid}, {"data", 31}},
               {{"uuid", "GPU-a"}, {"type", kXid}, {"data", 79}},
               {{"uuid", "GPU-a"}, {"type", kEcc}}});
  EXPECT_TRUE(Await([&] {
    EXPECT_TRUE(agent_->Step(now_).ok());
    return kubelet_->Devices("nvidia.com/gpu") ==
           std::map<std::string, bool>{{"GPU-a", false}, {"GPU-b", true}, {"GPU-c", false}};
  }));
  EXPECT_EQ(Register(), "0:GPU-a false, 1:GPU-b true, 2:GPU-c false, ");
  EXPECT_THAT(Problem(), HasSubstr("GPU 0 (GPU-a): the driver reported XID 79"));
  // It stays closed when the driver answers for it, and nothing starts on it.
  now_ += config_.look_period;
  ASSERT_TRUE(agent_->Step(now_).ok());
  EXPECT_THAT(std::string(kubelet_->Start("uid-one", "main").message()), HasSubstr("XID 79"));
  Bind("two", {"GPU-a"});
  EXPECT_FALSE(kubelet_->Admit(Managed("two", 1)).ok());
}

TEST_F(AgentTest, MemoryThatWaitsToBeMendedClosesItsGpu) {
  StartAgent();
  nlohmann::json cards = Cards({"GPU-a", "GPU-b", "GPU-c"});
  cards["gpus"][0]["rows"] = "pending";
  cards["gpus"][1]["rows"] = "failed";
  node_->Change(cards);
  now_ += config_.look_period;
  ASSERT_TRUE(agent_->Step(now_).ok());
  EXPECT_EQ(Register(), "0:GPU-a false, 1:GPU-b false, 2:GPU-c false, ");
  EXPECT_THAT(Problem(), HasSubstr("GPU 0 (GPU-a): rows of its memory wait to be remapped"));
  EXPECT_THAT(Problem(), HasSubstr("GPU 1 (GPU-b): a row of its memory could not be remapped"));
}

TEST(HealthWatch, PassesOverWhatProgramsDoToThemselves) {
  for (const uint64_t xid : {13, 31, 43, 45, 68, 109}) EXPECT_TRUE(IsOfAProgram(xid)) << xid;
  for (const uint64_t xid : {48, 63, 64, 74, 79, 94, 95, 119}) {
    EXPECT_FALSE(IsOfAProgram(xid)) << xid;
  }
}

}  // namespace
}  // namespace tranche::agent
