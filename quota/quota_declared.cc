// Taking up what administrators declare: the tree, and budgets with the use that came before them.
#include <algorithm>
#include <string>
#include <utility>

#include "quota/quota_book.h"

namespace tranche {

void QuotaBook::SetPolicies(std::shared_ptr<const PolicySet> set, Instant now) {
  const std::shared_ptr<const PolicySet> before = std::exchange(set_, std::move(set));
  std::vector<Meter> meters;
  std::vector<bool> fresh;
  for (const GpuBudget& budget : set_->budgets) {
    const auto known = std::ranges::find_if(meters_, [&budget](const Meter& meter) {
      return meter.meter.spec().name == budget.name && meter.meter.spec().uid == budget.uid &&
             meter.meter.spec().quota_ref == budget.quota_ref &&
             meter.meter.spec().ns == budget.ns && meter.meter.spec().window == budget.window &&
             meter.meter.spec().rates == budget.rates &&
             meter.meter.spec().meter_from == budget.meter_from;
    });
    fresh.push_back(known == meters_.end());
    if (known != meters_.end()) {
      known->meter.SetSpec(budget);
      meters.push_back(std::move(*known));
      continue;
    }
    Instant created = now;
    for (const WindowClosing& closing : closings_) {
      if (closing.budget_uid == budget.uid) created = std::min(created, closing.span.start);
    }
    meters.push_back({BudgetMeter(budget, created), false});
    for (const WindowClosing& closing : closings_) {
      if (closing.budget_uid == budget.uid) meters.back().meter.Restore(closing);
    }
  }
  meters_ = std::move(meters);
  RebuildTree();
  for (std::size_t i = 0; i < meters_.size(); ++i) {
    if (fresh[i]) LoadPast(meters_[i]);
  }
  AdvanceMeters(now);
  RefreshExhausted(now);
  RebuildTree();
}

// What the budget would have counted had it been there.
void QuotaBook::LoadPast(Meter& meter) {
  const GpuBudget& budget = meter.meter.spec();
  int64_t serial = 0;
  for (const PastUse& use : past_) {
    HeldWork work;
    work.pod.ns = use.ns;
    work.leaf = use.leaf;
    work.workload_class = use.workload_class;
    if (!MetersOf(work, budget)) continue;
    const bool from_running = budget.meter_from == MeterFrom::kRunning;
    if (from_running && !use.running) continue;
    const Instant since = from_running ? std::max(*use.running, use.since) : use.since;
    for (const ModelCharge& part : use.parts) {
      const int64_t weight = WeightFor(budget, part.model, use.workload_class);
      if (use.sign < 0) {
        meter.meter.Adjust(part.charge, weight, {since, use.until}, -1);
        continue;
      }
      const std::string key = "past/" + std::to_string(serial++);
      meter.meter.Start(key, part.charge, weight, since, std::nullopt);
      meter.meter.Stop(key, use.until);
    }
  }
  for (const auto& [uid, work] : holdings_) {
    if (!MetersOf(work, budget)) continue;
    const bool from_running = budget.meter_from == MeterFrom::kRunning;
    if (from_running && !work.running) continue;
    StartMeter(meter, uid, work, from_running ? *work.running : work.since);
  }
}

void QuotaBook::RebuildTree() {
  std::vector<QuotaNode> nodes;
  for (const GpuQuota& quota : set_->quotas) {
    QuotaNode node;
    node.name = quota.name;
    node.parent = quota.parent;
    for (const QuotaLine& line : quota.lines) {
      const absl::StatusOr<LineLimits> limits = ToLimits(line);
      if (limits.ok()) node.lines.emplace_back(line.model, *limits);
    }
    for (const Meter& meter : meters_) {
      const GpuBudget& budget = meter.meter.spec();
      node.suspended |= meter.exhausted && budget.quota_ref == quota.name &&
                        budget.on_exhaustion == OnExhaustion::kDemote;
    }
    nodes.push_back(std::move(node));
  }
  suspended_.clear();
  std::vector<std::string> suspended;
  for (const QuotaNode& node : nodes) {
    if (node.suspended) suspended.push_back(node.name);
  }
  // Whoever made the set has checked it; a tree that cannot be built allows nothing to be lost.
  absl::StatusOr<QuotaTree> tree = QuotaTree::Build(std::move(nodes));
  tree_ = tree.ok() ? *std::move(tree) : QuotaTree();
  for (const std::string& name : suspended) suspended_.insert(tree_.Find(name));
  routes_.clear();
  classes_.clear();
  never_held_.clear();
  for (auto& [leaf, use] : leaves_) use.marks_stale = true;
  for (auto& [uid, work] : holdings_) {
    work.quota = work.leaf.empty() ? kNoQuota : tree_.Find(work.leaf);
    if (!work.released) AddToTree(work, 1);
  }
  for (const auto& [uid, work] : earmarks_) AddToTree(work, 1);
}

}  // namespace tranche
