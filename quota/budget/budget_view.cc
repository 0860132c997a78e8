#include <algorithm>
#include <limits>

#include "quota/budget/budget.h"

namespace tranche {
namespace {

// The least amount that is `percent` of `whole`. Divided first: exact, and nothing can overflow.
Int128 AtPercent(Int128 whole, int percent) {
  return whole / 100 * percent + (whole % 100 * percent + 99) / 100;
}

int PercentOf(Int128 part, Int128 whole) {
  if (whole == 0) return 100;
  return static_cast<int>(std::min<Int128>(part * 100 / whole, std::numeric_limits<int>::max()));
}

}  // namespace

BudgetMeter::Standing BudgetMeter::StandingAt(Instant now) const {
  if (Rolling()) {
    const TimeSpan window{now - budget_.window.duration, now};
    return {window, recent_.Between(window.start, now), {TermsOf(budget_, BaseOf(budget_)), {}, 0}};
  }
  const Tally tally = CurrentAt(now);
  // After a restart with the clock put back, `now` may lie before the window.
  const Instant at = std::max(now, tally.span.start);
  return {tally.span, UsedBy(tally, at), tally.account};
}

BudgetMeter::Outlook BudgetMeter::OutlookAt(Instant now) const {
  Outlook outlook{rate_, {std::ranges::upper_bound(ends_, now, {}, &Bend::at), ends_.end()}};
  for (const Bend& end : outlook.ending) outlook.endless -= end.change;
  return outlook;
}

// What the window will have consumed, nothing else starting.
BudgetLine BudgetMeter::UsageLine(const Standing& standing, const Outlook& outlook,
                                  Instant now) const {
  BudgetLine line{now, standing.used, outlook.endless, {}};
  for (const Bend& end : outlook.ending) {
    line.rate += end.change;
    line.bends.push_back({end.at, -end.change});
  }
  if (!Rolling()) return line;
  // Whatever changed the rate changes it back when it falls out of the window.
  const Millis duration = budget_.window.duration;
  line.rate -= recent_.At(standing.window.start);
  line.fading = &recent_.changes();
  line.fading_from = recent_.changes().After(standing.window.start);
  line.fades_after = duration;
  for (const Bend& end : outlook.ending) line.bends.push_back({end.at + duration, end.change});
  return line;
}

BudgetView BudgetMeter::View(Instant now) const {
  now = Latest(now);
  const Standing standing = StandingAt(now);
  const Outlook outlook = OutlookAt(now);
  BudgetView view;
  view.window = standing.window;
  view.used = std::max<Int128>(0, Larger(standing.used));
  view.committed = Larger(CommittedAt(standing.window, outlook, now));
  view.carried_in = CarriedIn(standing.account);
  view.debt_in = standing.account.debt_in;
  view.effective = EffectiveOf(standing.account);
  view.percent = PercentOf(view.used, view.effective);
  for (const int level : budget_.notify_at_percent) {
    if (view.used >= AtPercent(view.effective, level)) view.notified_percent = level;
  }
  if (view.used >= view.effective) {
    view.state = BudgetState::kExhausted;
  } else if (view.notified_percent > 0) {
    view.state = BudgetState::kWarning;
  }
  view.exhausts_at = FindExhausted(standing, outlook, view.effective, now);
  return view;
}

// What falls out of a window only takes away from it, unless more was given back there than was
// consumed: most windows are far from their levels, and are not looked through to find that out.
bool BudgetMeter::MayReach(const Standing& standing, Int128 level, Instant now,
                           Instant until) const {
  const bool gave_back = gave_back_ && *gave_back_ > standing.window.start;
  return gave_back || Larger(standing.used + rate_ * (until - now)) >= level;
}

// Without events, what was foreseen stays so until it has come, and until work outlives what it
// declared. It is not looked for again, over all that a window holds.
std::optional<Instant> BudgetMeter::FindExhausted(const Standing& standing, const Outlook& outlook,
                                                  Int128 effective, Instant now) const {
  // What runs now consumes a rolling window's most within one duration.
  const Instant end = Rolling() ? now + budget_.window.duration : standing.window.end;
  if (!Rolling() || Larger(standing.used) >= effective) {
    return FirstAtLeast(UsageLine(standing, outlook, now), effective, end);
  }
  if (!exhausts_ || !exhausts_->StandsAt(now)) {
    const BudgetLine line = UsageLine(standing, outlook, now);
    const auto when =
        MayReach(standing, effective, now, end) ? FirstAtLeast(line, effective, end) : std::nullopt;
    Instant until = when.value_or(Instant::max());
    if (!outlook.ending.empty()) until = std::min(until, outlook.ending.front().at);
    exhausts_ = Foreseen{now, until, when};
  }
  return exhausts_->when;
}

bool BudgetMeter::Exhausted(Instant now) const {
  const Standing standing = StandingAt(Latest(now));
  return Larger(standing.used) >= EffectiveOf(standing.account);
}

std::optional<Instant> BudgetMeter::NextChange(Instant now) const {
  now = Latest(now);
  if (!Rolling()) return FindNextChange(StandingAt(now), now);
  if (!next_change_ || !next_change_->StandsAt(now)) {
    const std::optional<Instant> when = FindNextChange(StandingAt(now), now);
    next_change_ = Foreseen{now, when.value_or(Instant::max()), when};
  }
  return next_change_->when;
}

std::optional<Instant> BudgetMeter::FindNextChange(const Standing& standing, Instant now) const {
  const Int128 used = Larger(standing.used);
  const Int128 effective = EffectiveOf(standing.account);
  std::vector<Int128> levels = {effective};
  for (const int level : budget_.notify_at_percent) levels.push_back(AtPercent(effective, level));
  std::sort(levels.begin(), levels.end());
  // Declared ends are no events: work that outlives its own runs on unheard.
  const BudgetLine line = UsageLine(standing, {rate_, {}}, now);
  std::optional<Instant> next;
  if (!Rolling()) next = standing.window.end;
  const Instant until = Rolling() ? now + budget_.window.duration + Millis(1) : *next;
  const auto above = std::upper_bound(levels.begin(), levels.end(), used);
  if (above != levels.end() && MayReach(standing, *above, now, until)) {
    if (const auto reached = FirstAtLeast(line, *above, until)) next = reached;
  }
  if (Rolling() && above != levels.begin()) {
    const auto fallen = FirstAtMost(line, *std::prev(above) - 1, until);
    if (fallen && (!next || *fallen < *next)) next = fallen;
  }
  return next;
}

}  // namespace tranche
