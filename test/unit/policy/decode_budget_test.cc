#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "policy/decode.h"

namespace tranche {
namespace THIS_FILE {

absl::StatusOr<GpuBudget> DecodeSpec(std::string_view spec) {
  return DecodeGpuBudget(R"({"metadata":{"name":"monthly"},"spec":)" + std::string(spec) + "}");
}

// The fields that must be there, and then some.
absl::StatusOr<GpuBudget> DecodeWith(std::string_view fields) {
  return DecodeSpec(R"({"quotaRef":"team-a","gpuHours":"100",)" + std::string(fields) + "}");
}

TEST(DecodeGpuBudgetTest, ReadsEveryField) {
  const auto budget = DecodeGpuBudget(R"({
    "apiVersion": "tranche.dev/v1alpha1", "kind": "GPUBudget",
    "metadata": {"name": "team-a-monthly", "uid": "b1"},
    "spec": {"quotaRef": "team-a", "gpuHours": "1000.5",
      "window": {"type": "Week", "timeZone": "Europe/Paris"},
      "rates": {"L4": "0.15", "h200": 2}, "rollover": {"maxPercent": 25, "maxWindows": 3},
      "maxDebtPercent": 30, "notifyAtPercent": [50, 80, 95], "meterFrom": "Running",
      "onExhaustion": "Drain"}})");
  ASSERT_TRUE(budget.ok()) << budget.status();
  EXPECT_EQ(budget->name, "team-a-monthly");
  EXPECT_EQ(budget->uid, "b1");
  EXPECT_EQ(budget->quota_ref, "team-a");
  EXPECT_EQ(budget->ns, "");
  EXPECT_EQ(budget->milli_gpu_hours, 1000500);
  EXPECT_EQ(budget->window.type, BudgetWindow::Type::kWeek);
  EXPECT_EQ(budget->window.zone.name(), "Europe/Paris");
  EXPECT_EQ(budget->rates,
            (std::vector<std::pair<std::string, int64_t>>{{"h200", 2000}, {"l4", 150}}));
  EXPECT_EQ(budget->rollover_max_percent, 25);
  EXPECT_EQ(budget->rollover_max_windows, 3);
  EXPECT_EQ(budget->max_debt_percent, 30);
  EXPECT_EQ(budget->notify_at_percent, (std::vector<int>{50, 80, 95}));
  EXPECT_EQ(budget->meter_from, MeterFrom::kRunning);
  EXPECT_EQ(budget->on_exhaustion, OnExhaustion::kDrain);
}

TEST(DecodeGpuBudgetTest, AbsentFieldsHaveTheirDefaults) {
  const auto budget = DecodeSpec(R"({"namespace":"prod","gpuHours":12})");
  ASSERT_TRUE(budget.ok()) << budget.status();
  GpuBudget expected;
  expected.name = "monthly";
  expected.ns = "prod";
  expected.milli_gpu_hours = 12000;
  EXPECT_EQ(*budget, expected);
  EXPECT_EQ(budget->window.type, BudgetWindow::Type::kMonth);
  EXPECT_EQ(budget->window.zone.name(), "UTC");
  EXPECT_EQ(budget->on_exhaustion, OnExhaustion::kDemote);
}

TEST(DecodeGpuBudgetTest, ARollingWindowLastsFromAnHourToThirtyOneDays) {
  const struct {
    std::string_view duration;
    bool good;
  } kCases[] = {{"1h", true},      {"24h", true},   {"744h", true}, {"59m", false},
                {"59m59s", false}, {"745h", false}, {"0s", false}};
  for (const auto& c : kCases) {
    const auto budget =
        DecodeWith(R"("window":{"type":"Rolling","duration":")" + std::string(c.duration) + "\"}");
    EXPECT_EQ(budget.ok(), c.good) << c.duration << ": " << budget.status();
  }
  EXPECT_EQ(DecodeWith(R"("window":{"type":"Rolling","duration":"24h"})")->window.duration,
            std::chrono::hours(24));
}

TEST(DecodeGpuBudgetTest, RefusalsNameTheFieldTheRuleAndTheValue) {
  const struct {
    std::string_view fields, message;
  } kCases[] = {
      {R"("namespace":"prod")",
       "spec: expected exactly one of quotaRef and namespace, found "
       "{\"quotaRef\":\"team-a\",\"gpuHours\":\"100\",\"namespace\":\"prod\"}"},
      {R"("quotaRef":"Team A")",
       "spec.quotaRef: expected a name of a-z, 0-9, - and ., found \"Team A\""},
      {R"("gpuHours":"100.0001")",
       "spec.gpuHours: expected a decimal with at most 3 decimals, found \"100.0001\""},
      {R"("gpuHours":-1)", "spec.gpuHours: expected 0..999999999.999, found -1"},
      {R"("window":{"type":"Year"})",
       "spec.window.type: expected one of Day, Week, Month, Rolling, found \"Year\""},
      {R"("window":{"type":"Rolling"})",
       "spec.window: expected a duration with type Rolling, found {\"type\":\"Rolling\"}"},
      {R"("window":{"duration":"24h"})",
       "spec.window: expected a duration with type Rolling only, found {\"duration\":\"24h\"}"},
      {R"("window":{"type":"Rolling","duration":"745h"})",
       "spec.window.duration: expected 1h..744h, found \"745h\""},
      {R"("window":{"timeZone":"Mars/Olympus"})",
       "spec.window.timeZone: expected a time zone this machine knows, such as \"Europe/Paris\", "
       "found \"Mars/Olympus\""},
      {R"("window":{"type":"Rolling","duration":"24h"},"rollover":{"maxPercent":1})",
       "spec.rollover: expected no rollover with a window of type Rolling, found "
       "{\"maxPercent\":1}"},
      {R"("rollover":{"maxPercent":1001,"maxWindows":13})",
       "spec.rollover.maxPercent: expected 0..1000, found 1001; "
       "spec.rollover.maxWindows: expected 0..12, found 13"},
      {R"("rates":{"any":"1"})",
       "spec.rates.any: expected as key a GPU model name, or MODEL@POOL or any@POOL for the GPUs "
       "of "
       "a pool, found \"1\""},
      {R"("rates":{"h200 sxm":"1"})",
       "spec.rates.h200 sxm: expected as key a GPU model name, or MODEL@POOL or any@POOL for the "
       "GPUs of a pool, found \"1\""},
      {R"("rates":{"h200@":"1"})",
       "spec.rates.h200@: expected as key a GPU model name, or MODEL@POOL or any@POOL for the GPUs "
       "of a pool, found \"1\""},
      {R"("rates":{"h200@Spot":"1"})",
       "spec.rates.h200@Spot: expected as key a GPU model name, or MODEL@POOL or any@POOL for the "
       "GPUs of a pool, found \"1\""},
      {R"("rates":{"h200":"1","H200":"2"})",
       "spec.rates.h200: expected every model and pool once, found \"1\""},
      {R"("rates":{"h200@a":"1","H200@a":"2"})",
       "spec.rates.h200@a: expected every model and pool once, found \"1\""},
      {R"("rates":{"h200":"0.1234"})",
       "spec.rates.h200: expected a decimal with at most 3 decimals, found \"0.1234\""},
      {R"("maxDebtPercent":101)", "spec.maxDebtPercent: expected 0..100, found 101"},
      {R"("notifyAtPercent":[0])", "spec.notifyAtPercent[0]: expected 1..1000, found 0"},
      {R"("notifyAtPercent":[50,50])",
       "spec.notifyAtPercent[1]: expected ascending percents, more than 50 here, found 50"},
      {R"("notifyAtPercent":[1,2,3,4,5,6,7,8,9,10,11])",
       "spec.notifyAtPercent: expected 0..10 items, found [1,2,3,4,5,6,7,8,9,10,11]"},
      {R"("meterFrom":"Start")", "spec.meterFrom: expected one of Bind, Running, found \"Start\""},
      {R"("onExhausted":"Block")",
       "spec.onExhausted: expected one of quotaRef, namespace, gpuHours, window, rates, rollover, "
       "maxDebtPercent, notifyAtPercent, meterFrom, onExhaustion, found an unknown field"},
  };
  for (const auto& c : kCases) {
    const auto budget = DecodeWith(c.fields);
    ASSERT_FALSE(budget.ok()) << c.fields;
    EXPECT_EQ(std::string(budget.status().message()), c.message);
  }
  EXPECT_EQ(std::string(DecodeSpec(R"({"namespace":"a.b"})").status().message()),
            "spec.namespace: expected a namespace's name of a-z, 0-9 and -, found \"a.b\"; "
            "spec.gpuHours: expected a decimal, found nothing");
}

}  // namespace THIS_FILE
}  // namespace tranche
