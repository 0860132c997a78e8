#include "scheduler/api/burn_down.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tranche {
namespace THIS_FILE {

using std::chrono::hours;

const Instant kStart = Instant(hours(500'000));

// A window of sixty hours, so that a step is an hour; it is hour 10.
BudgetCase TenHoursIn() {
  BudgetCase budget;
  budget.report.spec.name = "monthly";
  budget.report.spec.quota_ref = "org";
  budget.report.spec.rates = {{"a100", 500}};
  budget.report.view.window = {kStart, kStart + hours(60)};
  budget.report.view.effective = kGpuHour * 100;
  budget.leaves = {"org", "team"};
  budget.factors = {{"evaluation", 500}};
  budget.now = kStart + hours(10);
  return budget;
}

// One GPU of `model`, from and to in hours of the window; to < 0: still held.
ledger::ExportRow Row(int from, int to, const std::string& model = "h100") {
  ledger::ExportRow row;
  row.interval.leaf = "team";
  row.interval.pod = {"ns", "p"};
  row.interval.parts = {{model, {kQuantaPerGpu, kQuantaPerGpu}}};
  row.interval.since = kStart + hours(from);
  if (to >= 0) row.end = kStart + hours(to);
  return row;
}

// Used by the end of each full hour, in GPU-hours.
std::vector<std::string> Curve(const BudgetCase& budget,
                               const std::vector<ledger::ExportRow>& rows) {
  BurnDown sums(budget);
  for (const ledger::ExportRow& row : rows) sums.Add(row);
  std::vector<std::string> curve;
  const std::vector<BurnDown::Point> points = sums.Points();
  for (std::size_t i = 1; i + 1 < points.size(); ++i)
    curve.push_back(FormatGpuHours(points[i].used));
  return curve;
}

std::string After(const BudgetCase& budget, const ledger::ExportRow& row, std::size_t full_hours) {
  return Curve(budget, {row}).at(full_hours - 1);
}

TEST(BurnDownTest, AddsUpWhatWasHeldInsideTheWindow) {
  const BudgetCase budget = TenHoursIn();
  EXPECT_EQ(Curve(budget, {Row(2, 4), Row(3, -1)}),
            (std::vector<std::string>{"0.000", "0.000", "1.000", "3.000", "4.000", "5.000", "6.000",
                                      "7.000", "8.000"}));
  EXPECT_EQ(After(budget, Row(-5, 3), 9), "3.000") << "what was before the window is not counted";
}

TEST(BurnDownTest, WeighsModelsAndClasses) {
  const BudgetCase budget = TenHoursIn();
  EXPECT_EQ(After(budget, Row(0, 4, "a100"), 9), "2.000");
  ledger::ExportRow cheap = Row(0, 4);
  cheap.interval.workload_class = "evaluation";
  EXPECT_EQ(After(budget, cheap, 9), "2.000");
  cheap.interval.workload_class = "unknown";
  EXPECT_EQ(After(budget, cheap, 9), "4.000");
}

TEST(BurnDownTest, TheLargerDimensionCounts) {
  ledger::ExportRow row = Row(0, 4);
  row.interval.parts = {{"h100", {0, kQuantaPerGpu / 2}}};
  EXPECT_EQ(After(TenHoursIn(), row, 9), "2.000");
}

TEST(BurnDownTest, MetersItsOwnPodsOnly) {
  BudgetCase budget = TenHoursIn();
  ledger::ExportRow other = Row(0, 4);
  other.interval.leaf = "elsewhere";
  EXPECT_EQ(After(budget, other, 9), "0.000");
  budget.report.spec.quota_ref = "";
  budget.report.spec.ns = "ns";
  EXPECT_EQ(After(budget, other, 9), "4.000");
  other.interval.pod.ns = "elsewhere";
  EXPECT_EQ(After(budget, other, 9), "0.000");
}

TEST(BurnDownTest, LostWorkThatIsGivenBackWasTheNewest) {
  ledger::ExportRow row = Row(0, 4);
  const GpuTime hour = RateOf(row.interval.parts.front().charge, kUnitWeight) * Millis(hours(1));
  row.refunded = hour;
  EXPECT_EQ(Curve(TenHoursIn(), {row}),
            (std::vector<std::string>{"1.000", "2.000", "3.000", "3.000", "3.000", "3.000", "3.000",
                                      "3.000", "3.000"}));
}

TEST(BurnDownTest, MayCountFromWhenContainersRun) {
  BudgetCase budget = TenHoursIn();
  budget.report.spec.meter_from = MeterFrom::kRunning;
  ledger::ExportRow row = Row(0, 4);
  EXPECT_EQ(After(budget, row, 9), "0.000");
  row.interval.running = kStart + hours(3);
  EXPECT_EQ(After(budget, row, 9), "1.000");
}

TEST(BurnDownTest, EndsWithWhatTheEngineSaysAndTellsThePace) {
  BudgetCase budget = TenHoursIn();
  budget.report.view.used = kGpuHour * 7;
  BurnDown sums(budget);
  sums.Add(Row(0, 4));
  sums.Add(Row(8, -1, "a100"));
  sums.Add(Row(9, -1));
  const auto got = nlohmann::json::parse(EncodeBurnDown(budget, sums));
  EXPECT_EQ(got["name"], "monthly");
  EXPECT_EQ(got["effective"], "100.000");
  EXPECT_EQ(got["used"], "7.000");
  EXPECT_EQ(got["burningPerHour"], "1.500");
  EXPECT_EQ(got["exhaustsAt"], nullptr);
  EXPECT_EQ(got["points"].size(), 11U);
  EXPECT_EQ(got["points"].back()["used"], "7.000");
  EXPECT_EQ(got["points"].front()["used"], "0.000");
}

TEST(BurnDownTest, AQuotaMetersWhatIsBelowIt) {
  std::vector<QuotaView> quotas(4);
  const char* const parents[][2] = {{"team", "group"}, {"group", "org"}, {"org", ""}, {"x", ""}};
  for (std::size_t i = 0; i < quotas.size(); ++i) {
    quotas[i].report.name = parents[i][0];
    quotas[i].report.parent = parents[i][1];
  }
  using Names = std::set<std::string>;
  EXPECT_EQ(QuotasBelow("org", quotas), (Names{"org", "group", "team"}));
  EXPECT_EQ(QuotasBelow("team", quotas), Names{"team"});
}

}  // namespace THIS_FILE
}  // namespace tranche
