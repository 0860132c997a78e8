// Random histories of work, and what they consume by definition: the oracle of budget tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "quota/budget/budget.h"
#include "test/builders/budget.h"

namespace tranche::test {

inline const Instant kBegin = Utc(2026, 3, 25);  // a Wednesday; clocks change in Europe on the 29th

inline int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

struct Piece {
  std::string key;
  Charge charge;
  int64_t weight = 0;
  Instant start;
  Instant end;
  std::optional<Instant> declared;
};

// What the pieces consume of the span: the definition, one product each.
inline GpuTime SlowSum(const std::vector<Piece>& pieces, const TimeSpan& span) {
  GpuTime sum;
  for (const Piece& piece : pieces) {
    const Instant from = std::max(piece.start, span.start);
    const Instant to = std::min(piece.end, span.end);
    if (from < to) sum += RateOf(piece.charge, piece.weight) * (to - from);
  }
  return sum;
}

struct WorkEvent {
  Instant at;
  const Piece* piece = nullptr;
  bool starts = false;
};

// In order of time; of one piece the start first.
inline std::vector<WorkEvent> EventsOf(const std::vector<Piece>& pieces) {
  std::vector<WorkEvent> events;
  for (const Piece& piece : pieces) {
    events.push_back({piece.start, &piece, true});
    events.push_back({piece.end, &piece, false});
  }
  std::stable_sort(events.begin(), events.end(), [](const WorkEvent& left, const WorkEvent& right) {
    return left.at < right.at;
  });
  return events;
}

inline void Tell(BudgetMeter& meter, const WorkEvent& event) {
  const Piece& piece = *event.piece;
  if (event.starts) {
    meter.Start(piece.key, piece.charge, piece.weight, piece.start, piece.declared);
  } else {
    meter.Stop(piece.key, piece.end);
  }
}

class BudgetProperty : public testing::Test {
 protected:
  BudgetProperty() {
    std::printf("TRANCHE_SEED=%lld\n", static_cast<long long>(seed_));
    random_.seed(static_cast<uint64_t>(seed_));
  }

  int64_t Between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  Instant Moment(Instant low, Instant high) {
    return low + Millis(Between(0, (high - low).count()));
  }
  Charge SomeCharge() {
    return {Between(1, 56) * (kQuantaPerGpu / 7), Between(1, 64) * (kQuantaPerGpu / 8)};
  }
  int64_t SomeWeight() {
    static constexpr int64_t kWeights[] = {0, 37'500, kUnitWeight, kUnitWeight, kUnitWeight * 2};
    return kWeights[Between(0, 4)];
  }

  BudgetWindow SomeCalendar(int last_type = 2) {
    static constexpr const char* kZones[] = {"UTC", "Europe/Paris", "America/St_Johns"};
    BudgetWindow window;
    window.type = static_cast<BudgetWindow::Type>(Between(0, last_type));
    window.zone = TimeZone::Load(kZones[Between(0, 2)]).value();
    return window;
  }
  GpuBudget SomeBudget(const BudgetWindow& window, int64_t most_hours) {
    GpuBudget budget = PlainBudget(window.type, Between(0, most_hours));
    budget.window = window;
    budget.rollover_max_percent = static_cast<int>(Between(0, 4) * 50);
    budget.rollover_max_windows = static_cast<int>(Between(0, 3));
    budget.max_debt_percent = static_cast<int>(Between(0, 4) * 25);
    budget.notify_at_percent = {50, 80, 95};
    return budget;
  }
  // A fifth of them rolling.
  GpuBudget AnyBudget(int64_t most_hours) {
    if (Between(0, 4) > 0) return SomeBudget(SomeCalendar(1), most_hours);
    return SomeBudget(RollingBudget(Minutes(Between(60, 3000)), 0).window, most_hours);
  }
  std::vector<Piece> SomePieces(int64_t most, Instant low, Instant high) {
    std::vector<Piece> pieces(static_cast<std::size_t>(Between(1, most)));
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      Piece& piece = pieces[i];
      piece.key = std::to_string(i);
      piece.charge = SomeCharge();
      piece.weight = SomeWeight();
      piece.start = Moment(low, high);
      piece.end = Moment(piece.start, high);
      if (Between(0, 1) == 0) piece.declared = Moment(piece.start, high + Hours(30));
    }
    return pieces;
  }

  int64_t steps_ = FromEnvironment("TRANCHE_STEPS", 1000);

 private:
  int64_t seed_ = FromEnvironment("TRANCHE_SEED", 20261120);
  std::mt19937_64 random_;
};

}  // namespace tranche::test
