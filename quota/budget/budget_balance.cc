// Where a budget stands, and going on from there.
#include <algorithm>
#include <utility>

#include "quota/budget/budget.h"
#include "topology/base/check.h"

namespace tranche {

GpuTime UsedOf(const BudgetStand& stand) {
  GpuTime used;
  for (const BudgetStand::Part& part : stand.parts) used += part.used;
  return used;
}

bool IsStandOf(const BudgetStand& stand, const BudgetWindow& window) {
  const auto& [start, end] = stand.window;
  if (stand.at < start || stand.at > end || start == end) return false;
  Instant told = start;
  for (const auto& [span, used] : stand.parts) {
    if (span.start < told || span.end <= span.start || span.end > stand.at) return false;
    told = span.end;
  }
  if (window.type == BudgetWindow::Type::kRolling) {
    return end == stand.at && end - start == window.duration;
  }
  // The first one after another form of window is a part of one.
  const TimeSpan whole = WindowAt(window, start);
  return start >= whole.start && end == whole.end;
}

BudgetStand BudgetMeter::Stand(Instant now) const {
  now = Latest(now);
  BudgetStand stand;
  stand.at = now;
  if (!Rolling()) {
    const Tally current = CurrentAt(now);
    stand.window = current.span;
    stand.carried_in = current.account.carried_in;
    stand.debt_in = current.account.debt_in;
    const GpuTime used = UsedBy(current, now);
    // Refunds of what ran before the window may exceed what ran in it.
    const GpuTime shown{std::max<Int128>(0, used.compute), std::max<Int128>(0, used.memory)};
    if (shown != GpuTime{}) stand.parts.push_back({{current.span.start, now}, shown});
    return stand;
  }
  stand.window = {now - budget_.window.duration, now};
  Instant start = stand.window.start;
  const std::vector<GpuTime> parts = recent_.InParts(start, budget_.window.duration, kStandParts);
  for (int i = 1; i <= kStandParts; ++i) {
    const Instant end = stand.window.start + budget_.window.duration * i / kStandParts;
    const GpuTime& used = parts[static_cast<std::size_t>(i - 1)];
    const GpuTime shown{std::max<Int128>(0, used.compute), std::max<Int128>(0, used.memory)};
    if (shown != GpuTime{}) stand.parts.push_back({{start, end}, shown});
    start = end;
  }
  return stand;
}

void BudgetMeter::Resume(const BudgetStand& stand) {
  TRANCHE_CHECK(running_.empty());
  resumed_.reset();
  seen_ = Latest(stand.at);
  if (Rolling()) {
    recent_ = {};
    for (const auto& [span, used] : stand.parts) {
      // Evenly, and what cannot be divided in the last millisecond: nothing is lost.
      const Int128 length = (span.end - span.start).count();
      const GpuTime rate{used.compute / length, used.memory / length};
      const GpuTime rest{used.compute % length, used.memory % length};
      Consume(rate, span);
      Consume(rest, {span.end - Millis(1), span.end});
    }
  } else {
    Tally tally;
    tally.span = stand.window;
    tally.total = tranche::UsedOf(stand);
    tally.account = {TermsOf(budget_, BaseOf(budget_)), stand.carried_in, stand.debt_in};
    std::erase_if(windows_,
                  [&stand](const Tally& other) { return other.span.end > stand.window.start; });
    windows_.push_back(std::move(tally));
  }
  resumed_ = stand.at;
}

}  // namespace tranche
