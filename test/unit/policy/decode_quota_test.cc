#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "policy/decode.h"
#include "policy/line_name.h"

namespace tranche {
namespace THIS_FILE {

using Form = QuotaAmount::Form;
using Slices = std::vector<std::pair<std::string, int64_t>>;

absl::StatusOr<GpuQuota> Decode(std::string_view spec) {
  return DecodeGpuQuota(R"({"metadata":{"name":"team-a","uid":"u1"},"spec":)" + std::string(spec) +
                        "}");
}

// A quota of one line of a model with the given nominal amount.
absl::StatusOr<GpuQuota> DecodeNominal(std::string_view model, std::string_view amount) {
  return Decode(R"({"lines":[{"model":")" + std::string(model) + R"(","nominal":)" +
                std::string(amount) + "}]}");
}

TEST(DecodeGpuQuotaTest, ReadsEveryField) {
  const auto quota = DecodeGpuQuota(R"({
    "apiVersion": "tranche.dev/v1alpha1", "kind": "GPUQuota",
    "metadata": {"name": "team-a", "uid": "6f1c", "generation": 3},
    "spec": {
      "parent": "research", "mode": "Observe",
      "namespaceSelector": {"matchLabels": {"team": "a"}},
      "lines": [
        {"model": "H200", "nominal": {"gpus": "8"}, "borrowLimit": {"gpus": "4.5"},
         "lendLimit": {"slices": {"1g.18gb": 7}}},
        {"model": "any", "nominal": {"gpus": 12}}],
      "weight": 2, "releasePolicy": "OnDeletionTimestamp",
      "reclaim": {"minRuntime": "45m", "crossLeafClassPreemption": {"enabled": true, "minRank": 4},
                  "fairSharePreemption": {"enabled": false},
                  "maxEvictionsPerHour": 7, "onShrink": "Reclaim"}},
    "status": {"lines": 5}})");
  ASSERT_TRUE(quota.ok()) << quota.status();
  EXPECT_EQ(quota->name, "team-a");
  EXPECT_EQ(quota->uid, "6f1c");
  EXPECT_EQ(quota->parent, "research");
  EXPECT_EQ(quota->mode, QuotaMode::kObserve);
  EXPECT_EQ(quota->namespaces, (LabelSelector{{{"team", "a"}}, {}}));
  ASSERT_EQ(quota->lines.size(), 2U);
  EXPECT_EQ(quota->lines[0].model, "any") << "lines stand in the order of their models";
  EXPECT_EQ(quota->lines[0].nominal.gpus, MilliGpu::Of(12000));
  EXPECT_FALSE(quota->lines[0].borrow_limit);
  EXPECT_FALSE(quota->lines[0].lend_limit);
  EXPECT_EQ(quota->lines[1].model, "h200");
  EXPECT_EQ(quota->lines[1].nominal.gpus, MilliGpu::Of(8000));
  EXPECT_EQ(quota->lines[1].borrow_limit->gpus, MilliGpu::Of(4500));
  EXPECT_EQ(quota->lines[1].lend_limit->form, Form::kSlices);
  EXPECT_EQ(quota->weight, 2);
  EXPECT_EQ(quota->release, ReleasePolicy::kOnDeletionTimestamp);
  EXPECT_EQ(quota->min_runtime, std::chrono::minutes(45));
  EXPECT_EQ(quota->cross_leaf_preemption, true);
  EXPECT_EQ(quota->cross_leaf_min_rank, 4);
  EXPECT_EQ(quota->fair_share_preemption, false);
  EXPECT_EQ(quota->max_evictions_per_hour, 7);
  EXPECT_EQ(quota->on_shrink, OnShrink::kReclaim);
}

TEST(DecodeGpuQuotaTest, AbsentFieldsHaveTheirDefaults) {
  const auto quota = Decode("{}");
  ASSERT_TRUE(quota.ok()) << quota.status();
  GpuQuota expected;
  expected.name = "team-a";
  expected.uid = "u1";
  EXPECT_EQ(*quota, expected);
  EXPECT_FALSE(quota->namespaces) << "no selector is no leaf";
  EXPECT_TRUE(Decode(R"({"namespaceSelector":{}})")->namespaces) << "an empty one is a leaf of all";
}

TEST(DecodeGpuQuotaTest, AnAmountIsADecimalOrAWholeNumber) {
  const struct {
    std::string_view gpus;
    int64_t milli;
  } kCases[] = {{R"("0")", 0},          {R"("8")", 8000},     {"8", 8000},
                {R"("7.5")", 7500},     {R"("7.05")", 7050},  {R"("7.125")", 7125},
                {R"("0.001")", 1},      {R"("8.000")", 8000}, {R"("9999999.999")", 9999999999},
                {"9999999", 9999999000}};
  for (const auto& c : kCases) {
    const auto quota = DecodeNominal("h200", R"({"gpus":)" + std::string(c.gpus) + "}");
    ASSERT_TRUE(quota.ok()) << c.gpus << ": " << quota.status();
    EXPECT_EQ(quota->lines[0].nominal.gpus.count(), c.milli) << c.gpus;
  }
  for (const std::string_view gpus : {R"("")",
                                      R"("8,5")",
                                      R"(".5")",
                                      R"("8.")",
                                      R"("8.0000")",
                                      R"("-1")",
                                      R"("+1")",
                                      R"("1e1")",
                                      R"(" 1")",
                                      R"("1 ")",
                                      R"("0x1")",
                                      R"("10000000")",
                                      R"("99999999999999999999")",
                                      "-1",
                                      "10000000",
                                      "9223372036854775807",
                                      "1.5",
                                      "true",
                                      "[]",
                                      "{}"}) {
    EXPECT_FALSE(DecodeNominal("h200", R"({"gpus":)" + std::string(gpus) + "}").ok()) << gpus;
  }
}

TEST(DecodeGpuQuotaTest, MemoryIsAQuantityOfBytesInMebibytes) {
  const struct {
    std::string_view memory;
    int64_t mib;
  } kCases[] = {
      {R"("160Gi")", 163840}, {R"("1Mi")", 1}, {R"("1.5Gi")", 1536}, {R"("2G")", 1907},
      {R"("1048577")", 1},    {"1048576", 1},  {R"("80e9")", 76293}, {R"("256Pi")", 274877906944}};
  for (const auto& c : kCases) {
    const auto quota = DecodeNominal("h200", R"({"gpuMemory":)" + std::string(c.memory) + "}");
    ASSERT_TRUE(quota.ok()) << c.memory << ": " << quota.status();
    EXPECT_EQ(quota->lines[0].nominal.form, Form::kMemory);
    EXPECT_EQ(quota->lines[0].nominal.memory.count(), c.mib) << c.memory;
  }
  for (const std::string_view memory :
       {R"("0")", R"("1023Ki")", R"("80GB")", R"("-80Gi")", "0", "1.5", R"("257Pi")", R"("8Ei")"}) {
    EXPECT_FALSE(DecodeNominal("h200", R"({"gpuMemory":)" + std::string(memory) + "}").ok())
        << memory;
  }
}

TEST(DecodeGpuQuotaTest, SlicesAreKeptUnderTheCanonicalNamesOfTheModel) {
  const struct {
    std::string_view model, slices;
    Slices expected;
  } kCases[] = {
      {"h200", R"({"3g.71gb":1,"1g.18gb":7})", {{"1g.18gb", 7}, {"3g.71gb", 1}}},
      {"H200", R"({"1g.18gb":0})", {{"1g.18gb", 0}}},
      {"a100-80gb", R"({"3g.39gb":2})", {{"3g.40gb", 2}}},
      {"h100", R"({"1g.10gb.me":1,"1g.10gb":6})", {{"1g.10gb", 6}, {"1g.10gb+me", 1}}},
      {"h20", R"({"1g.12gb":1,"1g.18gb":2})", {{"1g.12gb", 1}, {"1g.18gb", 2}}},
      {"rtx-pro-6000", R"({"1g.24gb-me":4})", {{"1g.24gb-me", 4}}},
  };
  for (const auto& c : kCases) {
    const auto quota = DecodeNominal(c.model, R"({"slices":)" + std::string(c.slices) + "}");
    ASSERT_TRUE(quota.ok()) << c.slices << ": " << quota.status();
    EXPECT_EQ(quota->lines[0].nominal.form, Form::kSlices);
    EXPECT_EQ(quota->lines[0].nominal.slices, c.expected);
  }
}

TEST(DecodeGpuQuotaTest, ADurationIsWrittenAsInGo) {
  const struct {
    std::string_view text;
    int64_t millis;
  } kCases[] = {{"30m", 1800000},  {"1h30m", 5400000},      {"120s", 120000},
                {"0s", 0},         {"1500ms", 1500},        {"1h2m3s4ms", 3723004},
                {"90s1m", 150000}, {"99999h", 359996400000}};
  for (const auto& c : kCases) {
    const auto quota = Decode(R"({"reclaim":{"minRuntime":")" + std::string(c.text) + "\"}}");
    ASSERT_TRUE(quota.ok()) << c.text << ": " << quota.status();
    EXPECT_EQ(quota->min_runtime->count(), c.millis) << c.text;
  }
  for (const std::string_view text :
       {R"("")", R"("30")", R"("m")", R"("1.5h")", R"("-1h")", R"("1d")", R"("1h ")", R"("1h30")",
        R"("100000s")", R"("1h1h1h1h1h")", R"("1H")", "30", "0", "{}"}) {
    const auto quota = Decode(R"({"reclaim":{"minRuntime":)" + std::string(text) + "}}");
    ASSERT_FALSE(quota.ok()) << text;
    EXPECT_EQ(quota.status().message().find(
                  "spec.reclaim.minRuntime: expected a duration in h, m, s and ms such as"),
              0U)
        << quota.status();
  }
}

TEST(DecodeGpuQuotaTest, LinesMayBeOfAPool) {
  const auto quota = DecodeGpuQuota(R"({"metadata": {"name": "team-a"}, "spec": {"lines": [
      {"model": "H200", "pool": "spot-eu", "nominal": {"gpus": "4"}},
      {"model": "h200", "pool": "", "nominal": {"gpus": "8"}},
      {"model": "", "pool": "spot-eu", "nominal": {"gpus": "2"}},
      {"pool": "a", "nominal": {"gpus": "1"}}]}})");
  ASSERT_TRUE(quota.ok()) << quota.status();
  std::vector<std::string> names;
  for (const QuotaLine& line : quota->lines) names.push_back(LineName(line.model, line.pool));
  EXPECT_THAT(names, testing::ElementsAre("any@a", "any@spot-eu", "h200", "h200@spot-eu"));
}

TEST(DecodeGpuQuotaTest, RefusalsNameTheFieldTheRuleAndTheValue) {
  const struct {
    std::string_view spec, message;
  } kCases[] = {
      {R"({"lines":[{"model":"h200","nominal":{"gpus":"8,5"}}]})",
       "spec.lines[0].nominal.gpus: expected a decimal with at most 3 decimals, found \"8,5\""},
      {R"({"lines":[{"model":"h200","nominal":{"gpus":7.5}}]})",
       "spec.lines[0].nominal.gpus: expected a decimal as text or a whole number, found 7.5"},
      {R"({"lines":[{"model":"h200","nominal":{"gpus":"10000000"}}]})",
       "spec.lines[0].nominal.gpus: expected 0..9999999.999, found \"10000000\""},
      {R"({"lines":[{"model":"h200","nominl":{"gpus":"8"}}]})",
       "spec.lines[0].nominal: expected one of gpus, slices, gpuMemory, found nothing; "
       "spec.lines[0].nominl: expected one of model, pool, nominal, borrowLimit, lendLimit, found "
       "an unknown field"},
      {R"({"lines":[{"nominal":{"gpus":"8"}}]})",
       "spec.lines[0].model: expected a GPU model name or \"any\", found nothing"},
      {R"({"lines":[{"model":"h200/sxm","nominal":{"gpus":"8"}}]})",
       "spec.lines[0].model: expected a GPU model name or \"any\", found \"h200/sxm\""},
      {R"({"lines":[{"model":"h200","nominal":{"gpus":"1"}},
                    {"model":"H200","nominal":{"gpus":"1"}}]})",
       "spec.lines[1]: expected every model and pool once, found "
       "{\"model\":\"H200\",\"nominal\":{\"gpus\":\"1\"}}"},
      {R"({"lines":[{"pool":"spot","nominal":{"gpus":"1"}},
                    {"model":"any","pool":"spot","nominal":{"gpus":"1"}}]})",
       "spec.lines[1]: expected every model and pool once, found "
       "{\"model\":\"any\",\"pool\":\"spot\",\"nominal\":{\"gpus\":\"1\"}}"},
      {R"({"lines":[{"model":"h200","pool":"Spot","nominal":{"gpus":"8"}}]})",
       "spec.lines[0].pool: expected a name of a-z, 0-9, - and ., found \"Spot\""},
      {R"({"lines":[{"model":"h200","nominal":{"gpus":"1"}},
                    {"model":"h200","pool":"eu_west","nominal":{"gpus":"1"}}]})",
       "spec.lines[1].pool: expected a name of a-z, 0-9, - and ., found \"eu_west\""},
      {R"({"lines":[{"model":"","pool":"","nominal":{"gpus":"8"}}]})",
       "spec.lines[0].model: expected a GPU model name or \"any\", found \"\""},
      {R"({"lines":[{"pool":"spot","nominal":{"gpuMemory":"8Gi"}}]})",
       "spec.lines[0].nominal.gpuMemory: expected gpus on the line any, whose GPUs differ in "
       "memory, found \"8Gi\""},
      {R"({"lines":[{"model":"h200","nominal":{}}]})",
       "spec.lines[0].nominal: expected exactly one of gpus, slices, gpuMemory, found {}"},
      {R"({"lines":[{"model":"h200","nominal":{"gpus":"1","gpuMemory":"1Gi"}}]})",
       "spec.lines[0].nominal: expected exactly one of gpus, slices, gpuMemory, found "
       "{\"gpus\":\"1\",\"gpuMemory\":\"1Gi\"}"},
      {R"({"lines":[{"model":"any","nominal":{"slices":{"1g.18gb":1}}}]})",
       "spec.lines[0].nominal.slices: expected gpus on the line any, whose GPUs have no slices in "
       "common, found {\"1g.18gb\":1}"},
      {R"({"lines":[{"model":"any","nominal":{"gpus":"1"},"borrowLimit":{"gpuMemory":"1Gi"}}]})",
       "spec.lines[0].borrowLimit.gpuMemory: expected gpus on the line any, whose GPUs differ in "
       "memory, found \"1Gi\""},
      {R"({"lines":[{"model":"h200","nominal":{"slices":{"1g.5gb":1}}}]})",
       "spec.lines[0].nominal.slices.1g.5gb: expected a MIG profile of h200 (1g.18gb, 1g.18gb+me, "
       "1g.35gb, 2g.35gb, 3g.71gb, 4g.71gb, 7g.141gb) as key, found 1"},
      {R"({"lines":[{"model":"l4","nominal":{"slices":{"1g.5gb":1}}}]})",
       "spec.lines[0].nominal.slices.1g.5gb: expected gpus, since no MIG profile of l4 is known, "
       "found 1"},
      {R"({"lines":[{"model":"h200","nominal":{"slices":{"1g.18gb":100001}}}]})",
       "spec.lines[0].nominal.slices.1g.18gb: expected 0..100000, found 100001"},
      {R"({"lines":[{"model":"a100-80gb","nominal":{"slices":{"3g.39gb":1,"3g.40gb":1}}}]})",
       "spec.lines[0].nominal.slices.3g.40gb: expected every profile once, and 3g.40gb stands "
       "here twice, found 1"},
      {R"({"lines":[{"model":"h200","nominal":{"slices":{}}}]})",
       "spec.lines[0].nominal.slices: expected 1..32 MIG profiles and their counts, found {}"},
      {R"({"parent":"team-a"})",
       "spec.parent: expected another quota than the object itself, found \"team-a\""},
      {R"({"weight":-1,"mode":"On"})",
       "spec.mode: expected one of Enforce, Observe, Off, found \"On\"; "
       "spec.weight: expected 0..1000000, found -1"},
      {R"({"reclaim":{"crossLeafClassPreemption":{"enabled":"true"}}})",
       "spec.reclaim.crossLeafClassPreemption.enabled: expected true or false, found \"true\""},
      {R"({"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"In"}]}})",
       "spec.namespaceSelector.matchExpressions[0]: expected values with In and NotIn, found "
       "{\"key\":\"a\",\"operator\":\"In\"}"},
      {R"({"namespaceSelector":{"matchExpressions":[{"key":"a","operator":"Like"}]}})",
       "spec.namespaceSelector.matchExpressions[0].operator: expected one of In, NotIn, Exists, "
       "DoesNotExist, found \"Like\""},
      {R"({"namespaceSelector":{"matchLabels":{"team":3}}})",
       "spec.namespaceSelector.matchLabels.team: expected a label's value, found 3"},
  };
  for (const auto& c : kCases) {
    const auto quota = Decode(c.spec);
    ASSERT_FALSE(quota.ok()) << c.spec;
    EXPECT_EQ(std::string(quota.status().message()), c.message);
    EXPECT_TRUE(absl::IsInvalidArgument(quota.status()));
  }
}

TEST(DecodeGpuQuotaTest, NameAndSpecMustBeThere) {
  const struct {
    std::string_view json, message;
  } kCases[] = {
      {R"({"spec":{}})", "metadata: expected an object with a name, found nothing"},
      {R"({"metadata":{},"spec":{}})", "metadata.name: expected a name, found nothing"},
      {R"({"metadata":{"name":"a"}})", "spec: expected an object, found nothing"},
      {R"({"metadata":{"name":"a"},"spec":null})", "spec: expected an object, found nothing"},
      {R"({"kind":"GPUBudget","metadata":{"name":"a"},"spec":{}})",
       "kind: expected \"GPUQuota\", found \"GPUBudget\""},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(std::string(DecodeGpuQuota(c.json).status().message()), c.message);
  }
}

TEST(DecodeGpuQuotaTest, ListsHaveAnEnd) {
  std::string lines;
  for (int i = 0; i < 65; ++i) {
    lines += (i == 0 ? "" : ",") + std::string(R"({"model":"m)") + std::to_string(i) +
             R"(","nominal":{"gpus":1}})";
    const auto quota = Decode("{\"lines\":[" + lines + "]}");
    EXPECT_EQ(quota.ok(), i < 64) << i;
  }
}

TEST(DecodeGpuQuotaTest, ASwitchThatIsNotWrittenIsLeftToTheParent) {
  for (const std::string_view reclaim :
       {"{}", R"({"crossLeafClassPreemption":{},"fairSharePreemption":{}})",
        R"({"crossLeafClassPreemption":{"minRank":2},"fairSharePreemption":{"enabled":null}})"}) {
    const auto quota = Decode(R"({"reclaim":)" + std::string(reclaim) + "}");
    ASSERT_TRUE(quota.ok()) << quota.status();
    EXPECT_EQ(quota->cross_leaf_preemption, std::nullopt) << reclaim;
    EXPECT_EQ(quota->fair_share_preemption, std::nullopt) << reclaim;
  }
  const auto quota = Decode(R"({"reclaim":{"crossLeafClassPreemption":{"enabled":false},)"
                            R"("fairSharePreemption":{"enabled":true}}})");
  ASSERT_TRUE(quota.ok()) << quota.status();
  EXPECT_EQ(quota->cross_leaf_preemption, false);
  EXPECT_EQ(quota->fair_share_preemption, true);
}

}  // namespace THIS_FILE
}  // namespace tranche
