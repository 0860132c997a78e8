// What quota says to people: sums and sentences.
#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "quota/quota_book.h"
#include "quota/tree/gpu_text.h"

namespace tranche {
int64_t QuotaBook::WeightOf(const std::string& leaf) const {
  const auto at = std::ranges::lower_bound(set_->quotas, leaf, {}, &GpuQuota::name);
  return at != set_->quotas.end() && at->name == leaf ? at->weight : 0;
}

bool QuotaBook::IsLeaf(const std::string& name) const {
  const auto at = std::ranges::lower_bound(set_->quotas, name, {}, &GpuQuota::name);
  return at != set_->quotas.end() && at->name == name && at->namespaces.has_value();
}

int64_t QuotaBook::DecayedMilliGpuHours(const std::string& leaf, Instant now) const {
  const auto use = leaves_.find(leaf);
  return use == leaves_.end() ? 0 : use->second.decayed.MilliGpuHours(now);
}

std::vector<std::pair<std::string, DecayedUsage::State>> QuotaBook::Decay() const {
  std::vector<std::pair<std::string, DecayedUsage::State>> rows;
  for (const auto& [leaf, use] : leaves_) rows.emplace_back(leaf, use.decayed.state());
  return rows;
}

std::vector<QuotaReport> QuotaBook::Quotas(Instant now) {
  std::vector<QuotaReport> reports;
  std::vector<std::vector<QuotaLineView>> views = tree_.Views();
  for (const GpuQuota& quota : set_->quotas) {
    const QuotaId id = tree_.Find(quota.name);
    if (id == kNoQuota) continue;
    QuotaReport report;
    report.name = quota.name;
    report.parent = quota.parent;
    report.mode = quota.mode;
    report.leaf = quota.namespaces.has_value();
    report.suspended = suspended_.contains(id);
    for (QuotaLineView& line : views[id]) report.lines.push_back({std::move(line), {}});
    report.decayed_milli_gpu_hours = DecayedMilliGpuHours(quota.name, now);
    const auto leaf = leaves_.find(quota.name);
    if (leaf == leaves_.end()) {
      reports.push_back(std::move(report));
      continue;
    }
    if (leaf->second.marks_stale) Remark(quota.name, leaf->second);
    const Marked& marked = leaf->second.marked;
    report.workloads = static_cast<int64_t>(leaf->second.work.size());
    report.workloads_borrowed = marked.borrowed_workloads;
    report.non_preemptible = marked.non_preemptible;
    for (QuotaLineReport& line : report.lines) {
      const auto borrowed = marked.borrowed.find(line.line.name);
      if (borrowed != marked.borrowed.end()) line.marked_borrowed = borrowed->second;
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

bool QuotaBook::FitsBeside(QuotaId first, std::span<const ModelCharge> taken, QuotaId second,
                           std::span<const ModelCharge> wanted) {
  for (const ModelCharge& part : taken) {
    tree_.Add(first, tree_.LineOf(first, part.model), part.charge);
  }
  bool fits = true;
  for (const ModelCharge& part : wanted) {
    const QuotaVerdict verdict = tree_.Check(second, tree_.LineOf(second, part.model), part.charge);
    fits &= verdict.refusal == QuotaRefusal::kNone;
  }
  for (const ModelCharge& part : taken) {
    tree_.Remove(first, tree_.LineOf(first, part.model), part.charge);
  }
  return fits;
}

void QuotaBook::Shares::SumUp() {
  for (const auto& [leaf, use] : book_.leaves_) {
    const int64_t used = use.decayed.MilliGpuHours(now_);
    if (use.work.empty() && used == 0) continue;
    weights_ += book_.WeightOf(leaf);
    usage_ += used;
  }
}

// w' = max(0, w^ + (w^ - u^)) of quota-model section 5, in millionths.
const QuotaBook::Shares::Side& QuotaBook::Shares::Of(QuotaId leaf) {
  constexpr int64_t kMillion = 1'000'000;
  if (sides_.empty()) SumUp();
  const auto [at, fresh] = sides_.try_emplace(leaf);
  if (!fresh) return at->second;
  const std::string& name = book_.tree_.name(leaf);
  const Int128 weight = book_.WeightOf(name);
  const Int128 fair = weights_ == 0 ? kMillion : weight * kMillion / weights_;
  const Int128 used =
      usage_ == 0 ? Int128{0} : Int128{book_.DecayedMilliGpuHours(name, now_)} * kMillion / usage_;
  at->second = {book_.tree_.MostBorrowed(leaf), std::max<Int128>(2 * fair - used, 0)};
  return at->second;
}

ShareTerms QuotaBook::Shares::TermsOf(QuotaId leaf) {
  const Side& side = Of(leaf);
  const std::string& name = book_.tree_.name(leaf);
  return {.borrowed = static_cast<int64_t>(side.borrowed),
          .weight = book_.WeightOf(name),
          .weights = static_cast<int64_t>(weights_),
          .used = book_.DecayedMilliGpuHours(name, now_),
          .used_by_all = static_cast<int64_t>(usage_),
          .entitled = static_cast<int64_t>(side.weight)};
}

// Shares are compared by cross-multiplication, so that nothing is rounded twice.
int QuotaBook::Shares::Compare(QuotaId left_leaf, QuotaId right_leaf) {
  const Side& left = Of(left_leaf);
  const Side& right = Of(right_leaf);
  if (left.weight == 0 || right.weight == 0) {
    if (left.weight != right.weight) return left.weight == 0 ? 1 : -1;
    return left.borrowed < right.borrowed ? -1 : left.borrowed > right.borrowed;
  }
  const Int128 left_share = left.borrowed * right.weight;
  const Int128 right_share = right.borrowed * left.weight;
  if (left_share != right_share) return left_share < right_share ? -1 : 1;
  // Nobody borrows more: who has used less for their weight.
  return left.weight > right.weight ? -1 : left.weight < right.weight;
}

std::vector<BudgetReport> QuotaBook::Budgets(Instant now) const {
  std::vector<BudgetReport> reports;
  for (const Meter& meter : meters_) {
    BudgetReport report{meter.meter.spec(), meter.meter.View(now)};
    const auto stand = stands_.find(report.spec.uid);
    if (stand != stands_.end() && IsStandOf(stand->second, report.spec.window) &&
        report.view.window.start < stand->second.window.end) {
      report.restored = stand->second.at;
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

std::string QuotaBook::Explain(const QuotaMembership& membership, const Admission& admission,
                               std::span<const ModelCharge> parts, Instant now) const {
  if (admission.budget && admission.code == AdmissionCode::kBudgetExhausted) {
    const Meter& meter = meters_[*admission.budget];
    const BudgetView view = meter.meter.View(now);
    return fmt::format("budget {}: {} of {} GPU-hours are used and {} promised to running work",
                       meter.meter.spec().name, FormatGpuHours(view.used),
                       FormatGpuHours(view.effective), FormatGpuHours(view.committed));
  }
  if (membership.leaf == kNoQuota || admission.quota.refusal == QuotaRefusal::kNone) return "";
  const QuotaVerdict& verdict = admission.quota;
  const std::string& name = tree_.line_name(verdict.line);
  const std::string& leaf = tree_.name(membership.leaf);
  QuotaLineView view;
  for (const QuotaLineView& line : tree_.View(membership.leaf)) {
    if (line.name == name) view = line;
  }
  const Dimension dimension = verdict.dimension;
  int64_t wanted = 0;
  for (const ModelCharge& part : parts) {
    const LineId line = tree_.LineOf(membership.leaf, part.model);
    if (verdict.line == kAnyLine || verdict.line == line) wanted += PartOf(part.charge, dimension);
  }
  std::string text = fmt::format(
      "{} uses {} {}{} (nominal {}, may reach {}), needs {}; {} can be had now, short by {}", leaf,
      GpusRoundedUp(PartOf(view.used, dimension)), name,
      dimension == Dimension::kMemory ? " by memory" : "",
      GpusRoundedDown(PartOf(view.nominal, dimension)),
      GpusRoundedDown(PartOf(view.reach, dimension)), GpusRoundedUp(wanted),
      GpusRoundedDown(std::max<Limit>(PartOf(view.available, dimension), 0)),
      GpusRoundedUp(verdict.short_by));
  if (verdict.refusal == QuotaRefusal::kBorrowLimit && verdict.binding != kNoQuota) {
    text += fmt::format("; the borrowLimit of {} binds", tree_.name(verdict.binding));
  }
  if (verdict.refusal == QuotaRefusal::kLenderLimit && verdict.binding != kNoQuota) {
    text += fmt::format("; the lendLimit of {} binds", tree_.name(verdict.binding));
  }
  const bool never =
      membership.gpu_class != nullptr && membership.gpu_class->preemptible == Preemptible::kNever;
  if (never &&
      (verdict.refusal == QuotaRefusal::kExceedsMax || verdict.refusal == QuotaRefusal::kWaiting)) {
    text += "; work that is never preempted must fit nominal";
  }
  if (verdict.refusal == QuotaRefusal::kWaiting) {
    int named = 0;
    for (const auto& [holder, charge] :
         tree_.Borrowers(tree_.root(membership.leaf), verdict.line)) {
      if (holder == membership.leaf) continue;
      text += fmt::format("; {} holds {} borrowed", tree_.name(holder),
                          GpusRoundedUp(PartOf(charge, dimension)));
      if (++named == 3) break;
    }
  }
  return text;
}

}  // namespace tranche
