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
    meters.push_back(MakeMeter(budget, now));
  }
  meters_ = std::move(meters);
  if (before != nullptr) {
    for (const GpuBudget& budget : before->budgets) {
      if (std::ranges::find(set_->budgets, budget) == set_->budgets.end())
        LiftDemotions(budget.uid);
    }
  }
  RebuildTree();
  for (std::size_t i = 0; i < meters_.size(); ++i) {
    if (fresh[i]) LoadPast(meters_[i]);
  }
  AdvanceMeters(now);
  if (RefreshExhausted(now)) RebuildTree();
}

void QuotaBook::SetNamespaces(std::shared_ptr<const PolicySet> set,
                              std::span<const std::string> moved) {
  set_ = std::move(set);
  // They point into the set before.
  classes_.clear();
  for (const std::string& ns : moved) routes_.erase(ns);
}

QuotaBook::Meter QuotaBook::MakeMeter(const GpuBudget& budget, Instant now) const {
  Instant created = now;
  Instant closed = Instant::min();
  for (const WindowClosing& closing : closings_) {
    if (closing.budget_uid != budget.uid) continue;
    created = std::min(created, closing.span.start);
    closed = std::max(closed, closing.span.end);
  }
  Meter made{BudgetMeter(budget, created), false};
  for (const WindowClosing& closing : closings_) {
    if (closing.budget_uid == budget.uid) made.meter.Restore(closing);
  }
  const auto stand = stands_.find(budget.uid);
  // A window that was closed later includes it.
  if (stand != stands_.end() && IsStandOf(stand->second, budget.window) &&
      (budget.window.type == BudgetWindow::Type::kRolling ||
       stand->second.window.start >= closed)) {
    made.meter.Resume(stand->second);
  }
  return made;
}

void QuotaBook::Resume(const std::string& budget_uid, BudgetStand stand, Instant now) {
  // Windows that ended since are closed again, with what they lacked.
  const auto wrong = [&](const WindowClosing& closing) {
    return closing.budget_uid == budget_uid && closing.span.start >= stand.window.start;
  };
  std::erase_if(closings_, wrong);
  std::erase_if(untold_, wrong);
  stands_.insert_or_assign(budget_uid, std::move(stand));
  for (Meter& meter : meters_) {
    if (meter.meter.spec().uid != budget_uid) continue;
    meter = MakeMeter(GpuBudget(meter.meter.spec()), now);
    LoadPast(meter);
  }
  AdvanceMeters(now);
  RefreshExhausted(now);
  RebuildTree();
}

std::map<std::string, BudgetStand> QuotaBook::BudgetStands(Instant now) const {
  std::map<std::string, BudgetStand> stands;
  for (const Meter& meter : meters_) {
    stands.emplace(meter.meter.spec().uid, meter.meter.Stand(now));
  }
  return stands;
}

// What the budget would have counted had it been there.
void QuotaBook::LoadPast(Meter& meter) {
  const GpuBudget& budget = meter.meter.spec();
  const bool from_running_only = budget.meter_from == MeterFrom::kRunning;
  std::vector<std::pair<const PastKind*, const PastUses::Lives*>> counted;
  Instant newest = Instant::min();
  for (const auto& [kind, lives] : past_.kinds()) {
    HeldWork work;
    work.pod.ns = kind.ns;
    work.leaf = kind.leaf;
    if (!MetersOf(work, budget)) continue;
    counted.emplace_back(&kind, &lives);
    newest = std::max(newest, lives.newest());
  }
  const auto tell = [&](const BudgetMeter::PastSink& count) {
    for (const auto& [kind, lives] : counted) {
      for (const ModelCharge& part : kind->parts) {
        const int64_t weight = WeightFor(budget, part.model, kind->workload_class);
        for (const PastLife& life : lives->all()) {
          const Instant since = from_running_only ? std::max(life.running, life.since) : life.since;
          if (since < life.until) count(part.charge, weight, {since, life.until}, kind->sign);
        }
      }
    }
  };
  if (!counted.empty()) meter.meter.LoadPast(newest, tell);
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
      if (limits.ok()) node.lines.emplace_back(LineName(line.model, line.pool), *limits);
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
  // The policy store has checked the set. If the tree still cannot be built, an empty one loses
  // nothing.
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
