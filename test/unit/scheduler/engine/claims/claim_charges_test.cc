// What claims are charged and what is kept for them, from the parts left of it alone.
#include "scheduler/engine/claims/claim_charges.h"

#include "test/unit/scheduler/engine/claims/claims_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Allocated;
using test::Asks;
using test::At;
using testing::ElementsAre;
using testing::IsEmpty;

class ClaimChargesTest : public testing::Test, protected test::ClaimsRoom {
 protected:
  void Keep(const std::string& claim) {
    charges.Keep(test::PodUsing("p", {claim}).request, WishFor({claim}), IdOf("n1"), now);
  }
};

TEST_F(ClaimChargesTest, AClaimIsChargedFromItsAllocationUntilThatEnds) {
  TeamOwns("2");
  Put(Asks("c"));
  EXPECT_THAT(Metered(), IsEmpty());
  Put(Allocated(Asks("c"), "n1", "gpu-0"));
  Put(Allocated(Asks("c"), "n1", "gpu-0", {"one", "two"}));
  EXPECT_THAT(Metered(), ElementsAre("open c.0 at 0", "running c.0 at 0")) << "once for all users";
  EXPECT_FALSE(Admits(2));
  now = At(60);
  Put(Asks("c"));
  EXPECT_TRUE(Admits(2));
  Put(Allocated(Asks("c"), "n2", "gpu-1"));
  RemoveClaim("c");
  EXPECT_THAT(Metered(), ElementsAre("close c.0 at 60", "open c.1 at 60", "running c.1 at 60",
                                     "close c.1 at 60"));
}

TEST_F(ClaimChargesTest, SlicesThatAreAwayForAMomentChangeNoCharge) {
  TeamOwns("2");
  Put(Allocated(Asks("c"), "n1", "gpu-0"));
  Metered();
  charges.Remove({dra::ObjectRef::Kind::kSlice, "", "n1-slice"}, now);
  Put(Allocated(Asks("c"), "n1", "gpu-0", {"one"}));
  EXPECT_THAT(Metered(), IsEmpty());
  EXPECT_FALSE(Admits(2));
}

// A driver publishes the two slices of its pool anew, one after the other; meanwhile devices of
// both are allocated. One of them is lost on the way.
TEST_F(ClaimChargesTest, APoolThatIsPublishedAnewIsChargedAsWhatItWas) {
  const auto slice = [](const std::string& name, int64_t generation,
                        const std::vector<std::string>& gpus) {
    std::vector<dra::Device> devices;
    for (const std::string& gpu : gpus) {
      devices.push_back(dra::GpuDevice(gpu, "U-" + gpu, "NVIDIA H100 80GB HBM3", test::kH100Mib));
    }
    dra::Slice made = dra::NodeSlice("n1", std::move(devices));
    made.name = name;
    made.generation = generation;
    made.slice_count = 2;
    return made;
  };
  const dra::Claim both =
      dra::Holding(Asks("c"), {dra::Held("gpu", "n1", "gpu-0"), dra::Held("gpu", "n1", "gpu-1")});
  const struct {
    const char* what;
    bool hears_first;  // of the pool before, or only of the slice that is new
    std::vector<std::string> parts_then;
    std::vector<std::string> parts_at_last;
  } rows[] = {{"known from before", true, {"h100 2"}, {"h100 2"}},
              {"one is told of later", false, {"h100 1", "unknown 1"}, {"h100 2"}}};
  TeamOwns("4");
  const auto parts = [this] {
    std::vector<std::string> texts;
    for (const ModelCharge& part : cluster.book.Find(KeyOfClaim("c-uid"))->parts) {
      texts.push_back(fmt::format("{} {}", part.model, part.charge.compute / kQuantaPerGpu));
    }
    return texts;
  };
  for (const auto& row : rows) {
    charges.Remove({dra::ObjectRef::Kind::kSlice, "", "n1-slice"}, now);
    if (row.hears_first) Put(slice("a", 1, {"gpu-0"}));
    Put(slice("b", 2, {"gpu-1"}));
    Put(both);
    EXPECT_EQ(parts(), row.parts_then) << row.what;
    Put(slice("a", 2, {"gpu-0"}));
    EXPECT_EQ(parts(), row.parts_at_last) << row.what;
    Put(slice("a", 3, {}));
    Put(slice("b", 3, {"gpu-1"}));
    EXPECT_EQ(parts(), row.parts_at_last) << row.what << ", one is lost";
    RemoveClaim("c");
    charges.Remove({dra::ObjectRef::Kind::kSlice, "", "a"}, now);
    charges.Remove({dra::ObjectRef::Kind::kSlice, "", "b"}, now);
  }
}

TEST_F(ClaimChargesTest, NothingIsChargedBeforeEverythingHasBeenShown) {
  OpenInterval open;
  open.uid = KeyOfClaim("known-uid");
  open.interval = 3;
  open.pod = {"team", "known"};
  open.leaf = "team";
  open.parts = {{"h100", {kQuantaPerGpu, kQuantaPerGpu}}};
  MeterHistory history;
  history.open = {open};
  metering.Restore(std::move(history));
  Put(Allocated(Asks("known"), "n1", "gpu-0"));
  Put(Allocated(Asks("new"), "n1", "gpu-1"));
  EXPECT_THAT(Metered(), IsEmpty());
  TeamOwns("2");
  EXPECT_THAT(Metered(), ElementsAre("open new.0 at 0 estimated", "running new.0 at 0"));
  RemoveClaim("known");
  EXPECT_THAT(Metered(), ElementsAre("close known.3 at 0"));
}

TEST_F(ClaimChargesTest, WhatIsKeptForAPodIsNotCountedTwiceOnceItIsAllocated) {
  TeamOwns("2");
  Put(Asks("c"));
  Keep("c");
  Keep("c");
  EXPECT_TRUE(Admits(1));
  EXPECT_FALSE(Admits(2)) << "one is kept";
  Put(Allocated(Asks("c"), "n1", "gpu-0", {"p"}));
  EXPECT_THAT(books.kept, IsEmpty());
  EXPECT_TRUE(Admits(1));
  Put(Asks("other"));
  Keep("other");
  charges.Release(PodUid("p"), WishFor({"other"}));
  EXPECT_TRUE(Admits(1));
}

TEST_F(ClaimChargesTest, QuotaThatIsFreedAndClaimsThatAppearBringPodsBack) {
  TeamOwns("1");
  Node(test::StockNode("plugin", 1));
  Put(Allocated(Asks("c"), "n1", "gpu-0"));
  const PodRequest waits = test::TeamPod("team", "waits", 1);
  Wait(waits, Reason::kWaitingForQuota);
  team_queue.contenders.insert(waits.uid);
  const PodFacts pod = test::PodUsing("late", {"later"});
  ClaimingPod& known = books.pods[pod.request.uid];
  known.request = std::make_shared<const PodRequest>(pod.request);
  known.claims = pod.claims;
  books.unknown.insert(pod.request.uid);
  Put(Asks("another"));
  EXPECT_THAT(Requeued(), IsEmpty());
  Put(Asks("later"));
  EXPECT_THAT(Requeued(), ElementsAre("late"));
  RemoveClaim("c");
  EXPECT_THAT(Requeued(), ElementsAre("waits"));
}

TEST_F(ClaimChargesTest, AClaimWithoutATeamIsAdoptedByTheOneThatOwnsItNow) {
  charges.FinishRestore(now);
  Put(Allocated(Asks("c"), "n1", "gpu-0"));
  Metered();
  now = At(60);
  Declare({.quotas = {test::Quota("team").Owns("team").Line("h100", "1")}});
  rules.ForgetPolicies();
  charges.Adopt(now);
  EXPECT_THAT(Metered(), ElementsAre("close c.0 at 60", "open c.1 at 60", "running c.1 at 60"));
  EXPECT_FALSE(Admits(1));
}

TEST_F(ClaimChargesTest, SlicesThatAreAwayWhenAnotherTeamTakesOverChangeNoCharge) {
  charges.FinishRestore(now);
  Put(Allocated(Asks("c"), "n1", "gpu-0"));
  charges.Remove({dra::ObjectRef::Kind::kSlice, "", "n1-slice"}, now);
  Declare({.quotas = {test::Quota("team").Owns("team").Line("h100", "1")}});
  rules.ForgetPolicies();
  charges.Adopt(now);
  ASSERT_NE(cluster.book.Find(KeyOfClaim("c-uid")), nullptr);
  EXPECT_EQ(cluster.book.Find(KeyOfClaim("c-uid"))->parts[0].model, "h100");
  EXPECT_FALSE(Admits(1));
}

TEST_F(ClaimChargesTest, WhereTheDevicesAreItsUsersTellBeforeItsPool) {
  Put(Allocated(Asks("c"), "n1", "gpu-0"));
  EXPECT_EQ(charges.NodeOf(*cluster.catalog.FindByUid("c-uid")), NodeName("n1"));
  books.pods[PodUid("user")].node = NodeName("elsewhere");
  Put(Allocated(Asks("c"), "n1", "gpu-0", {"user"}));
  EXPECT_EQ(charges.NodeOf(*cluster.catalog.FindByUid("c-uid")), NodeName("elsewhere"));
}

}  // namespace THIS_FILE
}  // namespace tranche
