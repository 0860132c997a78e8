// What administrators declare, for tests, written as people say it:
//   Declare({.quotas = {Quota("team-a").Under("org").Owns("a").Line("h100", "8", "4")}})
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy/policy_set.h"
#include "test/builders/budget.h"
#include "topology/base/check.h"

namespace tranche::test {

inline LabelSelector Namespaces(std::vector<std::string> names) {
  LabelSelector selector;
  selector.match_expressions.push_back(
      {"kubernetes.io/metadata.name", SelectorTerm::Operator::kIn, std::move(names)});
  return selector;
}

// "8", "0.5": GPUs with at most three decimals.
inline QuotaAmount Amount(const std::string& gpus) {
  const std::size_t point = gpus.find('.');
  std::string decimals = point == std::string::npos ? "" : gpus.substr(point + 1);
  TRANCHE_CHECK(decimals.size() <= 3);
  decimals.resize(3, '0');
  QuotaAmount amount;
  amount.gpus = MilliGpu::Of(std::stoll(gpus.substr(0, point)) * 1000 + std::stoll(decimals));
  return amount;
}

class Quota {
 public:
  explicit Quota(const std::string& name) { quota_.name = name; }
  Quota& Under(const std::string& parent) {
    quota_.parent = parent;
    return *this;
  }
  Quota& Owns(const std::string& ns) {
    owned_.push_back(ns);
    quota_.namespaces = Namespaces(owned_);
    return *this;
  }
  // Empty texts: no limit.
  Quota& Line(const std::string& model, const std::string& nominal, const std::string& borrow = "",
              const std::string& lend = "") {
    QuotaLine line{model, Amount(nominal), std::nullopt, std::nullopt};
    if (!borrow.empty()) line.borrow_limit = Amount(borrow);
    if (!lend.empty()) line.lend_limit = Amount(lend);
    quota_.lines.push_back(std::move(line));
    std::ranges::sort(quota_.lines, {}, &QuotaLine::model);
    return *this;
  }
  Quota& PoolLine(const std::string& model, const std::string& pool, const std::string& nominal) {
    quota_.lines.push_back({model, Amount(nominal), std::nullopt, std::nullopt, pool});
    return *this;
  }
  Quota& Mode(QuotaMode mode) {
    quota_.mode = mode;
    return *this;
  }
  Quota& Weight(int64_t weight) {
    quota_.weight = weight;
    return *this;
  }
  Quota& OnShrunk(OnShrink on_shrink) {
    quota_.on_shrink = on_shrink;
    return *this;
  }
  // R3 between the leaves below, for work of at least this rank.
  Quota& CrossLeaf(int min_rank) {
    quota_.cross_leaf_preemption = true;
    quota_.cross_leaf_min_rank = min_rank;
    return *this;
  }
  Quota& EvictionsPerHour(int most) {
    quota_.max_evictions_per_hour = most;
    return *this;
  }
  Quota& FreedAtDeletion() {
    quota_.release = ReleasePolicy::kOnDeletionTimestamp;
    return *this;
  }
  operator GpuQuota() const { return quota_; }  // NOLINT: a builder stands for what it builds

 private:
  GpuQuota quota_;
  std::vector<std::string> owned_;
};

// GPU-hours a UTC day for a quota.
inline GpuBudget DayBudget(const std::string& quota, int64_t gpu_hours,
                           OnExhaustion on_exhaustion = OnExhaustion::kBlock) {
  GpuBudget budget = PlainBudget(BudgetWindow::Type::kDay, gpu_hours);
  budget.name = quota + "-day";
  budget.uid = "uid-of-" + budget.name;
  budget.quota_ref = quota;
  budget.on_exhaustion = on_exhaustion;
  return budget;
}

// The class of the priority class of the same name.
inline GpuClass Class(const std::string& name, int rank = 2,
                      Preemptible preemptible = Preemptible::kAlways) {
  GpuClass gpu_class = DefaultClass("");
  gpu_class.name = name;
  gpu_class.priority_classes = {name};
  gpu_class.rank = rank;
  gpu_class.preemptible = preemptible;
  return gpu_class;
}

struct Objects {
  std::vector<GpuQuota> quotas = {};
  std::vector<GpuBudget> budgets = {};
  std::vector<GpuClass> classes = {};
  std::vector<GpuPolicy> policies = {};
  std::vector<std::string> namespaces = {};  // known ones
  std::vector<GpuPool> pools = {};
  std::vector<GpuPrice> prices = {};
};

// Nodes with the label pool=NAME.
inline GpuPool Pool(const std::string& name) {
  GpuPool pool;
  pool.name = name;
  pool.nodes.match_labels = {{"pool", name}};
  return pool;
}

// Of a GPU and an hour, in thousandths of a dollar; for everything that the caller does not narrow.
inline GpuPrice Price(const std::string& name, int64_t thousandths) {
  GpuPrice price;
  price.name = name;
  price.micros_per_gpu_hour = thousandths * 1000;
  price.currency = "USD";
  return price;
}

inline std::shared_ptr<const PolicySet> Declare(Objects objects) {
  auto set = std::make_shared<PolicySet>();
  set->quotas = std::move(objects.quotas);
  set->budgets = std::move(objects.budgets);
  set->classes = std::move(objects.classes);
  for (GpuPolicy& policy : objects.policies) {
    (policy.nodes ? set->node_policies : set->policies).push_back(std::move(policy));
  }
  set->pools = std::move(objects.pools);
  set->prices = std::move(objects.prices);
  std::ranges::sort(set->quotas, {}, &GpuQuota::name);
  std::ranges::sort(set->budgets, {}, &GpuBudget::name);
  std::ranges::sort(set->classes, {}, &GpuClass::name);
  std::ranges::sort(set->pools, {}, &GpuPool::name);
  std::ranges::sort(set->prices, {}, &GpuPrice::name);
  for (const std::string& ns : objects.namespaces) {
    set->namespaces[ns] = LabelsOfUnknownNamespace(ns);
  }
  set->FindMeteredPools();
  set->FindOwners();
  return set;
}

}  // namespace tranche::test
