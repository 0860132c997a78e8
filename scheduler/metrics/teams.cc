#include "scheduler/metrics/teams.h"

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "quota/tree/limits.h"

namespace tranche::metrics {
namespace {

// Unlimited is +Inf, as Prometheus spells it.
double Gpus(Limit limit) {
  const std::optional<int64_t> quanta = limit.amount();
  if (!quanta) return std::numeric_limits<double>::infinity();
  return static_cast<double>(*quanta) / static_cast<double>(kQuantaPerGpu);
}

double GpuSeconds(Int128 amount) {
  return static_cast<double>(amount) / static_cast<double>(kGpuHour / 3600);
}

double Seconds(Instant since_epoch) {
  return std::chrono::duration<double>(since_epoch.time_since_epoch()).count();
}

// Labels of what quota lines and charges are of, behind `first`; without a pool there is none of
// it.
Labels OfLine(std::pair<std::string, std::string> first, const std::string& name) {
  const LineParts parts = PartsOf(name);
  Labels labels = {std::move(first)};
  labels.emplace_back("model", parts.model);
  if (!parts.pool.empty()) labels.emplace_back("pool", parts.pool);
  return labels;
}

void AddLine(const std::string& leaf, bool is_leaf, const QuotaLineReport& report, Page& page) {
  const QuotaLineView& line = report.line;
  const Charge& borrowed = is_leaf ? report.marked_borrowed : line.borrowed;
  for (const Dimension dimension : kDimensions) {
    Labels labels = OfLine({"leaf", leaf}, line.name);
    labels.emplace_back("dim", dimension == Dimension::kCompute ? "compute" : "memory");
    const auto of = [dimension](const auto& both) { return Gpus(PartOf(both, dimension)); };
    page.Gauge(kQuotaNominal, of(line.nominal), labels);
    page.Gauge(kQuotaUsed, of(line.used), labels);
    page.Gauge(kQuotaBorrowed, of(borrowed), labels);
    page.Gauge(kQuotaLent, of(line.lent), labels);
    page.Gauge(kQuotaAvailable, of(line.available), labels);
  }
}

using LeafByNamespace = std::map<std::string, std::string>;

LeafByNamespace OwnersOf(const std::vector<QuotaView>& quotas) {
  LeafByNamespace owners;
  for (const QuotaView& quota : quotas) {
    for (const std::string& ns : quota.report.namespaces) owners.emplace(ns, quota.report.name);
  }
  return owners;
}

void AddBudget(const BudgetReport& report, const LeafByNamespace& owners, Page& page) {
  const Labels labels = {{"budget", report.spec.name}};
  const std::string& ns = report.spec.ns;
  std::string leaf = report.spec.quota_ref;
  if (const auto owner = owners.find(ns); owner != owners.end()) leaf = owner->second;
  page.Gauge(kBudgetInfo, 1,
             {{"budget", report.spec.name}, {"leaf", leaf}, {"quota_namespace", ns}});
  if (report.spec.window.type != BudgetWindow::Type::kRolling) {
    page.Gauge(kBudgetWindowEnd, Seconds(report.view.window.end), labels);
  }
  page.Gauge(kBudgetUsed, GpuSeconds(report.view.used), labels);
  page.Gauge(kBudgetCommitted, GpuSeconds(report.view.committed), labels);
  page.Gauge(kBudgetLimit, GpuSeconds(report.view.effective), labels);
  page.Gauge(kBudgetExhausted, report.view.state == BudgetState::kExhausted ? 1 : 0, labels);
  if (report.view.exhausts_at) {
    page.Gauge(kBudgetExhaustsAt, Seconds(*report.view.exhausts_at), labels);
  }
}

// Instances and shares of one GPU that a pod holds are one series.
void AddShareInfo(const std::vector<PodView>& pods, Page& page) {
  for (const PodView& pod : pods) {
    const bool holds = pod.state == PodState::kBound || pod.state == PodState::kReserved;
    if (!holds || !pod.allocation) continue;
    std::map<std::string, int64_t> milli;
    for (const ContainerDevices& container : pod.allocation->containers) {
      for (const Device& device : container.devices) {
        if (!device.uuid.empty()) milli[device.uuid.str()] += device.milli.count();
      }
    }
    for (const auto& [uuid, share] : milli) {
      page.Gauge(kShareInfo, static_cast<double>(share),
                 {{"UUID", uuid},
                  {"quota_namespace", pod.name.ns},
                  {"pod", pod.name.name},
                  {"leaf", pod.leaf}});
    }
  }
}

void AddUse(const UseRow& use, Page& page) {
  page.Gauge(kUseAge, use.age_seconds);
  page.Counter(kUseFailures, static_cast<double>(use.failures));
  page.Gauge(kUsePods, static_cast<double>(use.measured), {{"measured", "yes"}});
  page.Gauge(kUsePods, static_cast<double>(use.unmeasured), {{"measured", "no"}});
  for (const IdleRow& row : use.idle) {
    page.Gauge(kIdleDevices, static_cast<double>(row.devices),
               {{"leaf", row.leaf}, {"class", row.workload_class}});
  }
}

void AddHeld(const Scrape& scrape, Page& page) {
  for (const ExpectedStartRow& row : scrape.expected_starts) {
    page.Gauge(kExpectedStart, row.seconds, {{"leaf", row.leaf}, {"class", row.workload_class}});
  }
  const ForecastSpansRow& spans = scrape.forecast_spans;
  page.Counter(kForecastSpans, static_cast<double>(spans.before), {{"start", "before"}});
  page.Counter(kForecastSpans, static_cast<double>(spans.within), {{"start", "within"}});
  page.Counter(kForecastSpans, static_cast<double>(spans.after), {{"start", "after"}});
  for (const HeldTimeRow& row : scrape.held_time) {
    Labels labels = OfLine({"leaf", row.leaf}, row.model);
    labels.emplace_back("class", row.workload_class);
    page.Counter(kGpuSeconds, static_cast<double>(row.quanta_ms) / (kQuantaPerGpu * 1000.0),
                 labels);
  }
  if (scrape.use) AddUse(*scrape.use, page);
  for (const NamespaceHeldRow& row : scrape.namespaces) {
    page.Gauge(kNamespaceUsed, Gpus(GpuEquivalents(row.held)),
               OfLine({"quota_namespace", row.ns}, row.model));
  }
}

Labels OfCost(const CostRow& row) {
  Labels labels = {{"model", row.model}};
  if (!row.pool.empty()) labels.emplace_back("pool", row.pool);
  return labels;
}

// GPUs with a price have a row of money, those without one a row of GPUs: never a cost of 0.
void AddCosts(const CostSums& costs, Page& page) {
  constexpr double kGpuHourMoney = 1e6 * kQuantaPerGpu;
  const auto add = [&page](const Series& cost, const Series& unpriced, const CostRow& row,
                           Labels labels) {
    if (row.currency.empty()) {
      page.Gauge(unpriced, static_cast<double>(row.quanta) / kQuantaPerGpu, labels);
      return;
    }
    labels.emplace_back("currency", row.currency);
    page.Gauge(cost, static_cast<double>(row.money) / kGpuHourMoney, labels);
  };
  for (const CostRow& row : costs.held) {
    Labels labels = OfCost(row);
    labels.insert(labels.begin(), {"leaf", row.leaf});
    add(kCost, kHeldUnpriced, row, std::move(labels));
  }
  for (const CostRow& row : costs.fleet) add(kFleetCost, kUnpriced, row, OfCost(row));
}

void AddLedger(const LedgerRow& ledger, Page& page) {
  page.Gauge(kLedgerWritable, ledger.writable ? 1 : 0);
  for (const auto& [kind, wrong] : ledger.faults) {
    page.Gauge(kLedgerFaults, wrong ? 1 : 0, {{"kind", kind}});
  }
  if (ledger.backup_age_seconds) {
    page.Gauge(kLedgerBackupAge, static_cast<double>(*ledger.backup_age_seconds));
  }
  page.Counter(kLedgerEntries, static_cast<double>(ledger.entries));
  page.Gauge(kLedgerQueued, static_cast<double>(ledger.queued));
  page.Counter(kLedgerDropped, static_cast<double>(ledger.dropped));
  page.Counter(kLedgerFailures, static_cast<double>(ledger.failures));
  page.Counter(kLedgerLate, static_cast<double>(ledger.late));
  page.Gauge(kLedgerWal, static_cast<double>(ledger.wal_bytes));
  if (ledger.drift_quanta) page.Gauge(kLedgerDrift, static_cast<double>(*ledger.drift_quanta));
  page.Gauge(kLedgerRestored, static_cast<double>(ledger.restored));
  if (ledger.checkpoint_age_seconds) {
    page.Gauge(kLedgerCheckpointAge, static_cast<double>(*ledger.checkpoint_age_seconds));
  }
  page.Gauge(kLedgerHead, static_cast<double>(ledger.last_entry));
}

}  // namespace

void AddTeams(const Scrape& scrape, Page& page) {
  for (const QuotaView& quota : scrape.quotas) {
    for (const QuotaLineReport& line : quota.report.lines) {
      AddLine(quota.report.name, quota.report.leaf, line, page);
    }
  }
  const LeafByNamespace owners = OwnersOf(scrape.quotas);
  for (const auto& [ns, leaf] : owners) {
    page.Gauge(kNamespaceInfo, 1, {{"leaf", leaf}, {"quota_namespace", ns}});
  }
  for (const BudgetReport& budget : scrape.budgets) AddBudget(budget, owners, page);
  for (const PendingRow& row : scrape.pending) {
    const Labels labels = {{"leaf", row.leaf},
                           {"class", row.workload_class},
                           {"reason", std::string(Describe(row.reason).code)}};
    page.Gauge(kPendingWorkloads, static_cast<double>(row.workloads), labels);
    page.Gauge(kPendingGpus, Gpus(row.quanta), labels);
  }
  AddHeld(scrape, page);
  AddCosts(scrape.costs, page);
  AddShareInfo(scrape.shares, page);
  if (scrape.ledger) AddLedger(*scrape.ledger, page);
}

}  // namespace tranche::metrics
