#include <algorithm>

#include "quota/budget/budget.h"

namespace tranche {
namespace {

constexpr int kWindowsAhead = 12;

}  // namespace

// The GPU time that running work is expected to use: up to its declared end or, undeclared, for the
// lease. A calendar window's end crops it, a rolling window's duration limits it.
GpuTime BudgetMeter::CommittedAt(const TimeSpan& window, const Outlook& outlook,
                                 Instant now) const {
  const Millis most = Rolling() ? budget_.window.duration : window.end - now;
  GpuTime committed = outlook.endless * std::min(kBudgetLease, most);
  for (const Bend& end : outlook.ending) committed += end.change * std::min(end.at - now, most);
  return committed;
}

// What the request is for: its length, cropped as what is promised is.
GpuTime BudgetMeter::AskedAt(const TimeSpan& window, const Request& request, Instant now) const {
  return request.rate *
         std::min(request.length, Rolling() ? budget_.window.duration : window.end - now);
}

// What is asked for plus what is used or promised, as it changes while the request waits.
//
// Declared work is promised to its end: nothing changes as it turns from promised into used, only
// what reaches beyond a rolling window's duration is not promised yet. Undeclared work takes ever
// more, in a calendar window until just the lease is left of it. Once a window's end crops the
// request, it needs less with every moment.
BudgetLine BudgetMeter::DemandLine(const Standing& standing, const Outlook& outlook,
                                   const Request& request, Instant now) const {
  const Instant end = standing.window.end;
  const Millis duration = budget_.window.duration;
  BudgetLine line = UsageLine(standing, outlook, now);
  line.value += CommittedAt(standing.window, outlook, now);
  line.value += AskedAt(standing.window, request, now);
  const auto bend = [&](Instant at, const GpuTime& change) {
    line.bends.push_back({std::max(now, at), change});
  };
  for (const Bend& work : outlook.ending) {
    bend(Rolling() ? work.at - duration : now, -work.change);
    bend(work.at, work.change);
  }
  if (!Rolling()) {
    bend(end - kBudgetLease, -outlook.endless);
    bend(end - request.length, -request.rate);
  }
  return line;
}

std::optional<Instant> BudgetMeter::EligibleAt(Standing standing, Outlook outlook,
                                               const Request& request, Instant now) const {
  if (Rolling()) {
    return FirstAtMost(DemandLine(standing, outlook, request, now), EffectiveOf(standing.account),
                       now + budget_.window.duration * kWindowsAhead);
  }
  for (int ahead = 0; ahead <= kWindowsAhead; ++ahead) {
    const Instant end = standing.window.end;
    const auto eligible = FirstAtMost(DemandLine(standing, outlook, request, now),
                                      EffectiveOf(standing.account), end);
    if (eligible) return eligible;
    Tally tally{standing.window, standing.used + outlook.endless * (end - now), standing.account};
    for (const Bend& work : outlook.ending) {
      tally.total += work.change * (std::min(work.at, end) - now);
    }
    Tally next = After(ClosingOf(tally));
    standing = {next.span, {}, std::move(next.account)};
    now = end;
    const auto later = std::ranges::upper_bound(outlook.ending, now, {}, &Bend::at);
    outlook.ending = {later, outlook.ending.end()};
  }
  return std::nullopt;
}

BudgetVerdict BudgetMeter::Admit(const Charge& charge, int64_t weight,
                                 std::optional<Millis> runtime, Instant now) const {
  now = Latest(now);
  const Request request{RateOf(charge, weight),
                        std::max(Millis(0), runtime.value_or(kBudgetLease))};
  Standing standing = StandingAt(now);
  const Outlook outlook = OutlookAt(now);
  const GpuTime committed = CommittedAt(standing.window, outlook, now);
  const GpuTime sum = standing.used + committed + AskedAt(standing.window, request, now);
  const auto dimension = sum.compute >= sum.memory ? &GpuTime::compute : &GpuTime::memory;
  BudgetVerdict verdict;
  verdict.used = standing.used.*dimension;
  verdict.committed = committed.*dimension;
  verdict.request = sum.*dimension - verdict.used - verdict.committed;
  verdict.effective = EffectiveOf(standing.account);
  verdict.fits = request.rate == GpuTime{} || sum.*dimension <= verdict.effective;
  verdict.eligible_at = verdict.fits ? now : EligibleAt(std::move(standing), outlook, request, now);
  return verdict;
}

}  // namespace tranche
