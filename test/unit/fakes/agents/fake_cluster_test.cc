#include "test/fakes/agents/fake_cluster.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "test/unit/fakes/agents/agent_bench.h"

namespace tranche::fakes {
namespace THIS_FILE {

TEST(FakePods, ABindingHappensOnceAndCarriesItsAnnotations) {
  FakePods pods;
  pods.AddNode(CardNode(1));
  pods.AddPod(Named("a", {}));
  EXPECT_EQ(pods.Bind("team-a", "a", "u-other", "n1", {}), 409);
  EXPECT_EQ(pods.Bind("team-a", "b", "u-b", "n1", {}), 404);
  EXPECT_EQ(pods.Bind("team-a", "a", "u-a", "n2", {}), 404);
  EXPECT_EQ(pods.Bind("team-a", "a", "u-a", "n1", {{"key", "1"}}), 201);
  EXPECT_EQ(pods.Bind("team-a", "a", "u-a", "n1", {{"key", "2"}}), 409);
  EXPECT_EQ(pods.Pod("u-a")->node, "n1");
  EXPECT_EQ(pods.Pod("u-a")->Note("key"), "1");
  EXPECT_EQ(pods.Pod("u-a")->binding_posts, 3);
}

TEST(FakePods, APodBeingDeletedIsNotBound) {
  FakePods pods;
  pods.AddNode(CardNode(1));
  pods.AddPod(Named("a", {}));
  pods.MarkDeleting("u-a");
  EXPECT_EQ(pods.Bind("team-a", "a", "u-a", "n1", {}), 409);
}

TEST(FakePods, OfTwoWhoReadTheSameVersionOneMayWrite) {
  FakePods pods;
  pods.AddNode(CardNode(1));
  const uint64_t seen = pods.Node("n1")->version;
  EXPECT_EQ(pods.PatchNode("n1", {{"lock", "first"}}, seen), 200);
  EXPECT_EQ(pods.PatchNode("n1", {{"lock", "second"}}, seen), 409);
  EXPECT_EQ(pods.Node("n1")->Note("lock"), "first");
  EXPECT_EQ(pods.PatchNode("n1", {{"lock", std::nullopt}}), 200);
  EXPECT_EQ(pods.Node("n1")->annotations.count("lock"), 0U);
  EXPECT_EQ(pods.NodeWrites("lock"), 1);
}

TEST(FakePods, WatchersHearChangesOfTheirOwnMakingInOrder) {
  FakePods pods;
  std::vector<std::string> heard;
  pods.AddNode(CardNode(1));
  pods.AddPod(Named("a", {}));
  pods.Watch([&pods](const FakePod& pod, bool gone) {
    if (!gone && pod.node == "n1" && pod.phase == FakePhase::kPending) {
      pods.SetPhase(pod.uid, FakePhase::kRunning);
    }
  });
  pods.Watch([&heard](const FakePod& pod, bool gone) {
    heard.push_back(gone ? "gone" : pod.node + PhaseName(pod.phase));
  });
  pods.Bind("team-a", "a", "u-a", "n1", {});
  pods.Delete("u-a");
  EXPECT_EQ(heard, (std::vector<std::string>{"Pending", "n1Pending", "n1Running", "gone"}));
}

TEST(FakePods, OfManyThreadsThatBindOnePodOneSucceeds) {
  FakePods pods;
  pods.AddNode(CardNode(1));
  pods.AddPod(Named("a", {}));
  std::vector<int> answers(8);
  {
    std::vector<std::jthread> threads;
    for (int& answer : answers) {
      threads.emplace_back(
          [&pods, &answer] { answer = pods.Bind("team-a", "a", "u-a", "n1", {}); });
    }
  }
  EXPECT_EQ(std::count(answers.begin(), answers.end(), 201), 1);
}

}  // namespace THIS_FILE
}  // namespace tranche::fakes
