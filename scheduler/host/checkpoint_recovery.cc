#include "scheduler/host/checkpoint_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "scheduler/wire/json/json.h"
#include "scheduler/wire/records/checkpoint_json.h"

namespace tranche {
namespace {

// The clock of whoever wrote it may be ahead of ours.
constexpr Millis kMostAhead{60'000};
// Longer than hours can be carried over, twelve months.
constexpr Millis kMostAge = std::chrono::hours(24 * 400);

HistoryJudgement Refused(std::string problem) {
  return {HistoryVerdict::kRefused, std::move(problem)};
}

std::string MomentProblem(Instant at, Instant now) {
  if (at > now + kMostAhead || at < now - kMostAge) {
    return fmt::format(
        "status.checkpoint.time: expected a time of the 400 days before {}, found {}",
        wire::FormatTime(now), wire::FormatTime(at));
  }
  return "";
}

bool Has(const LedgerFile& ledger, const CheckpointMark& mark) {
  return ledger.id == mark.ledger && ledger.last_entry >= mark.entry;
}

// It has taken over this checkpoint, or a later one of the same ledger.
bool IsRestored(const LedgerFile& ledger, RestoredUse::Of of, const std::string& name,
                const CheckpointMark& mark) {
  return std::ranges::any_of(ledger.restored, [&](const RestoredUse& use) {
    return use.of == of && use.name == name && use.mark.ledger == mark.ledger &&
           use.mark.at >= mark.at;
  });
}

// The month of UTC that begins with `start`; empty when none does.
TimeSpan MonthFrom(Instant start) {
  const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(start)};
  const std::chrono::sys_days first{date.year() / date.month() / 1};
  if (start != Instant(first)) return {start, start};
  return {
      start,
      Instant(std::chrono::sys_days{(date.year() / date.month() + std::chrono::months(1)) / 1})};
}

Finding FindingOf(std::string kind, std::string name, std::string problem) {
  return {std::move(kind), std::move(name),     "HistoryRestored",
          false,           "CheckpointRefused", std::move(problem)};
}

}  // namespace

Finding RestoredFinding(const std::string& kind, const std::string& name, Instant at) {
  return {kind,
          name,
          "HistoryRestored",
          true,
          "FromCheckpoint",
          fmt::format("the ledger was lost or replaced; until {} use is as the checkpoint of then "
                      "says, and what ran between then and the loss, of a healthy ledger at most "
                      "two minutes, is known only of pods that still ran afterwards",
                      wire::FormatTime(at))};
}

HistoryJudgement JudgeBudget(const BudgetCheckpoint& checkpoint, const GpuBudget& budget,
                             const LedgerFile& ledger, Instant now) {
  const CheckpointMark& mark = checkpoint.mark;
  std::string problem = MomentProblem(mark.at, now);
  if (!problem.empty()) return Refused(std::move(problem));
  if (!IsStandOf(checkpoint.stand, budget.window)) {
    return Refused(fmt::format(
        "status.checkpoint: expected a window of this budget at {} and ascending parts of it, "
        "found {} to {} with {} parts",
        wire::FormatTime(mark.at), wire::FormatTime(checkpoint.stand.window.start),
        wire::FormatTime(checkpoint.stand.window.end), checkpoint.stand.parts.size()));
  }
  if (Has(ledger, mark)) return {};
  const bool known = IsRestored(ledger, RestoredUse::Of::kBudget, budget.uid, mark);
  return {known ? HistoryVerdict::kRestored : HistoryVerdict::kRestore, ""};
}

HistoryJudgement JudgeLeaf(const LeafCheckpoint& checkpoint, const std::string& leaf,
                           const LedgerFile& ledger, Instant now) {
  const CheckpointMark& mark = checkpoint.mark;
  std::string problem = MomentProblem(mark.at, now);
  if (!problem.empty()) return Refused(std::move(problem));
  const LeafUse* before = nullptr;
  for (const LeafUse& use : checkpoint.uses) {
    const TimeSpan month = MonthFrom(use.span.start);
    const bool ordered = before == nullptr || std::tie(before->span.start, before->model) <
                                                  std::tie(use.span.start, use.model);
    if (month.end <= month.start || use.span.end != std::min(month.end, mark.at) || !ordered) {
      return Refused(fmt::format(
          "status.checkpoint.uses: expected months of UTC until {}, ascending, found {} to {}",
          wire::FormatTime(mark.at), wire::FormatTime(use.span.start),
          wire::FormatTime(use.span.end)));
    }
    before = &use;
  }
  if (Has(ledger, mark)) return {};
  const bool known = IsRestored(ledger, RestoredUse::Of::kLeaf, leaf, mark);
  return {known ? HistoryVerdict::kRestored : HistoryVerdict::kRestore, ""};
}

void CheckpointRecovery::Upsert(const PolicyObject& object) {
  if (object.kind == "GPUBudget") {
    budgets_.insert_or_assign(object.name, wire::DecodeBudgetCheckpoint(object.json));
  }
  if (object.kind == "GPUQuota") {
    leaves_.insert_or_assign(object.name, wire::DecodeLeafCheckpoint(object.json));
  }
}

void CheckpointRecovery::Remove(const std::string& kind, const std::string& name) {
  if (kind == "GPUBudget") budgets_.erase(name);
  if (kind == "GPUQuota") leaves_.erase(name);
}

FoundHistory CheckpointRecovery::Judge(const std::vector<GpuBudget>& budgets,
                                       const LedgerFile& ledger, Instant now) {
  FoundHistory found;
  for (const auto& [name, checkpoint] : std::exchange(budgets_, {})) {
    const auto budget = std::ranges::find(budgets, name, &GpuBudget::name);
    // One that is not in force counts nothing, and loses nothing that it would.
    if (budget == budgets.end() || (checkpoint.ok() && !checkpoint->has_value())) continue;
    const HistoryJudgement judged = checkpoint.ok()
                                        ? JudgeBudget(**checkpoint, *budget, ledger, now)
                                        : Refused(std::string(checkpoint.status().message()));
    if (judged.verdict == HistoryVerdict::kRefused) {
      found.findings.push_back(FindingOf("GPUBudget", name, judged.problem));
      continue;
    }
    found.budgets.emplace(budget->uid, **checkpoint);
    if (judged.verdict != HistoryVerdict::kRestore) continue;
    found.findings.push_back(RestoredFinding("GPUBudget", name, (*checkpoint)->mark.at));
    RestoredUse use;
    use.name = budget->uid;
    use.mark = (*checkpoint)->mark;
    use.stand = (*checkpoint)->stand;
    found.uses.push_back(std::move(use));
  }
  for (const auto& [name, checkpoint] : std::exchange(leaves_, {})) {
    if (checkpoint.ok() && !checkpoint->has_value()) continue;
    const HistoryJudgement judged = checkpoint.ok()
                                        ? JudgeLeaf(**checkpoint, name, ledger, now)
                                        : Refused(std::string(checkpoint.status().message()));
    if (judged.verdict == HistoryVerdict::kRefused) {
      found.findings.push_back(FindingOf("GPUQuota", name, judged.problem));
      continue;
    }
    found.leaves.emplace(name, **checkpoint);
    if (judged.verdict != HistoryVerdict::kRestore) continue;
    found.findings.push_back(RestoredFinding("GPUQuota", name, (*checkpoint)->mark.at));
    for (const LeafUse& told : (*checkpoint)->uses) {
      RestoredUse use;
      use.of = RestoredUse::Of::kLeaf;
      use.name = name;
      use.mark = (*checkpoint)->mark;
      use.use = told;
      found.uses.push_back(std::move(use));
    }
  }
  return found;
}

}  // namespace tranche
