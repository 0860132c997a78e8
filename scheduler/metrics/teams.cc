#include "scheduler/metrics/teams.h"

#include <cmath>
#include <limits>

#include "quota/limits.h"

namespace tranche::metrics {
namespace {

// Unlimited is +Inf, as Prometheus spells it.
double Gpus(int64_t quanta) {
  if (quanta >= kUnlimited) return std::numeric_limits<double>::infinity();
  return static_cast<double>(quanta) / static_cast<double>(kQuantaPerGpu);
}

double Hours(Int128 amount) { return static_cast<double>(amount) / static_cast<double>(kGpuHour); }

void AddLine(const std::string& leaf, bool is_leaf, const QuotaLineReport& report, Page& page) {
  const QuotaLineView& line = report.line;
  const Charge& borrowed = is_leaf ? report.marked_borrowed : line.borrowed;
  for (const bool compute : {true, false}) {
    const Labels labels = {
        {"leaf", leaf}, {"model", line.model}, {"dim", compute ? "compute" : "memory"}};
    const auto of = [compute](const Charge& charge) {
      return Gpus(compute ? charge.compute : charge.memory);
    };
    page.Gauge(kQuotaNominal, of(line.nominal), labels);
    page.Gauge(kQuotaUsed, of(line.used), labels);
    page.Gauge(kQuotaBorrowed, of(borrowed), labels);
    page.Gauge(kQuotaLent, of(line.lent), labels);
    page.Gauge(kQuotaAvailable, of(line.available), labels);
  }
}

void AddBudget(const BudgetReport& report, Page& page) {
  const Labels labels = {{"budget", report.spec.name}};
  page.Gauge(kBudgetUsed, Hours(report.view.used), labels);
  page.Gauge(kBudgetCommitted, Hours(report.view.committed), labels);
  page.Gauge(kBudgetLimit, Hours(report.view.effective), labels);
  page.Gauge(kBudgetExhausted, report.view.state == BudgetState::kExhausted ? 1 : 0, labels);
  if (report.view.exhausts_at) {
    const std::chrono::duration<double> at = report.view.exhausts_at->time_since_epoch();
    page.Gauge(kBudgetExhaustsAt, at.count(), labels);
  }
}

void AddLedger(const LedgerRow& ledger, Page& page) {
  page.Gauge(kLedgerWritable, ledger.writable ? 1 : 0);
  page.Counter(kLedgerEntries, static_cast<double>(ledger.entries));
  page.Gauge(kLedgerQueued, static_cast<double>(ledger.queued));
  page.Counter(kLedgerDropped, static_cast<double>(ledger.dropped));
  page.Counter(kLedgerFailures, static_cast<double>(ledger.failures));
  page.Counter(kLedgerLate, static_cast<double>(ledger.late));
  page.Gauge(kLedgerWal, static_cast<double>(ledger.wal_bytes));
  if (ledger.drift_quanta) page.Gauge(kLedgerDrift, static_cast<double>(*ledger.drift_quanta));
  page.Gauge(kLedgerHead, static_cast<double>(ledger.last_entry));
}

}  // namespace

void AddTeams(const Scrape& scrape, Page& page) {
  for (const QuotaView& quota : scrape.quotas) {
    for (const QuotaLineReport& line : quota.report.lines) {
      AddLine(quota.report.name, quota.report.leaf, line, page);
    }
  }
  for (const BudgetReport& budget : scrape.budgets) AddBudget(budget, page);
  for (const PendingRow& row : scrape.pending) {
    const Labels labels = {{"leaf", row.leaf},
                           {"class", row.workload_class},
                           {"reason", std::string(Describe(row.reason).code)}};
    page.Gauge(kPendingWorkloads, static_cast<double>(row.workloads), labels);
    page.Gauge(kPendingGpus, Gpus(row.quanta), labels);
  }
  if (scrape.ledger) AddLedger(*scrape.ledger, page);
}

}  // namespace tranche::metrics
