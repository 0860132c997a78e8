// GPU-hour budgets: what a window has consumed, what is promised, what may still start, and when.
//
// quota-model section 3. Metering is exact and fed by events; no sampling. A window's consumption
// is, per dimension, the sum of overlap x charge x weight (weight = model rate x class factor); the
// larger of the two sums counts. Between events it is linear, so that nothing is kept per sample.
//
// A plain value: externally synchronised, deterministic; times come in. Cost: Start, Stop O(log
// running + declared ends); Admit, View O(declared ends), with sorting where a moment is asked for;
// a rolling window keeps one record per event inside it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policy/spec.h"
#include "quota/budget/budget_amounts.h"
#include "quota/budget/budget_line.h"
#include "quota/budget/budget_recent.h"
#include "quota/budget/budget_rollover.h"
#include "quota/tree/charge.h"
#include "topology/base/units.h"

namespace tranche {

// [start, end)
struct TimeSpan {
  Instant start;
  Instant end;
  friend bool operator==(const TimeSpan&, const TimeSpan&) = default;
};
// The calendar window `at` lies in (not kRolling). Windows tile time without gap or overlap.
TimeSpan WindowAt(const BudgetWindow& window, Instant at);
// The one that starts where `span` ends, cut at its start when `span` is of another window form.
TimeSpan WindowAfter(const BudgetWindow& window, const TimeSpan& span);

// How one calendar window ended; kept in the ledger, read again at start.
struct WindowClosing {
  std::string budget_uid;
  TimeSpan span;
  Int128 base = 0;
  Int128 carried_in = 0;
  Int128 debt_in = 0;
  Int128 used = 0;
  // Unspent amounts by age: [0] is left of this window's base, [1] of the one before, ...
  std::vector<Int128> carried_out;
  Int128 debt_out = 0;
  friend bool operator==(const WindowClosing&, const WindowClosing&) = default;
};

// All a budget has counted until a moment: enough to go on from there when nothing else is left.
struct BudgetStand {
  struct Part {
    TimeSpan span;
    GpuTime used;  // evenly over it
    friend bool operator==(const Part&, const Part&) = default;
  };
  Instant at;
  TimeSpan window;          // rolling: [at - duration, at)
  std::vector<Part> parts;  // ascending, of the window until `at`; spans without use may lack
  std::vector<Int128> carried_in;  // by age, as WindowClosing::carried_out
  Int128 debt_in = 0;
  friend bool operator==(const BudgetStand&, const BudgetStand&) = default;
};
// What it has counted in the window.
GpuTime UsedOf(const BudgetStand& stand);
// Can a budget with this window have stood so?
bool IsStandOf(const BudgetStand& stand, const BudgetWindow& window);
// Parts in which a rolling window's balance is reported: what the moving window forgets is exact to
// this share of it.
inline constexpr int kStandParts = 24;

enum class BudgetState : uint8_t { kOk, kWarning, kExhausted };  // warning: a notify level reached

struct BudgetView {
  Int128 used = 0;
  Int128 committed = 0;
  Int128 carried_in = 0;
  Int128 debt_in = 0;
  Int128 effective = 0;
  TimeSpan window;  // rolling: [now - duration, now)
  BudgetState state = BudgetState::kOk;
  int percent = 0;           // of effective, rounded down
  int notified_percent = 0;  // highest notify level reached; 0: none
  // When the work that runs now will have used it up, nothing else starting; nullopt: not in this
  // window.
  std::optional<Instant> exhausts_at;
};

struct BudgetVerdict {
  bool fits = false;  // used + committed + request <= effective, or the request is free
  // Of the dimension that is larger in the sum, so that these add up.
  Int128 used = 0;
  Int128 committed = 0;
  Int128 request = 0;
  Int128 effective = 0;
  // The first moment this request would be admitted, other work unchanged: what has declared its
  // end ends then, all else runs on. nullopt: not in this window or the next twelve (a request
  // larger than any window, or unended work). A rolling window stands for its duration.
  std::optional<Instant> eligible_at;
};

// Work without a declared runtime is committed for this long, always anew.
inline constexpr Millis kBudgetLease{900'000};

class BudgetMeter {
 public:
  // `created`: the first window, the one it lies in, carries nothing in.
  BudgetMeter(GpuBudget budget, Instant created);

  // A new version of the same object: amounts change from now on, what was metered stays; bring the
  // meter to now with Advance first. Another calendar form takes effect when the current window
  // ends. To, from and among rolling windows the meter starts over with the work that runs; who
  // has the history builds a new meter instead.
  void SetSpec(GpuBudget budget);
  const GpuBudget& spec() const { return budget_; }

  // ---- history, before any other event, in any order
  // How earlier windows ended; only the newest consecutive ones matter. Until the first Advance,
  // events that reach into these windows are history they include already and leave them alone.
  // Later ones correct them; a closing does not tell the dimensions apart, so a correction counts
  // from `used` in both, which is never too little.
  void Restore(const WindowClosing& closing);

  // What was counted until stand.at, by another account of the same time: it stands for all that
  // happened before, of which events tell nothing new, now or later. After the closings.
  void Resume(const BudgetStand& stand);

  // Use that ended, as its events would have told it one by one, but in any order: `tell` calls
  // what it is given for each, with a span and a sign as of Adjust. `newest`: no span ends later.
  // O(n log n).
  using PastSink =
      std::function<void(const Charge& charge, int64_t weight, const TimeSpan& span, int sign)>;
  void LoadPast(Instant newest, const std::function<void(const PastSink&)>& tell);

  // ---- events. `at` may lie before what was seen last (late news): sums are as if it had come in
  // time, closings already given are given again, corrected, for two closed windows back. `key` is
  // unique per piece of work: starting what runs and stopping what does not change nothing.
  // `ends`: start plus declared runtime.
  void Start(const std::string& key, const Charge& charge, int64_t weight, Instant at,
             std::optional<Instant> ends);
  // A moment before the start is the start.
  void Stop(const std::string& key, Instant at);
  // A correction: consumption of `charge` over the span is added (sign 1) or given back (-1).
  void Adjust(const Charge& charge, int64_t weight, const TimeSpan& span, int sign);
  // Time has passed: windows that ended are closed, in order.
  std::vector<WindowClosing> Advance(Instant now);

  // ---- questions, for a `now` not before the last event or Advance
  BudgetVerdict Admit(const Charge& charge, int64_t weight, std::optional<Millis> runtime,
                      Instant now) const;
  BudgetView View(Instant now) const;
  // used >= effective.
  bool Exhausted(Instant now) const;
  // The next moment at which, without further events, the state or window changes; nullopt: none.
  std::optional<Instant> NextChange(Instant now) const;
  // Consumed by `now` of a calendar window, per dimension: the one of the last event or Advance, or
  // one of the two before it; nullopt for others.
  std::optional<GpuTime> UsedOf(const TimeSpan& window, Instant now) const;
  BudgetStand Stand(Instant now) const;

 private:
  struct Work {
    GpuTime rate;
    Instant since;
    std::optional<Instant> ends;
  };
  // One calendar window.
  struct Tally {
    TimeSpan span;
    GpuTime total;  // consumed by the end of the span if what runs now runs on
    WindowAccount account;
    std::optional<WindowClosing> closing = std::nullopt;  // set once closed
    bool news = false;      // the closing is not given yet, or no longer as it was given
    bool restored = false;  // closed in an earlier life, whose events are still being told
  };
  // What the work that runs at some moment is expected to do.
  struct Outlook {
    GpuTime endless;               // undeclared, or longer than declared
    std::span<const Bend> ending;  // when and at what rate declared work ends, ascending
  };
  // The window of some moment and what was used of it until then.
  struct Standing {
    TimeSpan window;
    GpuTime used;
    WindowAccount account;
  };
  struct Request {
    GpuTime rate;
    Millis length;
  };

  bool Rolling() const { return budget_.window.type == BudgetWindow::Type::kRolling; }
  Instant Latest(Instant now) const { return now > seen_ ? now : seen_; }

  void StartOver(Instant at);
  void NoteEnd(const Work& work, int sign);
  void Reach(Instant at);
  void Consume(const GpuTime& rate, TimeSpan span);
  void CountInWindows(const GpuTime& rate, const TimeSpan& span);
  void SettleAgain();
  Tally Reopened(const WindowClosing& closing, std::vector<Int128> carried_in) const;
  WindowClosing ClosingOf(const Tally& tally) const;
  Tally After(const WindowClosing& closing) const;
  Tally CurrentAt(Instant now) const;
  GpuTime UsedBy(const Tally& tally, Instant now) const;

  Standing StandingAt(Instant now) const;
  Outlook OutlookAt(Instant now) const;
  // The answers of NextChange and View::exhausts_at stand until an event, or until they are over.
  struct Foreseen {
    Instant from;   // asked at
    Instant until;  // exclusive
    std::optional<Instant> when;
    bool StandsAt(Instant now) const { return now >= from && now < until; }
  };
  void ForgetForeseen() { next_change_.reset(), exhausts_.reset(); }
  bool MayReach(const Standing& standing, Int128 level, Instant now, Instant until) const;
  std::optional<Instant> FindNextChange(const Standing& standing, Instant now) const;
  std::optional<Instant> FindExhausted(const Standing& standing, const Outlook& outlook,
                                       Int128 effective, Instant now) const;
  BudgetLine UsageLine(const Standing& standing, const Outlook& outlook, Instant now) const;
  GpuTime CommittedAt(const TimeSpan& window, const Outlook& outlook, Instant now) const;
  GpuTime AskedAt(const TimeSpan& window, const Request& request, Instant now) const;
  BudgetLine DemandLine(const Standing& standing, const Outlook& outlook, const Request& request,
                        Instant now) const;
  std::optional<Instant> EligibleAt(Standing standing, Outlook outlook, const Request& request,
                                    Instant now) const;

  GpuBudget budget_;
  Instant seen_;  // the latest moment of any event or Advance
  std::map<std::string, Work> running_;
  GpuTime rate_;                                 // of running_
  std::vector<Bend> ends_;                       // those of it that declared theirs, ascending
  std::deque<Tally> windows_;                    // calendar: the last closed ones, then the current
  std::map<Instant, WindowClosing> restored_;    // by start, until the first Advance
  RecentRate recent_;                            // rolling
  std::optional<Instant> resumed_;               // what happened before is counted
  std::optional<Instant> gave_back_;             // the last moment of what was given back
  mutable std::optional<Foreseen> next_change_;  // of rolling windows
  mutable std::optional<Foreseen> exhausts_;     // likewise
};

}  // namespace tranche
