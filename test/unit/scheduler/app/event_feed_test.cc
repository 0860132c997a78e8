// What a standby keeps, and what it tells when it begins to lead.
#include "scheduler/app/event_feed.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/unit/scheduler/kube/recording_events.h"

namespace tranche::app {
namespace {

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

SteeringObject Quota(const std::string& name, int64_t generation = 1) {
  SteeringObject object;
  object.kind = "GPUQuota";
  object.name = name;
  object.generation = generation;
  return object;
}

// Pods come first here and last there: devices need a node to be on.
TEST(EventFeedTest, TellsTheLatestOfEverythingInTheOrderOfAStart) {
  EventFeed feed;
  feed.PodChanged(Pod("a"));
  feed.PodChanged(Pod("a", "n1"));
  feed.PodChanged(Pod("b"));
  feed.PodChanged(Pod("gone"));
  feed.PodGone(PodUid("uid-gone"));
  feed.NodeChanged(Node("n1"));
  feed.NodeChanged(Node("n1"));
  feed.NodeChanged(Node("n2"));
  feed.NodeGone(NodeName("n2"));
  feed.NodeSlicesChanged(NodeName("n1"), {SliceDevice{}});
  feed.NodeSlicesChanged(NodeName("n3"), {SliceDevice{}});
  feed.NodeSlicesChanged(NodeName("n3"), {});
  feed.NodeZonesChanged(NodeName("n1"), NodeZones{});
  feed.NodeZonesChanged(NodeName("n3"), NodeZones{});
  feed.NodeZonesChanged(NodeName("n3"), std::nullopt);
  feed.NodeAgentChanged(NodeName("n1"), AgentRegister{});
  feed.NodeAgentChanged(NodeName("n3"), AgentRegister{});
  feed.NodeAgentChanged(NodeName("n3"), std::nullopt);
  feed.GangSizeChanged("team", "run", 4);
  feed.GangSizeChanged("team", "over", 4);
  feed.GangSizeChanged("team", "over", 0);
  feed.SteeringChanged(Quota("q", 1));
  feed.SteeringChanged(Quota("q", 2));
  feed.SteeringChanged(Quota("old"));
  feed.SteeringGone("GPUQuota", "", "old");
  feed.SteeringSettled();
  feed.Synced();

  kube::RecordingEvents told;
  feed.Open(told);
  const Lines lines = told.Lines();
  ASSERT_EQ(lines.size(), 10U) << testing::PrintToString(lines);
  EXPECT_EQ(lines[0], "GPUQuota q");
  EXPECT_EQ(lines[1], "settled");
  EXPECT_EQ(lines[2].substr(0, 8), "zones n1");
  EXPECT_EQ(lines[3].substr(0, 9), "slices n1");
  EXPECT_EQ(lines[4].substr(0, 8), "agent n1");
  EXPECT_EQ(lines[5], "gang team run 4");
  EXPECT_EQ(lines[6], "node n1");
  EXPECT_EQ(lines[7], "pod team/a uid-a on n1");
  EXPECT_EQ(lines[8], "pod team/b uid-b");
  EXPECT_EQ(told.Position("synced"), 9) << "last";
  EXPECT_EQ(told.Steering().at(0).generation, 2);
}

TEST(EventFeedTest, PassesOnWhatComesLaterAndKeepsNothing) {
  EventFeed feed;
  feed.PodChanged(Pod("a"));
  kube::RecordingEvents told;
  feed.Open(told);
  const std::size_t before = told.Lines().size();
  feed.NodeChanged(Node("n1"));
  feed.PodChanged(Pod("a", "n1"));
  feed.PodGone(PodUid("uid-a"));
  feed.NodeGone(NodeName("n1"));
  feed.SteeringChanged(Quota("q"));
  feed.SteeringSettled();
  feed.SteeringGone("GPUQuota", "", "q");
  const Lines lines = told.Lines();
  EXPECT_EQ(Lines(lines.begin() + static_cast<std::ptrdiff_t>(before), lines.end()),
            (Lines{"node n1", "pod team/a uid-a on n1", "pod gone uid-a", "node gone n1",
                   "GPUQuota q", "settled", "GPUQuota gone q"}));
}

TEST(EventFeedTest, KnowsTheHighestEpochOfBoundPods) {
  EventFeed feed;
  EXPECT_EQ(feed.HighestEpoch(), 0);
  feed.PodChanged(Pod("a", "n1", 3));
  feed.PodChanged(Pod("b", "n1", 7));
  feed.PodChanged(Pod("forged", "", 90));
  EXPECT_EQ(feed.HighestEpoch(), 7);
  feed.PodGone(PodUid("uid-b"));
  EXPECT_EQ(feed.HighestEpoch(), 3);
}

}  // namespace
}  // namespace tranche::app
