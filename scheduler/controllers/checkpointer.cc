#include "scheduler/controllers/checkpointer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "scheduler/ledger/reader.h"
#include "scheduler/wire/records/checkpoint_json.h"
#include "topology/base/status.h"

namespace tranche {
namespace {

// Months of UTC that leaves' checkpoints cover, the running one included.
constexpr int kMonths = 3;

// That of `at` and those before it, ascending; the last one until `at`.
std::vector<TimeSpan> MonthsUntil(Instant at) {
  const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(at)};
  std::vector<TimeSpan> months;
  for (int back = kMonths - 1; back >= 0; --back) {
    const std::chrono::year_month month = date.year() / date.month() - std::chrono::months(back);
    const Instant start(std::chrono::sys_days{month / 1});
    const Instant end(std::chrono::sys_days{(month + std::chrono::months(1)) / 1});
    if (start < at) months.push_back({start, std::min(end, at)});
  }
  return months;
}

// Nothing but time has passed between them.
bool SaysTheSame(const BudgetCheckpoint& left, const BudgetCheckpoint& right) {
  if (left.mark.ledger != right.mark.ledger) return false;
  const BudgetStand& before = left.stand;
  const BudgetStand& now = right.stand;
  if (UsedOf(before) != UsedOf(now)) return false;
  // A rolling window that moved on has other parts of the same sum, unless that is nothing.
  if (before.parts.empty() && now.parts.empty() && before.window.end == before.at) return true;
  return before.window == now.window && before.carried_in == now.carried_in &&
         before.debt_in == now.debt_in;
}

bool SaysTheSame(const LeafCheckpoint& left, const LeafCheckpoint& right) {
  const auto same = [](const LeafUse& before, const LeafUse& now) {
    return before.model == now.model && before.span.start == now.span.start &&
           before.time == now.time;
  };
  return left.mark.ledger == right.mark.ledger && std::ranges::equal(left.uses, right.uses, same);
}

}  // namespace

template <typename Checkpoint>
void Checkpointer::Renew(std::map<std::string, Kept<Checkpoint>>& known,
                         std::map<std::string, Checkpoint> taken) {
  std::map<std::string, Kept<Checkpoint>> renewed;
  for (auto& [name, checkpoint] : taken) {
    const auto before = known.find(name);
    if (before != known.end() && SaysTheSame(before->second.checkpoint, checkpoint)) {
      renewed[name] = std::move(before->second);
    } else {
      std::string text = wire::EncodeCheckpoint(checkpoint);
      renewed[name] = {std::move(checkpoint), std::move(text)};
    }
  }
  known = std::move(renewed);
}

template <typename Checkpoint>
std::string Checkpointer::TextOf(const std::map<std::string, Kept<Checkpoint>>& known,
                                 const std::string& name) {
  const auto found = known.find(name);
  return found == known.end() ? std::string() : found->second.text;
}

Checkpointer::Checkpointer(Host& host, Ledger* ledger, std::string path)
    : host_(host), ledger_(ledger), path_(std::move(path)) {}

// A status is written as a whole: its old checkpoint is written again until there is a newer one.
void Checkpointer::TellFound() {
  const absl::MutexLock lock(&mutex_);
  if (std::exchange(found_told_, true)) return;
  FoundHistory found = host_.policies.found_history();
  Renew(budgets_, std::move(found.budgets));
  Renew(leaves_, std::move(found.leaves));
  news_ = std::move(found.findings);
}

absl::StatusOr<std::map<std::string, LeafCheckpoint>> Checkpointer::ReadLeaves(
    const CheckpointMark& mark) {
  TRANCHE_ASSIGN_OR_RETURN(ledger::Reader reader, ledger::Reader::Open(path_));
  std::map<std::string, LeafCheckpoint> leaves;
  const std::vector<TimeSpan> months = MonthsUntil(mark.at);
  for (const TimeSpan& month : months) {
    ledger::ReportQuery query;
    query.from = month.start;
    query.to = month.end;
    query.now = mark.at;
    TRANCHE_ASSIGN_OR_RETURN(const std::vector<ledger::ReportRow> rows, reader.Report(query));
    for (const ledger::ReportRow& row : rows) {
      // Refunds may reach back over the end of a month.
      const GpuTime time{std::max<Int128>(0, row.time.compute),
                         std::max<Int128>(0, row.time.memory)};
      if (row.leaf.empty() || time == GpuTime{}) continue;
      LeafCheckpoint& leaf = leaves[row.leaf];
      leaf.mark = mark;
      leaf.uses.push_back({row.model, month, time});
    }
  }
  for (auto& [name, leaf] : leaves) {
    const std::size_t surplus = leaf.uses.size() - std::min(leaf.uses.size(), wire::kMostLeafUses);
    leaf.uses.erase(leaf.uses.begin(), leaf.uses.begin() + static_cast<std::ptrdiff_t>(surplus));
  }
  ledger::ReportQuery shown;
  shown.from = months.front().start;
  shown.now = mark.at;
  TRANCHE_ASSIGN_OR_RETURN(std::vector<ledger::RestoredRow> restored, reader.Restored(shown));
  std::map<std::string, Instant> newest;
  for (const ledger::RestoredRow& row : restored) {
    Instant& at = newest.try_emplace(row.leaf, row.mark.at).first->second;
    at = std::max(at, row.mark.at);
  }
  const absl::MutexLock lock(&mutex_);
  restored_leaves_ = std::move(newest);
  return leaves;
}

void Checkpointer::Take(Instant now) {
  if (host_.cluster.readiness() != Readiness::kReady) return;
  TellFound();
  if (ledger_ == nullptr || (tried_ > now - kCheckpointEvery && tried_ <= now)) return;
  std::map<std::string, BudgetCheckpoint> budgets;
  Instant at;
  host_.engine.With(EngineCaller::kStatus, [&](Engine& engine, Instant when) {
    at = when;
    for (auto& [uid, stand] : engine.BudgetStands(when)) budgets[uid].stand = std::move(stand);
  });
  const LedgerHealth health = ledger_->health();
  // What the engine has counted and the ledger does not have yet is nobody's to restore.
  if (!health.writable || health.queued > 0 || health.id.empty()) return;
  tried_ = now;
  const CheckpointMark mark{health.id, health.last_entry, at};
  for (auto& [uid, budget] : budgets) {
    budget.mark = mark;
    budget.mark.at = budget.stand.at;
  }
  absl::StatusOr<std::map<std::string, LeafCheckpoint>> leaves = ReadLeaves(mark);
  if (!leaves.ok()) {
    spdlog::warn("no checkpoint of the ledger could be taken: {}",
                 std::string(leaves.status().message()));
    return;
  }
  const absl::MutexLock lock(&mutex_);
  Renew(budgets_, std::move(budgets));
  Renew(leaves_, *std::move(leaves));
  taken_ = at;
}

std::string Checkpointer::OfBudget(const std::string& uid) const {
  const absl::MutexLock lock(&mutex_);
  return TextOf(budgets_, uid);
}

std::string Checkpointer::OfLeaf(const std::string& name) const {
  const absl::MutexLock lock(&mutex_);
  return TextOf(leaves_, name);
}

std::vector<Finding> Checkpointer::Findings(const std::vector<BudgetReport>& budgets) const {
  const absl::MutexLock lock(&mutex_);
  std::vector<Finding> findings;
  // A refused checkpoint leaves no other trace.
  for (const Finding& finding : news_) {
    if (!finding.status) findings.push_back(finding);
  }
  const auto refused = [&findings](const std::string& kind, const std::string& name) {
    return std::ranges::any_of(findings, [&](const Finding& finding) {
      return finding.kind == kind && finding.name == name && !finding.status;
    });
  };
  for (const BudgetReport& budget : budgets) {
    const std::string& name = budget.spec.name;
    if (!budget.restored || refused("GPUBudget", name)) continue;
    findings.push_back(RestoredFinding("GPUBudget", name, *budget.restored));
  }
  for (const auto& [leaf, at] : restored_leaves_) {
    if (!refused("GPUQuota", leaf)) findings.push_back(RestoredFinding("GPUQuota", leaf, at));
  }
  return findings;
}

std::vector<Finding> Checkpointer::news() const {
  const absl::MutexLock lock(&mutex_);
  return news_;
}

std::optional<Instant> Checkpointer::taken() const {
  const absl::MutexLock lock(&mutex_);
  return taken_;
}

}  // namespace tranche
