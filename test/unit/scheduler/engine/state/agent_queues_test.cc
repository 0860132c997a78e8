#include "scheduler/engine/state/agent_queues.h"

#include <gtest/gtest.h>

#include <string>

namespace tranche {
namespace THIS_FILE {

constexpr Millis kPatience{300'000};
const NodeName kNode("n1");

Instant At(int64_t seconds) { return Instant(Millis(seconds * 1000)); }
PodUid Uid(const std::string& name) { return PodUid(name); }

// "a+ b-": a may go on, b need not.
std::string Turns(AgentQueues& queues) {
  std::string text;
  for (const AgentTurn& turn : queues.TakeTurns()) {
    text += (text.empty() ? "" : " ") + turn.uid.str() + (turn.granted ? "+" : "-");
  }
  return text;
}

TEST(AgentQueues, ServesPodsOfOneLineInTheOrderOfTheirBinds) {
  AgentQueues queues(kPatience);
  EXPECT_TRUE(queues.Enter(kNode, 0, Uid("a"), At(0)));
  EXPECT_FALSE(queues.Enter(kNode, 0, Uid("b"), At(0)));
  EXPECT_FALSE(queues.Enter(kNode, 0, Uid("c"), At(0)));
  EXPECT_EQ(queues.Ahead(Uid("a")), std::nullopt);
  EXPECT_EQ(queues.Ahead(Uid("b")), 1);
  EXPECT_EQ(queues.Ahead(Uid("c")), 2);
  EXPECT_EQ(Turns(queues), "");
  queues.Leave(Uid("a"), At(1));
  EXPECT_EQ(Turns(queues), "b+");
  EXPECT_EQ(queues.Ahead(Uid("c")), 1);
  queues.Leave(Uid("b"), At(2));
  queues.Leave(Uid("c"), At(3));
  EXPECT_EQ(Turns(queues), "c+");
  EXPECT_TRUE(queues.Known().empty());
  EXPECT_EQ(queues.Due(), std::nullopt);
}

TEST(AgentQueues, NodesAndSlotsDoNotWaitForEachOther) {
  AgentQueues queues(kPatience);
  EXPECT_TRUE(queues.Enter(kNode, 2, Uid("a"), At(0)));
  EXPECT_TRUE(queues.Enter(kNode, 4, Uid("b"), At(0)));
  EXPECT_TRUE(queues.Enter(NodeName("n2"), 2, Uid("c"), At(0)));
  EXPECT_FALSE(queues.Enter(kNode, 2, Uid("d"), At(0)));
  EXPECT_EQ(queues.serving(), 3);
  EXPECT_EQ(queues.waiting(), 1);
}

TEST(AgentQueues, AskingAgainKeepsThePlace) {
  AgentQueues queues(kPatience);
  queues.Enter(kNode, 0, Uid("a"), At(0));
  queues.Enter(kNode, 0, Uid("b"), At(0));
  queues.Enter(kNode, 0, Uid("c"), At(0));
  EXPECT_TRUE(queues.Enter(kNode, 0, Uid("a"), At(1)));
  EXPECT_FALSE(queues.Enter(kNode, 0, Uid("b"), At(1)));
  EXPECT_EQ(queues.Ahead(Uid("b")), 1);
}

TEST(AgentQueues, WhoLeavesTheLineIsToldSo) {
  AgentQueues queues(kPatience);
  queues.Enter(kNode, 0, Uid("a"), At(0));
  queues.Enter(kNode, 0, Uid("b"), At(0));
  queues.Enter(kNode, 0, Uid("c"), At(0));
  queues.Leave(Uid("b"), At(1));
  EXPECT_EQ(Turns(queues), "b-");
  queues.Leave(Uid("a"), At(1));
  EXPECT_EQ(Turns(queues), "c+");
}

TEST(AgentQueues, AnAgentThatDoesNotAnswerIsPassedOver) {
  AgentQueues queues(kPatience);
  queues.Enter(kNode, 0, Uid("a"), At(10));
  queues.Enter(kNode, 0, Uid("b"), At(20));
  EXPECT_EQ(queues.Due(), At(310));
  queues.Advance(At(309));
  EXPECT_EQ(Turns(queues), "");
  queues.Advance(At(310));
  EXPECT_EQ(Turns(queues), "b+");
  EXPECT_EQ(queues.passed_over(), 1);
  EXPECT_EQ(queues.Due(), At(610)) << "from its turn on, not from its bind";
}

TEST(AgentQueues, OldNewsOfAPodThatWasPassedOverBlockNobody) {
  AgentQueues queues(kPatience);
  queues.NoteServing(kNode, 0, Uid("old"), At(0), At(300));
  EXPECT_TRUE(queues.Enter(kNode, 0, Uid("a"), At(300)));
}

TEST(AgentQueues, PodsFoundAtStartAreServedBeforeNewOnes) {
  AgentQueues queues(kPatience);
  queues.NoteServing(kNode, 0, Uid("x"), At(5), At(10));
  queues.NoteServing(kNode, 0, Uid("y"), At(6), At(10));
  queues.NoteServing(kNode, 0, Uid("y"), At(6), At(11));
  EXPECT_FALSE(queues.Enter(kNode, 0, Uid("a"), At(12)));
  EXPECT_EQ(queues.Ahead(Uid("a")), 2);
  queues.Leave(Uid("x"), At(13));
  EXPECT_EQ(Turns(queues), "");
  queues.Leave(Uid("y"), At(14));
  EXPECT_EQ(Turns(queues), "a+");
}

TEST(AgentQueues, ANodeThatGoesSendsItsLineAway) {
  AgentQueues queues(kPatience);
  queues.Enter(kNode, 0, Uid("a"), At(0));
  queues.Enter(kNode, 0, Uid("b"), At(0));
  queues.Enter(kNode, 7, Uid("c"), At(0));
  queues.Enter(kNode, 7, Uid("d"), At(0));
  queues.Enter(NodeName("n2"), 0, Uid("e"), At(0));
  queues.Close(kNode);
  EXPECT_EQ(Turns(queues), "b- d-");
  EXPECT_EQ(queues.waiting(), 0);
  EXPECT_EQ(queues.serving(), 3) << "what was written stays until it is known how it ended";
  queues.Leave(Uid("a"), At(1));
  EXPECT_EQ(Turns(queues), "");
}

}  // namespace THIS_FILE
}  // namespace tranche
