// What claims ask for and what nodes would give, from a state alone.
#include "scheduler/engine/claims/claim_wishes.h"

#include "test/unit/scheduler/engine/claims/claims_fixture.h"

namespace tranche {
namespace THIS_FILE {

using test::Allocated;
using test::Asks;
using testing::IsEmpty;
using testing::SizeIs;

class ClaimWishesTest : public testing::Test, protected test::ClaimsRoom {
 protected:
  int64_t CostOn(const std::vector<std::string>& claims, const std::string& node) {
    return wishes.On(WishFor(claims), IdOf(node)).cost;
  }
};

TEST_F(ClaimWishesTest, WhichClaimsAPodHas) {
  cluster.catalog.PutClaim(Asks("named"));
  cluster.catalog.PutClaim(Allocated(Asks("held"), "n1", "gpu-0"));
  cluster.catalog.PutTemplate(Asks("template"));
  EXPECT_FALSE(WishFor({"named"}).unknown);
  EXPECT_FALSE(WishFor({"named"}).holds_gpus);
  EXPECT_TRUE(WishFor({"named", "held"}).holds_gpus);
  EXPECT_TRUE(WishFor({"named", "nowhere"}).unknown);
  dra::PodClaims generated;
  generated.claims.push_back({"gpu", "", "template"});
  const ClaimWish wish = wishes.Of("team", generated);
  EXPECT_THAT(wish.claims, SizeIs(1)) << "it is to be made";
  EXPECT_THAT(wish.made_up, SizeIs(1));
}

TEST_F(ClaimWishesTest, OnlyClaimsWithoutDevicesWouldBeCharged) {
  cluster.catalog.PutClaim(Asks("one"));
  cluster.catalog.PutClaim(Asks("two", 2));
  cluster.catalog.PutClaim(Allocated(Asks("held"), "n1", "gpu-0"));
  const auto quanta = [this](const std::vector<std::string>& claims, const std::string& node) {
    const std::vector<ModelCharge> parts = wishes.PartsOn(WishFor(claims), IdOf(node));
    return parts.empty() ? 0 : parts[0].charge.compute / kQuantaPerGpu;
  };
  Node(test::StockNode("plugin", 4));
  EXPECT_EQ(quanta({"one", "two"}, "n1"), 3);
  EXPECT_EQ(quanta({"one", "held"}, "n1"), 1);
  EXPECT_EQ(quanta({"one"}, "plugin"), 0) << "no slice tells of it";
  EXPECT_EQ(wishes.BooksOn(kNoNode), nullptr);
}

TEST_F(ClaimWishesTest, NodesInUseComeFirstAndThoseWithoutRoomLast) {
  cluster.catalog.PutClaim(Allocated(Asks("held"), "n2", "gpu-0"));
  cluster.catalog.PutClaim(Asks("one"));
  cluster.catalog.PutClaim(Asks("two", 2));
  Node(test::StockNode("plugin", 4));
  EXPECT_LT(CostOn({"one"}, "n2"), CostOn({"one"}, "n1")) << "idle nodes stay whole";
  EXPECT_LT(CostOn({"one"}, "n1"), CostOn({"one"}, "plugin"));
  EXPECT_EQ(CostOn({"one"}, "plugin"), kUnpredictedCost);
  EXPECT_LT(CostOn({"two"}, "n1"), CostOn({"two"}, "n2"));
  EXPECT_GT(CostOn({"two"}, "n2"), kUnpredictedCost) << "no room that we know of";
}

TEST_F(ClaimWishesTest, DevicesOfTheKubeletsPluginAreNotDras) {
  Node(test::StockNode("plugin", 4));
  EXPECT_TRUE(wishes.HasOnlyDraGpus(IdOf("n1")));
  EXPECT_FALSE(wishes.HasOnlyDraGpus(IdOf("plugin")));
  const PodRequest plain = test::TeamPod("team", "p", 2);
  EXPECT_THAT(wishes.Of(plain).claims, IsEmpty()) << "no class serves nvidia.com/gpu";
  dra::DeviceClass serves = dra::NvidiaClasses()[0];
  serves.extended_resource = "nvidia.com/gpu";
  cluster.catalog.classes().PutClass(serves);
  const ClaimWish wish = wishes.Of(plain);
  ASSERT_THAT(wish.claims, SizeIs(1));
  EXPECT_EQ(wish.claims[0]->requests[0].choices[0].count, 2);
}

TEST_F(ClaimWishesTest, AdministratorsHoldNothing) {
  dra::Claim claim = Allocated(Asks("watch"), "n1", "gpu-0");
  EXPECT_TRUE(HoldsGpus(claim));
  claim.allocation->devices[0].admin = true;
  EXPECT_FALSE(HoldsGpus(claim));
}

}  // namespace THIS_FILE
}  // namespace tranche
