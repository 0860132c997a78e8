// In which pool a node is, how it is paid for, and which price is in force when.
#include "policy/prices.h"

#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "policy/policy_store.h"

namespace tranche {
namespace THIS_FILE {

FindLabel In(const Labels& labels) {
  return [labels](std::string_view key) -> std::optional<std::string_view> {
    const auto found = labels.find(std::string(key));
    if (found == labels.end()) return std::nullopt;
    return found->second;
  };
}

class PoolsTest : public ::testing::Test {
 protected:
  void Put(std::string_view kind, const std::string& name, const std::string& spec) {
    store_.Upsert(kind, name, R"({"metadata":{"name":")" + name + R"("},"spec":)" + spec + "}");
    store_.Commit();
  }
  std::string PoolOf(const Labels& labels) const {
    const GpuPool* const pool = store_.set().PoolOf(labels);
    EXPECT_EQ(store_.set().PoolOf(In(labels)), pool);
    return pool == nullptr ? "" : pool->name;
  }
  std::string Condition(std::string_view kind, std::string_view name,
                        std::string_view type = "Ready") const {
    for (const Finding& finding : store_.findings()) {
      if (finding.kind == kind && finding.name == name && finding.type == type) {
        return (finding.status ? "True/" : "False/") + finding.reason;
      }
    }
    return "";
  }

  PolicyStore store_{GpuPolicy{}};
};

TEST_F(PoolsTest, ANodeIsInThePoolThatAsksMostOfItThenInTheFirstByName) {
  EXPECT_EQ(PoolOf({{"a", "1"}}), "");
  Put("GPUPool", "z-all", R"({"nodes":{}})");
  Put("GPUPool", "m-one", R"({"nodes":{"matchLabels":{"a":"1"}}})");
  Put("GPUPool", "n-one", R"({"nodes":{"matchExpressions":[{"key":"b","operator":"Exists"}]}})");
  Put("GPUPool", "y-two", R"({"nodes":{"matchLabels":{"a":"1"},
      "matchExpressions":[{"key":"c","operator":"NotIn","values":["x"]}]}})");
  const struct {
    Labels labels;
    std::string_view pool;
  } kCases[] = {
      {{}, "z-all"},
      {{{"a", "2"}}, "z-all"},
      {{{"b", ""}}, "n-one"},
      {{{"a", "1"}, {"c", "x"}}, "m-one"},
      {{{"a", "1"}, {"b", "2"}, {"c", "x"}}, "m-one"},
      {{{"a", "1"}, {"b", "2"}}, "y-two"},
  };
  for (const auto& test : kCases) EXPECT_EQ(PoolOf(test.labels), test.pool);
  store_.Remove("GPUPool", "y-two");
  store_.Commit();
  EXPECT_EQ(PoolOf({{"a", "1"}}), "m-one");
}

TEST_F(PoolsTest, WindowsAreInForce) {
  Put("GPUPool", "a", R"({"nodes":{},"windows":[{"from":"2026-03-01T22:00:00Z",
      "to":"2026-03-01T23:00:00Z"}]})");
  EXPECT_EQ(Condition("GPUPool", "a"), "True/Accepted");
  EXPECT_EQ(store_.set().pools.front().windows.size(), 1u);
}

TEST_F(PoolsTest, PricesInForceHaveTheCurrencyOfTheFirst) {
  Put("GPUPrice", "b", R"({"perGpuHour":1,"currency":"USD"})");
  Put("GPUPrice", "c", R"({"perGpuHour":2,"currency":"EUR"})");
  EXPECT_EQ(Condition("GPUPrice", "b"), "True/Accepted");
  EXPECT_EQ(Condition("GPUPrice", "c"), "False/OtherCurrency");
  ASSERT_EQ(store_.set().prices.size(), 1u);
  Put("GPUPrice", "a", R"({"perGpuHour":2,"currency":"EUR"})");
  EXPECT_EQ(Condition("GPUPrice", "b"), "False/OtherCurrency");
  ASSERT_EQ(store_.set().prices.size(), 2u);
  EXPECT_EQ(store_.set().prices[1].name, "c");
}

TEST_F(PoolsTest, APriceThatCannotBeReadLeavesTheFormerOneInForce) {
  Put("GPUPrice", "a", R"({"perGpuHour":1,"currency":"USD"})");
  Put("GPUPrice", "a", R"({"perGpuHour":-1,"currency":"USD"})");
  EXPECT_EQ(Condition("GPUPrice", "a"), "False/Invalid");
  ASSERT_EQ(store_.set().prices.size(), 1u);
  EXPECT_EQ(store_.set().prices[0].micros_per_gpu_hour, 1'000'000);
}

TEST_F(PoolsTest, APriceOfAPoolThatIsNotThereSaysSo) {
  Put("GPUPrice", "a", R"({"perGpuHour":1,"currency":"USD","pool":"p"})");
  EXPECT_EQ(Condition("GPUPrice", "a", "UnknownPool"), "True/UnknownPool");
  Put("GPUPool", "p", R"({"nodes":{}})");
  EXPECT_EQ(Condition("GPUPrice", "a", "UnknownPool"), "");
}

TEST_F(PoolsTest, LinesAndRatesOfAPoolThatIsNotThereSaySo) {
  Put("GPUQuota", "team", R"({"lines":[{"model":"h100","pool":"p","nominal":{"gpus":"1"}}]})");
  Put("GPUBudget", "hours", R"({"quotaRef":"team","gpuHours":"1","rates":{"any@q":"1"}})");
  EXPECT_EQ(Condition("GPUQuota", "team", "UnknownPool"), "True/UnknownPool");
  EXPECT_EQ(Condition("GPUQuota", "team"), "True/Accepted");
  EXPECT_EQ(Condition("GPUBudget", "hours", "UnknownPool"), "True/UnknownPool");
  EXPECT_THAT(store_.set().metered_pools, testing::ElementsAre("p", "q"));
  Put("GPUPool", "p", R"({"nodes":{}})");
  EXPECT_EQ(Condition("GPUQuota", "team", "UnknownPool"), "");
}

TEST_F(PoolsTest, AMachineIsPaidForAsItsPoolSaysElseAsItsLabelsSay) {
  Put("GPUPool", "held", R"({"nodes":{"matchLabels":{"p":"held"}},"capacity":"Reserved"})");
  Put("GPUPool", "mute", R"({"nodes":{"matchLabels":{"p":"mute"}}})");
  constexpr auto kSpot = CapacityType::kSpot;
  const struct {
    Labels labels;
    NodeTraits traits;
  } kCases[] = {
      {{}, {}},
      {{{"node.kubernetes.io/instance-type", "p5.48xlarge"}}, {"", {}, "p5.48xlarge"}},
      {{{"p", "held"}, {"karpenter.sh/capacity-type", "spot"}},
       {"held", CapacityType::kReserved, ""}},
      {{{"p", "mute"}, {"karpenter.sh/capacity-type", "spot"}}, {"mute", kSpot, ""}},
      {{{"karpenter.sh/capacity-type", "on-demand"}}, {"", CapacityType::kOnDemand, ""}},
      {{{"karpenter.sh/capacity-type", "reserved"}}, {"", CapacityType::kReserved, ""}},
      {{{"karpenter.sh/capacity-type", "new"}}, {}},
      {{{"eks.amazonaws.com/capacityType", "SPOT"}}, {"", kSpot, ""}},
      {{{"eks.amazonaws.com/capacityType", "ON_DEMAND"}}, {"", CapacityType::kOnDemand, ""}},
      {{{"eks.amazonaws.com/capacityType", "CAPACITY_BLOCK"}}, {"", CapacityType::kReserved, ""}},
      {{{"cloud.google.com/gke-spot", "true"}}, {"", kSpot, ""}},
      {{{"cloud.google.com/gke-spot", "false"}}, {}},
      {{{"cloud.google.com/gke-provisioning", "spot"}}, {"", kSpot, ""}},
      {{{"cloud.google.com/gke-provisioning", "standard"}}, {"", CapacityType::kOnDemand, ""}},
      {{{"kubernetes.azure.com/scalesetpriority", "spot"}}, {"", kSpot, ""}},
  };
  for (const auto& test : kCases) {
    EXPECT_EQ(TraitsOf(store_.set(), In(test.labels)), test.traits)
        << ::testing::PrintToString(test.labels);
  }
}

GpuPrice Price(std::string name, int64_t micros) {
  GpuPrice price;
  price.name = std::move(name);
  price.micros_per_gpu_hour = micros;
  price.currency = "USD";
  return price;
}

TEST(PriceOfTest, TheMoreExactOneIsInForceThenTheFirstByName) {
  std::vector<GpuPrice> prices;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) {
    prices.push_back(Price(name, static_cast<int64_t>(prices.size()) + 1));
  }
  prices[1].hours = {{}};
  prices[2].model = "h200";
  prices[3].capacity = CapacityType::kSpot;
  prices[3].model = "h200";
  prices[4].instance_type = "p5";
  prices[5].pool = "p";
  prices[6].pool = "p";
  const struct {
    std::string_view what;
    NodeTraits node;
    std::string_view model;
    std::string_view price;
  } kCases[] = {
      {"hours before nothing", {}, "a100-80gb", "b"},
      {"the model before hours", {}, "h200", "c"},
      {"capacity and model before the model", {"", CapacityType::kSpot, ""}, "h200", "d"},
      {"the other capacity", {"", CapacityType::kOnDemand, ""}, "h200", "c"},
      {"the instance type before both", {"", CapacityType::kSpot, "p5"}, "h200", "e"},
      {"the pool before all, the first by name", {"p", CapacityType::kSpot, "p5"}, "h200", "f"},
  };
  for (const auto& test : kCases) {
    const PriceAt found = PriceOf(prices, test.node, test.model, Instant());
    ASSERT_NE(found.price, nullptr) << test.what;
    EXPECT_EQ(found.price->name, test.price) << test.what;
  }
}

TEST(PriceOfTest, WhatNobodyPricesHasNone) {
  std::vector<GpuPrice> prices = {Price("a", 1)};
  prices[0].model = "h200";
  const PriceAt found = PriceOf(prices, {}, "l40s", Instant());
  EXPECT_EQ(found.price, nullptr);
  EXPECT_EQ(found.micros(), 0);
  EXPECT_EQ(found.until, Instant::max());
  EXPECT_EQ(PriceOf({}, {}, "h200", Instant()).price, nullptr);
}

TEST(PriceOfTest, HoursFollowTheClocksOfAPlace) {
  const auto paris = TimeZone::Load("Europe/Paris");
  ASSERT_TRUE(paris.has_value());
  std::vector<GpuPrice> prices = {Price("day", 2), Price("night", 1)};
  prices[1].zone = *paris;
  // Nights that begin on working days.
  prices[1].hours = {{0b0011111, 20 * 60, 6 * 60}};
  const struct {
    std::string_view what, at, price, until;
  } kCases[] = {
      {"a Friday, before", "2026-11-27T18:59:59.999Z", "day", "2026-11-27T19:00:00Z"},
      {"its first moment", "2026-11-27T19:00:00Z", "night", "2026-11-27T23:00:00Z"},
      {"over midnight", "2026-11-28T00:00:00Z", "night", "2026-11-28T05:00:00Z"},
      {"its end on Saturday", "2026-11-28T05:00:00Z", "day", "2026-11-28T19:00:00Z"},
      {"no night begins on Saturday", "2026-11-28T20:00:00Z", "day", "2026-11-28T23:00:00Z"},
      {"Sunday's early hours", "2026-11-29T03:00:00Z", "day", "2026-11-29T05:00:00Z"},
      {"the night of 27 March 2026 ends early", "2026-03-28T04:00:00Z", "night",
       "2026-03-28T05:00:00Z"},
      {"clocks are set on", "2026-03-29T00:30:00Z", "day", "2026-03-29T01:00:00Z"},
      {"clocks are set back", "2026-10-25T00:30:00Z", "day", "2026-10-25T01:00:00Z"},
  };
  for (const auto& test : kCases) {
    const PriceAt found = PriceOf(prices, {}, "h200", ParseInstant(test.at).value());
    ASSERT_NE(found.price, nullptr) << test.what;
    EXPECT_EQ(found.price->name, test.price) << test.what;
    EXPECT_EQ(found.until, ParseInstant(test.until).value()) << test.what;
  }
}

TEST(FormatMicrosTest, HasAsFewDecimalsAsItTakes) {
  EXPECT_EQ(FormatMicros(0), "0");
  EXPECT_EQ(FormatMicros(2'490'000), "2.49");
  EXPECT_EQ(FormatMicros(1), "0.000001");
  EXPECT_EQ(FormatMicros(12'000'000), "12");
}

}  // namespace THIS_FILE
}  // namespace tranche
