#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "policy/decode.h"

namespace tranche {
namespace THIS_FILE {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using Modes = std::vector<SharingMode>;

constexpr SharingMode kExclusive = SharingMode::kExclusive;
constexpr SharingMode kMig = SharingMode::kMig;
constexpr SharingMode kMps = SharingMode::kMps;
constexpr SharingMode kTimeSliced = SharingMode::kTimeSliced;

absl::StatusOr<GpuClass> DecodeNamed(const std::string& name, std::string_view spec) {
  return DecodeGpuClass(R"({"metadata":{"name":")" + name + R"("},"spec":)" + std::string(spec) +
                        "}");
}

TEST(DecodeGpuClassTest, ReadsEveryField) {
  const auto found = DecodeNamed("batch", R"({
    "priorityClassNames": ["gpu-batch", "gpu-batch-long"], "rank": 5, "preemptible": "OverQuota",
    "sharing": ["MPS", "TimeSliced"], "minRuntime": "30m", "gracePeriod": "120s",
    "cooldown": "20m", "patience": "15m", "maxEvictionsPerDay": 3,
    "lostWorkCap": "50m", "restartOverhead": "3m",
    "assumedLossPercentile": 75, "idleAfter": "1h", "maxRuntime": "8h", "chargeFactor": "1.25"})");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->name, "batch");
  EXPECT_EQ(found->priority_classes, (std::vector<std::string>{"gpu-batch", "gpu-batch-long"}));
  EXPECT_EQ(found->rank, 5);
  EXPECT_EQ(found->preemptible, Preemptible::kOverQuota);
  EXPECT_EQ(found->sharing, (Modes{kMps, kTimeSliced}));
  EXPECT_EQ(found->min_runtime, minutes(30));
  EXPECT_EQ(found->grace_period, seconds(120));
  EXPECT_EQ(found->cooldown, minutes(20));
  EXPECT_EQ(found->patience, minutes(15));
  EXPECT_EQ(found->max_evictions_per_day, 3);
  EXPECT_EQ(found->lost_work_cap, minutes(50));
  EXPECT_EQ(found->restart_overhead, minutes(3));
  EXPECT_EQ(found->assumed_loss_percentile, 75);
  EXPECT_EQ(found->idle_after, hours(1));
  EXPECT_EQ(found->max_runtime, hours(8));
  EXPECT_EQ(found->charge_factor, 1250);
}

TEST(DecodeGpuClassTest, TheNameSaysWhatAbsentFieldsAre) {
  const struct {
    std::string name;
    int rank;
    Preemptible preemptible;
    Modes sharing;
    Millis min_runtime, cooldown, lost_work_cap;
    std::optional<Millis> grace, max_runtime;
    int64_t charge_factor;
  } kCases[] = {
      {"inference-prod",
       3,
       Preemptible::kNever,
       {kMig, kMps, kExclusive},
       minutes(0),
       minutes(10),
       hours(1),
       seconds(60),
       std::nullopt,
       1000},
      {"training",
       2,
       Preemptible::kAlways,
       {kExclusive, kMig},
       minutes(30),
       minutes(10),
       hours(1),
       std::nullopt,
       std::nullopt,
       1000},
      {"notebook",
       1,
       Preemptible::kAlways,
       {kTimeSliced, kMps, kMig, kExclusive},
       minutes(10),
       minutes(10),
       minutes(10),
       std::nullopt,
       hours(8),
       1000},
      {"scavenger",
       0,
       Preemptible::kAlways,
       {kExclusive, kMig, kMps, kTimeSliced},
       minutes(0),
       minutes(10),
       hours(1),
       std::nullopt,
       std::nullopt,
       250},
      {"other",
       2,
       Preemptible::kAlways,
       {kExclusive, kMig, kMps, kTimeSliced},
       minutes(0),
       minutes(10),
       hours(1),
       std::nullopt,
       std::nullopt,
       1000},
  };
  for (const auto& c : kCases) {
    const auto found = DecodeNamed(c.name, "{}");
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, DefaultClass(c.name));
    EXPECT_EQ(found->name, c.name);
    EXPECT_EQ(found->rank, c.rank) << c.name;
    EXPECT_EQ(found->preemptible, c.preemptible) << c.name;
    EXPECT_EQ(found->sharing, c.sharing) << c.name;
    EXPECT_EQ(found->min_runtime, c.min_runtime) << c.name;
    EXPECT_EQ(found->cooldown, c.cooldown) << c.name;
    EXPECT_EQ(found->patience, minutes(c.name == "inference-prod" ? 0 : 30)) << c.name;
    EXPECT_EQ(found->lost_work_cap, c.lost_work_cap) << c.name;
    EXPECT_EQ(found->grace_period, c.grace) << c.name;
    EXPECT_EQ(found->max_runtime, c.max_runtime) << c.name;
    EXPECT_EQ(found->charge_factor, c.charge_factor) << c.name;
  }
  EXPECT_EQ(DecodeNamed("scavenger", R"({"rank":1})")->charge_factor, 250) << "a field at a time";
}

TEST(DecodeGpuClassTest, WhatAClassBearsAndInWhichOrder) {
  constexpr CapacityType kTypes[] = {CapacityType::kOnDemand, CapacityType::kReserved,
                                     CapacityType::kSpot};
  const struct {
    std::string_view spec;
    std::array<int, 3> choice;  // on demand, reserved, spot; -1: not borne
  } kCases[] = {
      {"{}", {0, 0, 0}},
      {R"({"interruptible":true})", {0, 0, 0}},
      {R"({"interruptible":false})", {0, 0, -1}},
      {R"({"capacity":["spot"]})", {-1, -1, 0}},
      {R"({"capacity":["spot","on-demand"]})", {1, -1, 0}},
      {R"({"capacity":["reserved","on-demand"],"interruptible":false})", {1, 0, -1}},
      {R"({"interruptible":true,"capacity":["reserved","spot","on-demand"]})", {2, 0, 1}},
  };
  for (const auto& c : kCases) {
    const auto found = DecodeNamed("batch", c.spec);
    ASSERT_TRUE(found.ok()) << found.status();
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(CapacityChoice(&*found, kTypes[i]).value_or(-1), c.choice[i]) << c.spec;
      EXPECT_EQ(CapacityChoice(nullptr, kTypes[i]), 0) << "work of no class";
    }
  }
}

TEST(DecodeGpuClassTest, RefusalsNameTheFieldTheRuleAndTheValue) {
  const struct {
    std::string_view spec, message;
  } kCases[] = {
      {R"({"rank":1001})", "spec.rank: expected 0..1000, found 1001"},
      {R"({"rank":"2"})", "spec.rank: expected 0..1000, found \"2\""},
      {R"({"preemptible":"Sometimes"})",
       "spec.preemptible: expected one of Never, Always, OverQuota, OverNominal, "
       "found \"Sometimes\""},
      {R"({"sharing":[]})", "spec.sharing: expected 1..4 items, found []"},
      {R"({"sharing":["MIG","MIG"]})", "spec.sharing[1]: expected every item once, found \"MIG\""},
      {R"({"sharing":["mig"]})",
       "spec.sharing[0]: expected one of Exclusive, MIG, MPS, TimeSliced, found \"mig\""},
      {R"({"priorityClassNames":["a","b","a"]})",
       "spec.priorityClassNames[2]: expected every item once, found \"a\""},
      {R"({"priorityClassNames":["GPU_training"]})",
       "spec.priorityClassNames[0]: expected a name of a-z, 0-9, - and ., found \"GPU_training\""},
      {R"({"assumedLossPercentile":101})",
       "spec.assumedLossPercentile: expected 0..100, found 101"},
      {R"({"chargeFactor":"-0.5"})",
       "spec.chargeFactor: expected a decimal with at most 3 decimals, found \"-0.5\""},
      {R"({"chargeFactor":10000})", "spec.chargeFactor: expected 0..9999.999, found 10000"},
      {R"({"capacity":[]})", "spec.capacity: expected 1..3 items, found []"},
      {R"({"capacity":["spot","spot"]})",
       "spec.capacity[1]: expected every item once, found \"spot\""},
      {R"({"capacity":["Spot"]})",
       "spec.capacity[0]: expected one of spot, on-demand, reserved, found \"Spot\""},
      {R"({"interruptible":false,"capacity":["on-demand","spot"]})",
       "spec.interruptible: expected true where capacity names spot, found false"},
      {R"({"maxRuntime":"8 hours"})",
       "spec.maxRuntime: expected a duration in h, m, s and ms such as \"1h30m\", found "
       "\"8 hours\""},
  };
  for (const auto& c : kCases) {
    const auto found = DecodeNamed("batch", c.spec);
    ASSERT_FALSE(found.ok()) << c.spec;
    EXPECT_EQ(std::string(found.status().message()), c.message);
  }
}

}  // namespace THIS_FILE
}  // namespace tranche
