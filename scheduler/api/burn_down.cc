#include "scheduler/api/burn_down.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/json/json_value.h"

namespace tranche {
namespace {

using wire::Json;

constexpr int64_t kThousandth = 1000;

bool IsRolling(const BudgetCase& budget) {
  return budget.report.spec.window.type == BudgetWindow::Type::kRolling;
}

// How long a refund of all the row's GPUs would have to be: refunds take back the newest use.
Millis Refunded(const ledger::ExportRow& row, const Charge& charge) {
  if (charge.compute > 0) {
    return Millis(static_cast<int64_t>(row.refunded.compute / kUnitWeight / charge.compute));
  }
  if (charge.memory == 0) return Millis(0);
  return Millis(static_cast<int64_t>(row.refunded.memory / kUnitWeight / charge.memory));
}

}  // namespace

std::set<std::string> QuotasBelow(const std::string& root, const std::vector<QuotaView>& quotas) {
  std::set<std::string> below{root};
  std::size_t before = 0;
  while (before != below.size()) {
    before = below.size();
    for (const QuotaView& quota : quotas) {
      if (below.contains(quota.report.parent)) below.insert(quota.report.name);
    }
  }
  return below;
}

BurnDown::BurnDown(const BudgetCase& budget)
    : budget_(budget),
      start_(budget.report.view.window.start),
      step_(std::max<Millis>((budget.report.view.window.end - start_ + Millis(kSteps - 1)) / kSteps,
                             Millis(1))),
      steps_(kSteps) {}

bool BurnDown::Meters(const ledger::ExportRow& row) const {
  const GpuBudget& spec = budget_.report.spec;
  return spec.ns.empty() ? budget_.leaves.contains(row.interval.leaf)
                         : row.interval.pod.ns == spec.ns;
}

int64_t BurnDown::WeightOf(const ledger::ExportRow& row) const {
  const int64_t rate = RateOf(budget_.report.spec, row.interval.parts.front().model);
  const auto factor = budget_.factors.find(row.interval.workload_class);
  return rate * (factor == budget_.factors.end() ? kThousandth : factor->second);
}

void BurnDown::Add(const ledger::ExportRow& row) {
  if (!Meters(row) || row.interval.parts.empty()) return;
  Instant from = row.interval.since;
  if (budget_.report.spec.meter_from == MeterFrom::kRunning) {
    if (!row.interval.running) return;
    from = *row.interval.running;
  }
  const Charge& charge = row.interval.parts.front().charge;
  const GpuTime rate = RateOf(charge, WeightOf(row));
  if (!row.end && from <= budget_.now) running_ += rate;
  const Instant until = std::min(row.end.value_or(budget_.now), budget_.now);
  const Instant end = until - Refunded(row, charge);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Instant begin = start_ + step_ * static_cast<int64_t>(i);
    if (begin >= end) break;
    const Millis overlap = std::min(end, begin + step_) - std::max(from, begin);
    if (overlap > Millis(0)) steps_[i] += rate * overlap;
  }
}

std::vector<BurnDown::Point> BurnDown::Points() const {
  std::vector<Point> points{{start_, 0}};
  GpuTime sum;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Instant end = start_ + step_ * static_cast<int64_t>(i + 1);
    if (end >= budget_.now) break;
    sum += steps_[i];
    points.push_back({end, Larger(sum)});
  }
  points.push_back({budget_.now, budget_.report.view.used});
  return points;
}

Int128 BurnDown::BurningPerHour() const {
  return Larger(running_ * std::chrono::duration_cast<Millis>(std::chrono::hours(1)));
}

std::string EncodeBurnDown(const BudgetCase& budget, const BurnDown& sums) {
  const BudgetView& view = budget.report.view;
  const auto point_json = [](const BurnDown::Point& point) -> Json {
    return {{"at", wire::FormatTime(point.at)}, {"used", FormatGpuHours(point.used)}};
  };
  return wire::Dump(
      {{"name", budget.report.spec.name},
       {"windowStart", wire::FormatTime(view.window.start)},
       {"windowEnd", IsRolling(budget) ? Json() : Json(wire::FormatTime(view.window.end))},
       {"effective", FormatGpuHours(view.effective)},
       {"used", FormatGpuHours(view.used)},
       {"burningPerHour", FormatGpuHours(sums.BurningPerHour())},
       {"exhaustsAt", wire::TimeOrNull(view.exhausts_at)},
       {"points", wire::ListOf(sums.Points(), point_json)}});
}

}  // namespace tranche
