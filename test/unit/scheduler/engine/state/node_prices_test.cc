#include "scheduler/engine/state/node_prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/builders/cluster.h"
#include "test/builders/policies.h"

namespace tranche {
namespace THIS_FILE {

using test::At;
using test::Price;
using testing::ElementsAre;
using testing::IsNull;
using testing::Pointee;

constexpr int kHour = 3600;

class NodePricesTest : public testing::Test {
 protected:
  // Of the policy "default", which says nothing, and "rate", 100 milli-GPU for a dollar.
  bool Declare(std::vector<GpuPrice> prices, Instant now = At(0)) {
    GpuPolicy rate;
    rate.money_rate = 100;
    GpuPolicy off;
    off.money_rate = 0;
    return prices_.Declare(test::Declare({.prices = std::move(prices)}), {GpuPolicy(), rate, off},
                           now);
  }
  static NodeTraits Of(std::optional<CapacityType> capacity, std::string type = "") {
    return {"", capacity, std::move(type)};
  }
  int64_t RateOf(PriceGroup group, std::size_t policy) const {
    return prices_.RatesOf(policy)->at(group);
  }

  NodePrices prices_;
};

constexpr std::size_t kAuto = 0;
constexpr std::size_t kRate = 1;
constexpr std::size_t kOff = 2;

TEST_F(NodePricesTest, WithoutPricesMoneyHasNoSay) {
  EXPECT_FALSE(prices_.any());
  EXPECT_FALSE(Declare({}));
  EXPECT_FALSE(prices_.any());
  EXPECT_THAT(prices_.RatesOf(kRate), IsNull());
  EXPECT_EQ(prices_.GroupOf(Of(CapacityType::kSpot), "h100", At(0)), 0);
  EXPECT_EQ(prices_.until(), Instant::max());
}

TEST_F(NodePricesTest, RatesGoByPriceAndByThePolicy) {
  GpuPrice spot = Price("spot", 1'000);
  spot.capacity = CapacityType::kSpot;
  GpuPrice t4 = Price("t4", 500);
  t4.model = "t4";
  EXPECT_TRUE(Declare({Price("list", 4'000), spot, t4}));
  const PriceGroup list = prices_.GroupOf(Of(CapacityType::kOnDemand), "h100", At(0));
  const PriceGroup cheap = prices_.GroupOf(Of(CapacityType::kSpot), "h100", At(0));
  const PriceGroup small = prices_.GroupOf(Of({}), "t4", At(0));
  const PriceGroup ahead = prices_.GroupOf(Of(CapacityType::kReserved), "h100", At(0));
  EXPECT_EQ(RateOf(list, kRate), 400);
  EXPECT_EQ(RateOf(cheap, kRate), 100);
  EXPECT_EQ(RateOf(small, kRate), 50);
  EXPECT_EQ(RateOf(ahead, kRate), 0) << "paid for already";
  EXPECT_EQ(RateOf(0, kRate), 0) << "nobody prices it";
  EXPECT_EQ(RateOf(list, kAuto), 4 * RateOf(cheap, kAuto)) << "in proportion";
  EXPECT_GT(RateOf(cheap, kAuto), 0);
  EXPECT_THAT(prices_.RatesOf(kOff), IsNull());
  EXPECT_EQ(prices_.PriceIn(small)->name, "t4");
}

TEST_F(NodePricesTest, NodesThatNoPriceTellsApartAreOneGroup) {
  Declare({Price("list", 4'000)});
  EXPECT_EQ(prices_.GroupOf(Of({}, "p5.48xlarge"), "h100", At(0)),
            prices_.GroupOf(Of({}, "a3-highgpu-8g"), "h100", At(0)));
  GpuPrice named = Price("p5", 3'000);
  named.instance_type = "p5.48xlarge";
  EXPECT_TRUE(Declare({Price("list", 4'000), named}));
  const PriceGroup p5 = prices_.GroupOf(Of({}, "p5.48xlarge"), "h100", At(0));
  const PriceGroup other = prices_.GroupOf(Of({}, "a3-highgpu-8g"), "h100", At(0));
  EXPECT_EQ(RateOf(p5, kRate), 300);
  EXPECT_EQ(RateOf(other, kRate), 400);
}

TEST_F(NodePricesTest, HoursThatBeginAndEndAreTakenUp) {
  GpuPrice night = Price("night", 1'000);
  night.zone = *TimeZone::Load("UTC");
  const int now = static_cast<int>(std::chrono::duration_cast<std::chrono::minutes>(
                                       At(0) - std::chrono::floor<std::chrono::days>(At(0)))
                                       .count());
  night.hours = {{0x7F, (now + 60) % 1440, (now + 120) % 1440}};
  Declare({Price("day", 2'000), night});
  const PriceGroup group = prices_.GroupOf(Of({}), "h100", At(0));
  const struct {
    int at;  // seconds
    int64_t rate;
  } table[] = {{0, 200},         {kHour - 1, 200},     {kHour, 100},
               {kHour + 1, 100}, {2 * kHour - 1, 100}, {2 * kHour, 200},
               {25 * kHour, 100}};
  const Instant minute = std::chrono::floor<std::chrono::minutes>(At(0));
  for (const auto& row : table) {
    const Instant at = minute + std::chrono::seconds(row.at);
    prices_.Advance(at);
    EXPECT_EQ(RateOf(group, kRate), row.rate) << row.at;
    EXPECT_GT(prices_.until(), at);
  }
}

TEST_F(NodePricesTest, OnlyOtherPricesMakeGroupsVoid) {
  EXPECT_TRUE(Declare({Price("list", 4'000)}));
  const PriceGroup group = prices_.GroupOf(Of({}), "h100", At(0));
  EXPECT_FALSE(Declare({Price("list", 4'000)})) << "policies may have changed";
  EXPECT_EQ(RateOf(group, kRate), 400);
  EXPECT_TRUE(Declare({Price("list", 2'000)}));
  EXPECT_EQ(RateOf(prices_.GroupOf(Of({}), "h100", At(0)), kRate), 200);
  EXPECT_TRUE(Declare({}));
  EXPECT_THAT(prices_.RatesOf(kRate), IsNull());
}

TEST_F(NodePricesTest, NoPriceIsWorthMoreThanCostsCanTell) {
  GpuPrice dear = Price("dear", 0);
  dear.micros_per_gpu_hour = 999'999'000'000;
  Declare({dear});
  const PriceGroup group = prices_.GroupOf(Of({}), "h100", At(0));
  EXPECT_EQ(RateOf(group, kRate), 1'000'000);
}

}  // namespace THIS_FILE
}  // namespace tranche
