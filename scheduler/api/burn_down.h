// How a budget's window was used up, step by step: what the ledger's intervals used, at the
// budget's rates, summed into equal steps of the window.
//
// A value; one thread at a time. Unit: as quota/budget/budget_amounts.h. Cost of Add: O(steps it
// touches).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler/engine/engine.h"
#include "scheduler/ledger/reader.h"

namespace tranche {

// A budget, and whose work it meters.
struct BudgetCase {
  BudgetReport report;
  std::set<std::string> leaves;            // below its quotaRef, itself included
  std::map<std::string, int64_t> factors;  // class -> thousandths
  Instant now;
};

// Quotas that are `root` or below it.
std::set<std::string> QuotasBelow(const std::string& root, const std::vector<QuotaView>& quotas);

class BurnDown {
 public:
  static constexpr int kSteps = 60;

  explicit BurnDown(const BudgetCase& budget);
  void Add(const ledger::ExportRow& row);

  struct Point {
    Instant at;
    Int128 used = 0;
  };
  // Ascending; the first at the window's start, the last now, with what the engine says is used.
  std::vector<Point> Points() const;
  // What runs now uses in an hour.
  Int128 BurningPerHour() const;

 private:
  bool Meters(const ledger::ExportRow& row) const;
  int64_t WeightOf(const ledger::ExportRow& row) const;

  const BudgetCase& budget_;
  const Instant start_;
  const Millis step_;
  std::vector<GpuTime> steps_;
  GpuTime running_;  // per millisecond
};

// The answer of GET /api/v1/burndown.
std::string EncodeBurnDown(const BudgetCase& budget, const BurnDown& sums);

}  // namespace tranche
