// What is taken out for one who sees the namespace a1 of team-a alone.
#include "scheduler/api/sight/veil.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scheduler/api/sight/limited_api.h"

namespace tranche {
namespace THIS_FILE {

using testing::ElementsAre;
using testing::IsEmpty;

QuotaView Quota(const std::string& name, const std::string& parent,
                std::vector<std::string> namespaces) {
  QuotaView view;
  view.report.name = name;
  view.report.parent = parent;
  view.report.namespaces = std::move(namespaces);
  return view;
}

class VeilTest : public testing::Test {
 protected:
  const std::vector<QuotaView> quotas = {Quota("org", "", {}), Quota("team-a", "org", {"a1", "a2"}),
                                         Quota("team-b", "org", {"b1"}), Quota("solo", "", {"s1"})};
  const Veil veil = Veil({{"a1"}}, quotas);
};

TEST_F(VeilTest, Texts) {
  const std::pair<const char*, const char*> rows[] = {
      {"", ""},
      {"gives way to a1/train", "gives way to a1/train"},
      {"gives way to b1/train.", "gives way to a pod of another team."},
      {"asks 2 GPUs; b1/x is protected by maxPods; b1/y, s1/z",
       "asks 2 GPUs; a pod of another team is protected by maxPods; a pod of another team, a pod "
       "of "
       "another team"},
      {"of no quota/pod", "of no a pod of another team"},  // a namespace like any other
      {"a2/train of the same team", "a pod of another team of the same team"},
      {"nvidia.com/gpu: 3 of 8 in use", "nvidia.com/gpu: 3 of 8 in use"},
      {"500/1001", "a pod of another team"},
      {"quota team-a of org: 3.5 GPUs, team-b lends 2, solo none",
       "quota team-a of org: 3.5 GPUs, another team lends 2, another team none"},
      {"'team-b'", "'another team'"},
      {"team-bb", "team-bb"},
      {"namespaces a1, a2, b1", "namespaces a1, another team, another team"},
  };
  for (const auto& [text, shown] : rows) EXPECT_EQ(veil.Text(text), shown);
}

TEST_F(VeilTest, KubeSchedulersWordsStay) {
  PodView pod;
  pod.scheduler_says = "0/5 nodes are available: 5 Insufficient cpu.";
  const std::pair<const char*, const char*> rows[] = {
      {"asks 1 GPU; 0/5 nodes are available: 5 Insufficient cpu.",
       "asks 1 GPU; 0/5 nodes are available: 5 Insufficient cpu."},
      {"gives way to b1/train", "gives way to a pod of another team"},
      {"", ""},
  };
  for (const auto& [detail, shown] : rows) {
    pod.detail = detail;
    veil.Draw(pod);
    EXPECT_EQ(pod.detail, shown);
  }
}

TEST_F(VeilTest, Teams) {
  EXPECT_TRUE(veil.SeesTeam("team-a"));
  EXPECT_FALSE(veil.SeesTeam("org"));
  EXPECT_FALSE(veil.SeesTeam("team-b"));
  EXPECT_FALSE(veil.SeesTeam(""));
  EXPECT_FALSE(veil.Sees(""));
  QuotaView own = quotas[1];
  own.abandoned.push_back({"team-b", 1, 1, {"b1"}});
  veil.Draw(own);
  EXPECT_THAT(own.report.namespaces, ElementsAre("a1"));
  EXPECT_THAT(own.abandoned, IsEmpty());
}

TEST_F(VeilTest, ReclaimsOfOthersThatTakeOurPods) {
  Reclaim reclaim;
  reclaim.name = "b1-urgent-7";
  reclaim.leaf = "team-b";
  reclaim.members = {{{"b1", "urgent"}, PodUid("u"), NodeName("n1"), false}};
  ReclaimVictim ours, theirs;
  ours.pod = {"a1", "train"};
  ours.leaf = "team-a";
  ours.node = NodeName("n1");
  theirs.pod = {"s1", "other"};
  theirs.leaf = "solo";
  theirs.gang = "big";
  theirs.owner = "s1/owner";
  theirs.node = NodeName("n2");
  reclaim.victims = {ours, theirs};
  EXPECT_TRUE(veil.Concerns(reclaim));
  veil.Draw(reclaim);
  EXPECT_EQ(reclaim.name, "of-another-team");
  EXPECT_EQ(reclaim.leaf, "");
  EXPECT_EQ(reclaim.members[0].pod.name, kAnothersPod);
  EXPECT_EQ(reclaim.members[0].node, NodeName());
  EXPECT_EQ(reclaim.victims[0], ours);
  EXPECT_EQ(reclaim.victims[1].pod, (PodName{"", kAnothersPod}));
  EXPECT_EQ(reclaim.victims[1].leaf + reclaim.victims[1].gang + reclaim.victims[1].owner, "");
  reclaim.victims.erase(reclaim.victims.begin());
  EXPECT_FALSE(veil.Concerns(reclaim));
}

TEST_F(VeilTest, NodesWithoutTheirTenants) {
  NodeView node;
  node.closed_detail = "b1/x holds what nobody can name";
  node.problems = {"b1/x"};
  node.gpus.resize(1);
  node.gpus[0].pods = {{{"b1", "x"}, PodUid("1"), {}, {}}, {{"a1", "y"}, PodUid("2"), {}, {}}};
  node.gpus[0].mig = {{"1g.10gb", 0, 1, {"b1/x", "a1/y"}}};
  veil.Draw(node);
  ASSERT_EQ(node.gpus[0].pods.size(), 1U);
  EXPECT_EQ(node.gpus[0].pods[0].pod, (PodName{"a1", "y"}));
  EXPECT_THAT(node.gpus[0].mig[0].pods, ElementsAre("a1/y"));
  EXPECT_EQ(node.closed_detail, "");
  EXPECT_THAT(node.problems, IsEmpty());
}

TEST(LimitedApi, RefusesWhatHasNoFilter) {
  const auto answers = [](const std::string& path, const std::string& method = "GET") {
    http::Request request;
    request.method = method;
    request.path = path;
    return LimitedApi::Answers(request);
  };
  for (const char* path :
       {"/api/v1/pods", "/api/v1/pods/a/b", "/api/v1/explain/a/b", "/api/v1/ledger",
        "/api/v1/ledger/series", "/api/v1/ledger/held", "/version"}) {
    EXPECT_TRUE(answers(path)) << path;
    EXPECT_TRUE(answers(path, "HEAD")) << path;
    EXPECT_FALSE(answers(path, "POST")) << path;
  }
  for (const char* path :
       {"", "/", "/metrics", "/api/v1/pods/", "/api/v1/advice", "/api/v1/audit", "/api/v1/whatif",
        "/api/v1/plan", "/api/v1/ledger/bill", "/api/v1/ledger/", "/api/v1/explain",
        "/api/v1/profile", "/api/v1/podsx", "//api/v1/pods", "/api/v1/../metrics"}) {
    EXPECT_FALSE(answers(path)) << path;
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
