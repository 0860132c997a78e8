// What a standby keeps, and what it tells when it begins to lead.
#include "scheduler/server/standby_buffer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/unit/scheduler/kube/recording_events.h"

namespace tranche {
namespace THIS_FILE {

using Lines = std::vector<std::string>;

PodFacts Pod(const std::string& name, const std::string& node = "", int64_t epoch = 0) {
  PodFacts pod;
  pod.request.uid = PodUid("uid-" + name);
  pod.request.name = {"team", name};
  pod.node = NodeName(node);
  if (epoch > 0) pod.allocation.emplace().epoch = epoch;
  return pod;
}

NodeFacts Node(const std::string& name) {
  NodeFacts node;
  node.name = NodeName(name);
  return node;
}

PolicyObject QuotaObject(const std::string& name, int64_t generation = 1) {
  PolicyObject object;
  object.kind = "GPUQuota";
  object.name = name;
  object.generation = generation;
  return object;
}

// Pods come first here and last there: devices need a node to be on.
TEST(StandbyBufferTest, ANodeThatCannotBeReadIsToldBesideWhatWasReadOfIt) {
  StandbyBuffer buffer;
  buffer.Receive(NodeChanged{Node("was-read")});
  for (const char* name : {"was-read", "never", "read-again", "gone"}) {
    buffer.Receive(NodeUnreadable{NodeName(name), "odd"});
  }
  buffer.Receive(NodeChanged{Node("read-again")});
  buffer.Receive(NodeGone{NodeName("gone")});
  kube::RecordingEvents told;
  buffer.Open(told);
  EXPECT_EQ(told.Lines(),
            (Lines{"settled", "node read-again", "node was-read", "node never unreadable: odd",
                   "node was-read unreadable: odd", "synced"}));
}

TEST(StandbyBufferTest, TellsTheLatestOfEverythingInTheOrderOfAStart) {
  StandbyBuffer buffer;
  buffer.Receive(PodChanged{Pod("a")});
  buffer.Receive(PodChanged{Pod("a", "n1")});
  buffer.Receive(PodChanged{Pod("b")});
  buffer.Receive(PodChanged{Pod("gone")});
  buffer.Receive(PodGone{PodUid("uid-gone")});
  buffer.Receive(NodeChanged{Node("n1")});
  buffer.Receive(NodeChanged{Node("n1")});
  buffer.Receive(NodeChanged{Node("n2")});
  buffer.Receive(NodeGone{NodeName("n2")});
  buffer.Receive(NodeSlicesChanged{NodeName("n1"), {SliceDevice{}}});
  buffer.Receive(NodeSlicesChanged{NodeName("n3"), {SliceDevice{}}});
  buffer.Receive(NodeSlicesChanged{NodeName("n3"), {}});
  buffer.Receive(NodeZonesChanged{NodeName("n1"), NodeZones{}});
  buffer.Receive(NodeZonesChanged{NodeName("n3"), NodeZones{}});
  buffer.Receive(NodeZonesChanged{NodeName("n3"), std::nullopt});
  buffer.Receive(NodeAgentChanged{NodeName("n1"), AgentRegister{}});
  buffer.Receive(NodeAgentChanged{NodeName("n3"), AgentRegister{}});
  buffer.Receive(NodeAgentChanged{NodeName("n3"), std::nullopt});
  buffer.Receive(GangSizeChanged{"team", "run", 4});
  buffer.Receive(GangSizeChanged{"team", "over", 4});
  buffer.Receive(GangSizeChanged{"team", "over", 0});
  buffer.Receive(ScaleUpTold{PodUid("uid-waits"), std::nullopt});
  buffer.Receive(ScaleUpTold{PodUid("uid-gone"), std::nullopt});
  buffer.Receive(PodGone{PodUid("uid-gone")});
  buffer.Receive(QuotaObject("q", 1));
  buffer.Receive(QuotaObject("q", 2));
  buffer.Receive(QuotaObject("old"));
  buffer.Receive(PolicyObjectGone{"GPUQuota", {"", "old"}});
  buffer.Receive(PolicyObjectsSettled());
  buffer.Receive(Synced());

  kube::RecordingEvents told;
  buffer.Open(told);
  const Lines lines = told.Lines();
  ASSERT_EQ(lines.size(), 11U) << testing::PrintToString(lines);
  EXPECT_EQ(lines[0], "GPUQuota q");
  EXPECT_EQ(lines[1], "settled");
  EXPECT_EQ(lines[2].substr(0, 8), "zones n1");
  EXPECT_EQ(lines[3].substr(0, 9), "slices n1");
  EXPECT_EQ(lines[4].substr(0, 8), "agent n1");
  EXPECT_EQ(lines[5], "gang team run 4");
  EXPECT_EQ(lines[6], "node n1");
  EXPECT_EQ(lines[7], "pod team/a uid-a on n1");
  EXPECT_EQ(lines[8], "pod team/b uid-b");
  EXPECT_EQ(lines[9], "node raised for uid-waits now");
  EXPECT_EQ(told.Position("synced"), 10) << "last";
  EXPECT_EQ(told.PolicyObjects().at(0).generation, 2);
}

TEST(StandbyBufferTest, PassesOnWhatComesLaterAndKeepsNothing) {
  StandbyBuffer buffer;
  buffer.Receive(PodChanged{Pod("a")});
  kube::RecordingEvents told;
  buffer.Open(told);
  const std::size_t before = told.Lines().size();
  buffer.Receive(NodeChanged{Node("n1")});
  buffer.Receive(PodChanged{Pod("a", "n1")});
  buffer.Receive(PodGone{PodUid("uid-a")});
  buffer.Receive(NodeGone{NodeName("n1")});
  buffer.Receive(QuotaObject("q"));
  buffer.Receive(PolicyObjectsSettled());
  buffer.Receive(PolicyObjectGone{"GPUQuota", {"", "q"}});
  const Lines lines = told.Lines();
  EXPECT_EQ(Lines(lines.begin() + static_cast<std::ptrdiff_t>(before), lines.end()),
            (Lines{"node n1", "pod team/a uid-a on n1", "pod gone uid-a", "node gone n1",
                   "GPUQuota q", "settled", "GPUQuota gone q"}));
}

TEST(StandbyBufferTest, KnowsTheHighestEpochOfBoundPods) {
  StandbyBuffer buffer;
  EXPECT_EQ(buffer.HighestEpoch(100), 0);
  buffer.Receive(PodChanged{Pod("a", "n1", 3)});
  buffer.Receive(PodChanged{Pod("b", "n1", 7)});
  buffer.Receive(PodChanged{Pod("forged", "", 90)});
  EXPECT_EQ(buffer.HighestEpoch(100), 7);
  EXPECT_EQ(buffer.HighestEpoch(6), 3) << "a larger one is nobody's";
  buffer.Receive(PodGone{PodUid("uid-b")});
  EXPECT_EQ(buffer.HighestEpoch(100), 3);
}

}  // namespace THIS_FILE
}  // namespace tranche
