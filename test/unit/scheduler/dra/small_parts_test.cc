// Versions, patterns, capacities, sharing and extended resources, each by a table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "scheduler/dra/capacity.h"
#include "scheduler/dra/extended.h"
#include "scheduler/dra/pattern.h"
#include "scheduler/dra/semver.h"
#include "scheduler/dra/sharing.h"
#include "test/unit/scheduler/dra/devices.h"

namespace tranche::dra {
namespace THIS_FILE {

using testing::ElementsAre;

// The order of semver.org section 11.
TEST(Semver, Order) {
  const std::vector<std::string_view> ascending = {
      "0.9.9",      "1.0.0-alpha",  "1.0.0-alpha.1", "1.0.0-alpha.beta",
      "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",
      "1.0.0",      "1.0.10",       "1.9.0",         "1.10.0",
      "12.4.0"};
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    for (std::size_t j = 0; j < ascending.size(); ++j) {
      const auto left = ParseSemver(ascending[i]);
      const auto right = ParseSemver(ascending[j]);
      ASSERT_TRUE(left && right) << ascending[i] << ascending[j];
      EXPECT_EQ(Compare(*left, *right), i <=> j) << ascending[i] << " and " << ascending[j];
    }
  }
  EXPECT_EQ(Compare(*ParseSemver("1.0.0+a"), *ParseSemver("1.0.0+b")), std::strong_ordering::equal);
}

TEST(Semver, WhatIsNone) {
  for (const std::string_view text :
       {"", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.x", "1.2.3-", "1.2.3-a..b", "1.2.3-01", "v1.2.3",
        "1.2.3+", "1.2.3-a_b", "1.2.99999999999999999999", "1.2.3-a.", "-1.2.3"}) {
    EXPECT_FALSE(ParseSemver(text)) << text;
  }
}

TEST(Pattern, Matches) {
  struct Row {
    std::string_view pattern, text;
    bool matches;
  };
  for (const Row& row : std::vector<Row>{
           {"a100", "nvidia-a100-sxm4", true},
           {"^a100", "nvidia-a100", false},
           {"^.*a100.*$", "nvidia-a100-sxm4", true},
           {"a100$", "nvidia-a100-sxm4", false},
           {"", "anything", true},
           {"^$", "", true},
           {"^$", "x", false},
           {"h[12]00", "h200", true},
           {"h[^12]00", "h200", false},
           {"^[a-z]+-[0-9]+$", "gpu-12", true},
           {"^[a-z]+-[0-9]+$", "gpu-", false},
           {"^ab?c$", "ac", true},
           {"^ab?c$", "abbc", false},
           {"^ab*c$", "abbbc", true},
           {"a.c", "a\nc", false},
           {"1g\\.5gb", "1g.5gb", true},
           {"1g\\.5gb", "1gx5gb", false},
           {"^\\d+\\w\\s$", "12a ", true},
           {"a100|h100", "the h100", true},
           {"^a100$|^h100$", "the h100", false},
           {"[]x]", "]", true},
           {"[a-]", "-", true},
           {"a{", "a", false},
       }) {
    const std::optional<Pattern> pattern = Pattern::Compile(row.pattern);
    if (row.pattern == "a{") {
      EXPECT_FALSE(pattern);
      continue;
    }
    ASSERT_TRUE(pattern) << row.pattern;
    EXPECT_EQ(pattern->Matches(row.text), row.matches) << row.pattern << " in " << row.text;
  }
}

TEST(Pattern, WhatIsLeftOut) {
  for (const std::string_view text : {"(a|b)", "a{2}", "a*?", "\\bword", "(?i)a", "[[:alpha:]]",
                                      "a^b", "a$b", "\\", "[a", "caf\xC3\xA9", "*a", "a**"}) {
    EXPECT_FALSE(Pattern::Compile(text)) << text;
  }
  EXPECT_FALSE(Pattern::Compile(std::string(64, 'a')));
  EXPECT_EQ(Pattern::Compile("a")->Matches("caf\xC3\xA9"), std::nullopt);
}

TEST(Capacity, RoundsAsThePolicySays) {
  const auto q = [](std::string_view text) { return *ParseQuantity(text); };
  const RequestPolicy steps{q("10Gi"), {}, RequestPolicy::Range{q("2Gi"), q("20Gi"), q("4Gi")}};
  const RequestPolicy values{std::nullopt, {q("1"), q("2"), q("4")}, std::nullopt};
  struct Row {
    std::optional<RequestPolicy> policy;
    std::string_view asked, gets;  // empty: nothing
  };
  for (const Row& row : std::vector<Row>{
           {std::nullopt, "", "40Gi"},
           {std::nullopt, "3", "3"},
           {steps, "", "10Gi"},
           {steps, "1Gi", "2Gi"},
           {steps, "2Gi", "2Gi"},
           {steps, "3Gi", "6Gi"},
           {steps, "10Gi", "10Gi"},
           {steps, "18Gi", "18Gi"},
           {steps, "19Gi", ""},
           {values, "", "40Gi"},
           {values, "3", "4"},
           {values, "4", "4"},
           {values, "5", ""},
       }) {
    Device device;
    device.capacities = {{{"d.com", "memory"}, q("40Gi"), row.policy}};
    std::vector<CapacityAmount> asked;
    if (!row.asked.empty()) asked.push_back({{"", "memory"}, q(row.asked)});
    const auto consumed = ConsumedOf(device, "d.com", asked);
    if (row.gets.empty()) {
      EXPECT_FALSE(consumed) << row.asked;
    } else {
      ASSERT_TRUE(consumed) << row.asked;
      EXPECT_EQ((*consumed)[0], q(row.gets)) << row.asked;
    }
    EXPECT_FALSE(ConsumedOf(device, "other.com", {{{{"", "memory"}, q("1")}}}))
        << "the name is in the driver's domain";
  }
}

TEST(Capacity, IsAskedForByTheNameItsSliceWrites) {
  Device device;
  device.capacities = {{{"d.com", "memory"}, Quantity::Whole(4), std::nullopt}};
  const std::vector<CapacityAmount> bare = {{{"", "memory"}, Quantity::Whole(1)}};
  const std::vector<CapacityAmount> full = {{{"d.com", "memory"}, Quantity::Whole(1)}};
  EXPECT_TRUE(ConsumedOf(device, "d.com", bare));
  EXPECT_FALSE(ConsumedOf(device, "d.com", full));
  device.capacities[0].with_domain = true;
  EXPECT_FALSE(ConsumedOf(device, "d.com", bare));
  EXPECT_TRUE(ConsumedOf(device, "d.com", full));
}

TEST(Capacity, FractionsOfARangeAreNoted) {
  Device device;
  device.capacities = {{{"d.com", "shares"}, Quantity::Whole(4), RequestPolicy()}};
  EXPECT_FALSE(HasFractionalRange(device));
  device.capacities[0].policy->range = {Quantity::Whole(1), std::nullopt, Quantity::Whole(1)};
  EXPECT_FALSE(HasFractionalRange(device));
  device.capacities[0].policy->range->step = Quantity::Milli(100);
  EXPECT_TRUE(HasFractionalRange(device));
}

TEST(Quantity, SaturatesInsteadOfStopping) {
  const Quantity most = Quantity::Milli(INT64_MAX);
  EXPECT_EQ(most + most, most);
  EXPECT_EQ(Quantity() - most - most, Quantity::Milli(-INT64_MAX));
  EXPECT_EQ(Quantity::Whole(INT64_MAX), most);
  EXPECT_EQ(ParseQuantity("9Ei"), std::nullopt);
  EXPECT_EQ(ParseQuantity("1.5"), Quantity::Milli(1500));
  EXPECT_EQ(Quantity::Milli(1500).whole(), 2);
}

TEST(Sharing, IsSaidInASentence) {
  Sharing sharing;
  EXPECT_EQ(Describe(sharing), "the containers of the claim share a GPU");
  sharing.strategy = Sharing::Strategy::kTimeSlicing;
  sharing.interval = "Long";
  EXPECT_EQ(Describe(sharing),
            "time-slicing: the containers of the claim take turns on a GPU, with Long time slices");
  sharing.target = Sharing::Target::kMig;
  EXPECT_EQ(Describe(sharing),
            "time-slicing has no effect on a MIG instance: the containers of the claim share it "
            "anyway");
  sharing.strategy = Sharing::Strategy::kMps;
  EXPECT_EQ(Describe(sharing),
            "MPS: the processes of the claim share a MIG instance without limits");
  sharing.target = Sharing::Target::kGpu;
  sharing.thread_percent = 50;
  sharing.pinned_memory = Mebibytes::Of(10240);
  sharing.pinned_memory_of = {{"0", Mebibytes::Of(5120)}};
  EXPECT_EQ(Describe(sharing),
            "MPS: each process gets at most 50% of the threads and 10240 MiB of a GPU; on device 0 "
            "5120 MiB");
  sharing.target = Sharing::Target::kVfio;
  EXPECT_EQ(Describe(sharing), "passed through to a virtual machine");
}

TEST(Extended, TheClassOfAKey) {
  std::vector<DeviceClass> classes = NvidiaClasses();
  classes[0].extended_resource = "nvidia.com/gpu";
  DeviceClass newer = ClassOf("b-gpu", {});
  newer.extended_resource = "nvidia.com/gpu";
  newer.created = Instant(std::chrono::hours(1));
  DeviceClass twin = newer;
  twin.name = "a-gpu";
  Selectors selectors(classes);
  ASSERT_NE(ServingClass("nvidia.com/gpu", selectors), nullptr);
  EXPECT_EQ(ServingClass("nvidia.com/gpu", selectors)->name, "gpu.nvidia.com");
  selectors.PutClass(newer);
  selectors.PutClass(twin);
  EXPECT_EQ(ServingClass("nvidia.com/gpu", selectors)->name, "a-gpu") << "latest, then by name";
  EXPECT_EQ(ServingClass("deviceclass.resource.kubernetes.io/mig.nvidia.com", selectors)->name,
            "mig.nvidia.com");
  EXPECT_EQ(ServingClass("deviceclass.resource.kubernetes.io/none", selectors), nullptr);
  EXPECT_EQ(ServingClass("amd.com/gpu", selectors), nullptr);
  EXPECT_EQ(ServingClass("", selectors), nullptr);
  const auto request = RequestOf({"main", "nvidia.com/gpu", 2}, 1, 0, selectors);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->name, "container-1-request-0");
  EXPECT_EQ(request->choices[0].count, 2);
}

TEST(Extended, OneGpuIsChargedOnce) {
  const std::vector<ExtendedAsk> asks = {{"main", "nvidia.com/gpu", 1},
                                         {"side", "nvidia.com/gpu", 1}};
  ExtendedStatus status{"pod-extended-resources-x",
                        {{"main", "nvidia.com/gpu", "container-0-request-0"}}};
  EXPECT_EQ(NotServed(asks, std::nullopt), asks);
  EXPECT_THAT(NotServed(asks, status), ElementsAre(asks[1]));
}

}  // namespace THIS_FILE
}  // namespace tranche::dra
