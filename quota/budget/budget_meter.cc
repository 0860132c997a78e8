#include <algorithm>
#include <iterator>
#include <utility>

#include "quota/budget/budget.h"
#include "topology/base/check.h"

namespace tranche {
namespace {

// Late news may still correct this many closed windows.
constexpr std::size_t kClosedWindowsKept = 2;
// The end of what has none yet.
constexpr Instant kForever = Instant::max();

}  // namespace

BudgetMeter::BudgetMeter(GpuBudget budget, Instant created)
    : budget_(std::move(budget)), seen_(created) {
  StartOver(created);
}

void BudgetMeter::StartOver(Instant at) {
  ForgetForeseen();
  windows_.clear();
  recent_ = {};
  rate_ = {};
  resumed_.reset();
  if (!Rolling()) {
    Tally first;
    first.span = WindowAt(budget_.window, at);
    first.account.terms = TermsOf(budget_, BaseOf(budget_));
    windows_.push_back(std::move(first));
  }
  for (const auto& [key, work] : running_) {
    rate_ += work.rate;
    Consume(work.rate, {work.since, kForever});
  }
}

void BudgetMeter::SetSpec(GpuBudget budget) {
  const bool was_rolling = Rolling();
  const bool other_window = budget.window != budget_.window;
  budget_ = std::move(budget);
  ForgetForeseen();
  if (other_window && (was_rolling || Rolling())) {
    StartOver(seen_);
  } else if (!Rolling()) {
    windows_.back().account.terms = TermsOf(budget_, BaseOf(budget_));
  }
}

void BudgetMeter::Restore(const WindowClosing& closing) {
  TRANCHE_CHECK(running_.empty());
  if (Rolling()) return;
  restored_.insert_or_assign(closing.span.start, closing);
  const auto newest = std::prev(restored_.end());
  windows_.clear();
  std::vector<Int128> carried_in;
  if (newest->second.carried_in > 0) carried_in.push_back(newest->second.carried_in);
  if (newest != restored_.begin()) {
    const WindowClosing& before = std::prev(newest)->second;
    if (before.span.end == newest->second.span.start) {
      carried_in = before.carried_out;
      windows_.push_back(Reopened(before, {before.carried_in}));
    }
  }
  windows_.push_back(Reopened(newest->second, std::move(carried_in)));
  windows_.push_back(After(newest->second));
}

BudgetMeter::Tally BudgetMeter::Reopened(const WindowClosing& closing,
                                         std::vector<Int128> carried_in) const {
  Tally tally;
  tally.span = closing.span;
  tally.total = {closing.used, closing.used};
  tally.account = {TermsOf(budget_, closing.base), std::move(carried_in), closing.debt_in};
  tally.closing = closing;
  tally.restored = true;
  return tally;
}

void BudgetMeter::Start(const std::string& key, const Charge& charge, int64_t weight, Instant at,
                        std::optional<Instant> ends) {
  const GpuTime rate = RateOf(charge, weight);
  const auto [started, fresh] = running_.try_emplace(key, Work{rate, at, ends});
  if (!fresh) return;
  NoteEnd(started->second, 1);
  Reach(at);
  rate_ += rate;
  Consume(rate, {at, kForever});
}

void BudgetMeter::Stop(const std::string& key, Instant at) {
  const auto found = running_.find(key);
  if (found == running_.end()) return;
  const Work work = found->second;
  running_.erase(found);
  NoteEnd(work, -1);
  at = std::max(at, work.since);
  Reach(at);
  rate_ -= work.rate;
  Consume(-work.rate, {at, kForever});
}

// Work that ends at the same moment is one bend.
void BudgetMeter::NoteEnd(const Work& work, int sign) {
  ForgetForeseen();
  if (!work.ends || work.rate == GpuTime{}) return;
  auto end = std::ranges::lower_bound(ends_, *work.ends, {}, &Bend::at);
  if (end == ends_.end() || end->at != *work.ends) end = ends_.insert(end, {*work.ends, {}});
  end->change += sign > 0 ? work.rate : -work.rate;
  if (end->change == GpuTime{}) ends_.erase(end);
}

void BudgetMeter::Adjust(const Charge& charge, int64_t weight, const TimeSpan& span, int sign) {
  TRANCHE_CHECK(sign == 1 || sign == -1);
  if (span.end <= span.start) return;
  Reach(span.end);
  if (sign < 0) gave_back_ = std::max(gave_back_.value_or(span.end), span.end);
  Consume(RateOf(charge, weight * sign), span);
}

// Time moves on to `at`: windows that ended are closed, and the next ones opened.
void BudgetMeter::Reach(Instant at) {
  seen_ = Latest(at);
  if (Rolling()) return recent_.ForgetBefore(seen_ - budget_.window.duration);
  while (windows_.back().span.end <= seen_) {
    Tally& ended = windows_.back();
    ended.closing = ClosingOf(ended);
    ended.news = true;
    windows_.push_back(After(*ended.closing));
  }
}

// Work consumes (or, of a negative rate, does not after all) over the span, whose start Reach has
// passed.
void BudgetMeter::Consume(const GpuTime& rate, TimeSpan span) {
  ForgetForeseen();
  if (resumed_) span.start = std::max(span.start, *resumed_);
  if (rate == GpuTime{} || span.end <= span.start) return;
  if (Rolling()) {
    recent_.Add(span.start, rate);
    if (span.end != kForever) recent_.Add(span.end, -rate);
    return;
  }
  CountInWindows(rate, span);
  SettleAgain();
}

void BudgetMeter::CountInWindows(const GpuTime& rate, const TimeSpan& span) {
  for (Tally& tally : windows_) {
    const Instant from = std::max(span.start, tally.span.start);
    const Instant to = std::min(span.end, tally.span.end);
    if (tally.restored || to <= from) continue;
    tally.total += rate * (to - from);
    tally.news = tally.closing.has_value();
  }
}

void BudgetMeter::LoadPast(Instant newest, const std::function<void(const PastSink&)>& tell) {
  ForgetForeseen();
  Reach(newest);
  tell([this](const Charge& charge, int64_t weight, const TimeSpan& told, int sign) {
    if (sign < 0) gave_back_ = std::max(gave_back_.value_or(told.end), told.end);
    const GpuTime rate = RateOf(charge, weight * sign);
    TimeSpan span = told;
    if (resumed_) span.start = std::max(span.start, *resumed_);
    if (rate == GpuTime{} || span.end <= span.start) return;
    if (!Rolling()) return CountInWindows(rate, span);
    // Before what is kept both ends cancel out.
    recent_.AddUnsorted(span.start, rate);
    recent_.AddUnsorted(span.end, -rate);
  });
  recent_.Sort();
  SettleAgain();
}

// Closed windows that changed hand on something else.
void BudgetMeter::SettleAgain() {
  for (std::size_t i = 0; i + 1 < windows_.size(); ++i) {
    Tally& tally = windows_[i];
    if (!tally.news) continue;
    tally.closing = ClosingOf(tally);
    Tally& next = windows_[i + 1];
    if (next.account.carried_in == tally.closing->carried_out &&
        next.account.debt_in == tally.closing->debt_out) {
      continue;
    }
    next.account.carried_in = tally.closing->carried_out;
    next.account.debt_in = tally.closing->debt_out;
    next.news = next.closing.has_value();
  }
}

std::vector<WindowClosing> BudgetMeter::Advance(Instant now) {
  Reach(now);
  std::vector<WindowClosing> closings;
  for (Tally& tally : windows_) {
    if (tally.news) closings.push_back(*tally.closing);
    tally.news = false;
    tally.restored = false;
  }
  while (windows_.size() > kClosedWindowsKept + 1) windows_.pop_front();
  restored_.clear();
  return closings;
}

WindowClosing BudgetMeter::ClosingOf(const Tally& tally) const {
  // Refunds of work that ran before it was told could make the sum negative.
  const Int128 used = std::max<Int128>(0, Larger(tally.total));
  Settlement settled = Settle(tally.account, used);
  return {.budget_uid = budget_.uid,
          .span = tally.span,
          .base = tally.account.terms.base,
          .carried_in = CarriedIn(tally.account),
          .debt_in = tally.account.debt_in,
          .used = used,
          .carried_out = std::move(settled.carried_out),
          .debt_out = settled.debt_out};
}

// The window after one that ended so, all that runs running on.
BudgetMeter::Tally BudgetMeter::After(const WindowClosing& closing) const {
  Tally next;
  next.span = WindowAfter(budget_.window, closing.span);
  next.total = rate_ * (next.span.end - next.span.start);
  next.account = {TermsOf(budget_, BaseOf(budget_)), closing.carried_out, closing.debt_out};
  return next;
}

// The window `now` lies in, also when it has begun unnoticed.
BudgetMeter::Tally BudgetMeter::CurrentAt(Instant now) const {
  Tally tally = windows_.back();
  while (tally.span.end <= now) tally = After(ClosingOf(tally));
  return tally;
}

GpuTime BudgetMeter::UsedBy(const Tally& tally, Instant now) const {
  return now < tally.span.end ? tally.total - rate_ * (tally.span.end - now) : tally.total;
}

std::optional<GpuTime> BudgetMeter::UsedOf(const TimeSpan& window, Instant now) const {
  now = Latest(now);
  for (const Tally& tally : windows_) {
    if (tally.span == window) return UsedBy(tally, now);
  }
  return std::nullopt;
}

}  // namespace tranche
