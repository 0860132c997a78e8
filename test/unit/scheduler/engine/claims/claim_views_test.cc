// Claims in words, from the parts left of it alone.
#include "scheduler/engine/claims/claim_views.h"

#include "test/unit/scheduler/engine/claims/claims_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Allocated;
using test::Asks;
using test::PodUsing;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ClaimViewsTest : public testing::Test, protected test::ClaimsRoom {
 protected:
  ClaimingPod& Known(const PodFacts& pod) {
    ClaimingPod& known = books.pods[pod.request.uid];
    known.request = std::make_shared<const PodRequest>(pod.request);
    known.claims = pod.claims;
    known.node = pod.node;
    books.by_name.emplace(pod.request.name, pod.request.uid);
    return known;
  }

  ClaimViews views_{cluster, books, metering, rules, wishes, charges};
};

TEST_F(ClaimViewsTest, EveryNodeSaysWhatThePodWouldGetOrWhyNot) {
  TeamOwns("4");
  Node(test::StockNode("plugin", 4));
  Put(Allocated(Asks("held"), "n1", "gpu-0"));
  Put(Asks("two", 2));
  Known(PodUsing("p", {"two"}));
  const std::optional<Explanation> why = views_.Explain({"team", "p"}, now);
  ASSERT_TRUE(why);
  std::vector<std::string> told;
  for (const NodeVerdict& node : why->nodes) {
    told.push_back(fmt::format("{} {} {}", node.node.str(), Describe(node.reason).code, node.rank));
  }
  EXPECT_THAT(told, ElementsAre("n1 NoRoom -1", "n2 None 0", "plugin NoGpu -1"));
  EXPECT_EQ(why->nodes[1].detail, "gets gpu-0, gpu-1");
  EXPECT_FALSE(views_.Explain({"team", "stranger"}, now));
}

TEST_F(ClaimViewsTest, DevicesThatAreAllocatedBindThePodToTheirNode) {
  TeamOwns("4");
  dra::Claim held = Allocated(Asks("held"), "n1", "gpu-0", {"p"});
  held.allocation->nodes.emplace();
  held.allocation->nodes->has_affinity = true;
  NodeTerm on_n1;
  on_n1.key = "metadata.name";
  on_n1.is_field = true;
  on_n1.values = {"n1"};
  held.allocation->nodes->affinity = {{on_n1}};
  Put(held);
  Known(PodUsing("p", {"held"}));
  const std::optional<Explanation> why = views_.Explain({"team", "p"}, now);
  ASSERT_TRUE(why);
  EXPECT_EQ(why->nodes[0].reason, Reason::kNone);
  EXPECT_EQ(why->nodes[1].reason, Reason::kWrongDevice);
  EXPECT_EQ(why->nodes[1].detail, "claim held has devices of another node");
}

TEST_F(ClaimViewsTest, AWaitingPodIsToldTheNumbersOfItsQuota) {
  TeamOwns("1");
  Put(Allocated(Asks("held"), "n1", "gpu-0"));
  Put(Asks("c"));
  ClaimingPod& pod = Known(PodUsing("p", {"c"}));
  pod.wants_gpus = true;
  pod.last_reason = Reason::kWaitingForQuota;
  pod.asked = wishes.PartsOn(WishFor({"c"}), IdOf("n1"));
  EXPECT_THAT(views_.ViewPod(PodUid("p"), pod).detail,
              HasSubstr("team uses 1 h100 (nominal 1, may reach 1), needs 1"));
  EXPECT_THAT(views_.Explain({"team", "p"}, now)->advice, HasSubstr("must end"));
  EXPECT_EQ(views_.WaitingPods().size(), 1U);
  RemoveClaim("held");
  EXPECT_EQ(views_.ViewPod(PodUid("p"), pod).detail,
            "there is quota for it now; it is tried again");
}

TEST_F(ClaimViewsTest, ABoundPodIsShownWithItsDevices) {
  TeamOwns("2");
  Put(Allocated(Asks("shared"), "n1", "gpu-1", {"p"}));
  const PodView view = views_.ViewPod(PodUid("p"), Known(PodUsing("p", {"shared"}, "n1")));
  EXPECT_EQ(view.state, PodState::kBound);
  EXPECT_EQ(view.leaf, "team");
  EXPECT_EQ(view.quota_state, QuotaState::kInQuota);
  ASSERT_TRUE(view.allocation);
  EXPECT_EQ(view.allocation->containers[0].devices[0].uuid.str(), "n1-b");
}

TEST_F(ClaimViewsTest, ANodesCardsAreShownWithTheirHolders) {
  TeamOwns("2");
  Put(Allocated(Asks("shared"), "n1", "gpu-1", {"p"}));
  Known(PodUsing("p", {"shared"}, "n1"));
  NodeView node;
  views_.ViewGpus(IdOf("n1"), node);
  ASSERT_EQ(node.gpus.size(), 2U);
  EXPECT_EQ(node.model, "h100");
  EXPECT_EQ(node.gpus[0].free_milli, kWholeGpu);
  EXPECT_EQ(node.gpus[1].free_milli, MilliGpu::Zero());
  EXPECT_EQ(node.gpus[1].free_memory, Mebibytes::Zero());
  EXPECT_EQ(node.gpus[1].pods[0].pod.name, "p");
  NodeView again = node;
  views_.ViewGpus(IdOf("n1"), again);
  EXPECT_EQ(again.gpus.size(), 2U) << "cards the device plugin shows are not shown twice";
}

TEST_F(ClaimViewsTest, AuditFindsWhatIsChargedOrKeptWithoutReason) {
  TeamOwns("4");
  Put(Allocated(Asks("c"), "n1", "gpu-0"));
  std::vector<std::string> faults;
  views_.Audit(faults);
  EXPECT_THAT(faults, IsEmpty());
  metering.claims[KeyOfClaim("ghost")] = {};
  books.kept[KeyOfClaim("lost")] = now;
  views_.Audit(faults);
  EXPECT_THAT(faults, ElementsAre("claim/ghost is charged and holds nothing",
                                  "quota is not kept for claim/lost as the books say"));
}

}  // namespace THIS_FILE
}  // namespace tranche
