// Nodes for pods with claims, from the parts left of it alone.
#include "scheduler/engine/claims/claim_filter.h"

#include "scheduler/engine/claims/claim_pods.h"
#include "test/unit/scheduler/engine/claims/claims_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Allocated;
using test::Asks;
using test::PodUsing;
using testing::ElementsAre;
using testing::IsEmpty;

class ClaimFilterTest : public testing::Test, protected test::ClaimsRoom {
 protected:
  // The nodes, best first; else "untouched" or why there is none.
  std::string Ask(const std::string& name, const std::vector<std::string>& claims) {
    const PodFacts pod = PodUsing(name, claims);
    ClaimingPod& known = books.pods[pod.request.uid];
    known.request = std::make_shared<const PodRequest>(pod.request);
    known.claims = pod.claims;
    answer_ = {};
    if (!filter_.Filter(pod.request, candidates_, now, answer_)) return "untouched";
    std::string nodes;
    for (const uint32_t position : answer_.chosen)
      nodes += (nodes.empty() ? "" : " ") + std::string(candidates_[position]);
    return nodes.empty() ? std::string(Describe(answer_.reason).code) : nodes;
  }

  ClaimFilter filter_{cluster, books, rules, wishes, charges};
  const std::vector<std::string_view> candidates_ = {"n1", "n2"};
  FilterAnswer answer_;
};

TEST_F(ClaimFilterTest, NodesInUseComeFirstAndTheRanksFollow) {
  TeamOwns("4");
  Put(Allocated(Asks("held"), "n2", "gpu-0"));
  Put(Asks("c"));
  EXPECT_EQ(Ask("p", {"c"}), "n2 n1");
  std::vector<int> ranks(2);
  EXPECT_TRUE(filter_.Rank(PodUid("p"), candidates_, ranks));
  EXPECT_THAT(ranks, ElementsAre(9, 10));
  EXPECT_FALSE(filter_.Rank(PodUid("other"), candidates_, ranks));
}

TEST_F(ClaimFilterTest, TheOrderFollowsTheDevices) {
  TeamOwns("4");
  Put(Asks("one"));
  Put(Asks("two"));
  EXPECT_EQ(Ask("p", {"one"}), "n1 n2");
  Put(Allocated(Asks("held"), "n2", "gpu-0"));
  EXPECT_EQ(Ask("p", {"two"}), "n2 n1") << "what was remembered of n2 is outdated";
}

// What nobody has tried yet is tried a part at a time, is not refused for it, and follows the rest.
TEST_F(ClaimFilterTest, AFirstDecisionTriesABoundedNumberOfNodes) {
  constexpr int kNodes = 2 * ClaimFilter::kMostTrials + 10;
  std::vector<std::string> names;
  for (int i = 0; i < kNodes; ++i) {
    NodeFacts facts;
    facts.name = NodeName(fmt::format("big-{:04}", i));
    names.push_back(facts.name.str());
    Node(facts);
    cluster.catalog.PutSlice(dra::NodeSlice(
        names.back(),
        {dra::GpuDevice("gpu-0", names.back(), "NVIDIA H100 80GB HBM3", test::kH100Mib)}));
    cluster.Refresh(IdOf(names.back()), now);
  }
  TeamOwns("4");
  Put(Asks("c"));
  PodFacts pod = PodUsing("p", {"c"});
  ClaimingPod& known = books.pods[pod.request.uid];
  known.request = std::make_shared<const PodRequest>(pod.request);
  known.claims = pod.claims;
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const auto ask = [&] {
    const int64_t before = wishes.trials();
    answer_ = {};
    EXPECT_TRUE(filter_.Filter(pod.request, candidates, now, answer_));
    EXPECT_THAT(answer_.refused, IsEmpty());
    return wishes.trials() - before;
  };
  EXPECT_EQ(ask(), ClaimFilter::kMostTrials);
  EXPECT_EQ(answer_.chosen.front(), 0U);
  EXPECT_EQ(ask(), ClaimFilter::kMostTrials);
  EXPECT_EQ(ask(), 10);
  EXPECT_EQ(ask(), 0);
}

TEST_F(ClaimFilterTest, QuotaCountsWhatOthersWereLetInForAndNotOnesOwn) {
  TeamOwns("1");
  Put(Asks("one"));
  Put(Asks("two"));
  EXPECT_EQ(Ask("p", {"one"}), "n1 n2");
  EXPECT_EQ(Ask("p", {"one"}), "n1 n2") << "what is kept for it does not count twice";
  EXPECT_EQ(Ask("q", {"two"}), "WaitingForQuota");
  EXPECT_EQ(books.pods.at(PodUid("q")).asked.size(), 1U);
  EXPECT_EQ(answer_.refused.size(), 2U);
}

TEST_F(ClaimFilterTest, AWatchedTeamIsToldAndLetIn) {
  TeamOwns("1", QuotaMode::kObserve);
  Put(Asks("two", 2));
  EXPECT_EQ(Ask("p", {"two"}), "n1 n2");
  EXPECT_EQ(answer_.observed, Reason::kExceedsMaxQuota);
}

TEST_F(ClaimFilterTest, ClaimsOfNoConcernAndClaimsNobodyHasShown) {
  TeamOwns("4");
  Put(dra::ClassOf("nic", {"device.driver == 'dra.net'"}));
  Put(dra::ClaimOf("net", {{"nic", {dra::Choice("nic")}}}));
  EXPECT_EQ(Ask("p", {"net"}), "untouched");
  EXPECT_EQ(Ask("q", {"late"}), "ClaimUnknown");
  EXPECT_THAT(books.unknown, ElementsAre(PodUid("q")));
  FilterAnswer answer;
  EXPECT_FALSE(filter_.Filter(test::EmptyRequest("none"), candidates_, now, answer));
}

TEST_F(ClaimFilterTest, ExtendedResourcesGoToNodesThatDraServes) {
  TeamOwns("1");
  dra::DeviceClass serves = dra::NvidiaClasses()[0];
  serves.extended_resource = "nvidia.com/gpu";
  Put(serves);
  Node(test::StockNode("plugin", 0));
  const std::vector<NodeId> ids = {IdOf("n1"), IdOf("n2"), IdOf("plugin")};
  const auto served = [&](const PodRequest& request) {
    answer_ = {};
    answer_.RefuseAll(ids.size(), Reason::kNoGpu);
    filter_.AddServed(rules.ContextOf(request), ids, 11, now, answer_);
    return answer_.chosen;
  };
  const PodRequest first = test::TeamPod("team", "first", 1);
  EXPECT_THAT(served(first), ElementsAre(0, 1));
  EXPECT_TRUE(filter_.IsServed(first.uid, IdOf("n1")));
  EXPECT_FALSE(filter_.IsServed(first.uid, IdOf("plugin")));
  EXPECT_THAT(served(test::TeamPod("team", "second", 1)), IsEmpty()) << "kept for the first";
  EXPECT_EQ(answer_.reason, Reason::kWaitingForQuota);
}

}  // namespace THIS_FILE
}  // namespace tranche
