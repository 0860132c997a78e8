// Budgets, charges and moments for tests, written as people say them.
#pragma once

#include <chrono>
#include <string>

#include "quota/budget/budget.h"

namespace tranche::test {

inline Instant Utc(int year, int month, int day, int hour = 0, int minute = 0) {
  const std::chrono::sys_days midnight{std::chrono::year{year} /
                                       std::chrono::month{static_cast<unsigned>(month)} /
                                       std::chrono::day{static_cast<unsigned>(day)}};
  return midnight + std::chrono::hours(hour) + std::chrono::minutes(minute);
}

inline Charge Gpus(int64_t count) { return {count * kQuantaPerGpu, count * kQuantaPerGpu}; }

inline Millis Hours(int64_t count) { return std::chrono::hours(count); }
inline Millis Minutes(int64_t count) { return std::chrono::minutes(count); }

inline Int128 GpuHours(int64_t count) { return kGpuHour * count; }

// Nothing carried, no debt, UTC.
inline GpuBudget PlainBudget(BudgetWindow::Type type, int64_t gpu_hours) {
  GpuBudget budget;
  budget.name = "team-a";
  budget.uid = "uid-of-team-a";
  budget.milli_gpu_hours = gpu_hours * 1000;
  budget.window.type = type;
  budget.max_debt_percent = 0;
  return budget;
}

inline GpuBudget RollingBudget(Millis duration, int64_t gpu_hours) {
  GpuBudget budget = PlainBudget(BudgetWindow::Type::kRolling, gpu_hours);
  budget.window.duration = duration;
  return budget;
}

// All at rate and factor 1: work that has run from `from` to `to`.
inline void Ran(BudgetMeter& meter, const std::string& key, const Charge& charge, Instant from,
                Instant to) {
  meter.Start(key, charge, kUnitWeight, from, std::nullopt);
  meter.Stop(key, to);
}

}  // namespace tranche::test
