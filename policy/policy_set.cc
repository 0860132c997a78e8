#include "policy/policy_set.h"

#include <algorithm>
#include <optional>
#include <set>

#include "policy/line_name.h"

namespace tranche {
namespace {

// Of objects with a selector `nodes`, by name: which one is for the node.
template <typename T, typename Selector>
const T* MostExact(const std::vector<T>& objects, const FindLabel& label, Selector selector_of) {
  const T* best = nullptr;
  for (const T& object : objects) {
    const LabelSelector& nodes = selector_of(object);
    const bool more_exact =
        best == nullptr || nodes.Requirements() > selector_of(*best).Requirements();
    if (more_exact && nodes.Matches(label)) best = &object;
  }
  return best;
}

}  // namespace

Labels LabelsOfUnknownNamespace(const std::string& ns) {
  return {{"kubernetes.io/metadata.name", ns}};
}

Labels PolicySet::LabelsOf(const std::string& ns) const {
  const auto known = namespaces.find(ns);
  return known == namespaces.end() ? LabelsOfUnknownNamespace(ns) : known->second;
}

const GpuPolicy* PolicySet::PolicyFor(const std::string& ns) const {
  const Labels labels = LabelsOf(ns);
  for (const GpuPolicy& policy : policies) {
    if (!policy.namespaces || policy.namespaces->Matches(labels)) return &policy;
  }
  return nullptr;
}

const GpuClass* PolicySet::ClassNamed(std::string_view name) const {
  const auto at = std::ranges::lower_bound(classes, name, {}, &GpuClass::name);
  return at != classes.end() && at->name == name ? &*at : nullptr;
}

const GpuQuota* PolicySet::QuotaNamed(std::string_view name) const {
  const auto at = std::ranges::lower_bound(quotas, name, {}, &GpuQuota::name);
  return at != quotas.end() && at->name == name ? &*at : nullptr;
}

const GpuClass* PolicySet::ClassOf(std::string_view priority_class) const {
  for (const GpuClass& candidate : classes) {
    const std::vector<std::string>& names = candidate.priority_classes;
    if (std::find(names.begin(), names.end(), priority_class) != names.end()) return &candidate;
  }
  return nullptr;
}

std::vector<const GpuQuota*> PolicySet::LeavesOf(const std::string& ns) const {
  const Labels labels = LabelsOf(ns);
  std::vector<const GpuQuota*> leaves;
  for (const GpuQuota& quota : quotas) {
    if (quota.namespaces && quota.namespaces->Matches(labels)) leaves.push_back(&quota);
  }
  return leaves;
}

const GpuPool* PolicySet::PoolOf(const FindLabel& label) const {
  return MostExact(
      pools, label, [](const GpuPool& pool) -> auto& { return pool.nodes; });
}

NodeRules PolicySet::RulesOf(const FindLabel& label) const {
  const GpuPolicy* const policy = MostExact(
      node_policies, label, [](const GpuPolicy& each) -> auto& { return *each.nodes; });
  return policy == nullptr ? NodeRules() : policy->own;
}

const GpuPool* PolicySet::PoolOf(const Labels& labels) const {
  return PoolOf([&labels](std::string_view key) -> std::optional<std::string_view> {
    const auto found = labels.find(std::string(key));
    if (found == labels.end()) return std::nullopt;
    return found->second;
  });
}

const std::string& PolicySet::MeteredName(const GpuPool* pool) const {
  static const std::string kNone;
  return pool != nullptr && std::ranges::binary_search(metered_pools, pool->name) ? pool->name
                                                                                  : kNone;
}

void PolicySet::FindMeteredPools() {
  std::set<std::string> names;
  for (const GpuQuota& quota : quotas) {
    for (const QuotaLine& line : quota.lines) names.insert(line.pool);
  }
  for (const GpuBudget& budget : budgets) {
    for (const auto& [name, rate] : budget.rates) names.emplace(PartsOf(name).pool);
  }
  names.erase("");
  metered_pools.assign(names.begin(), names.end());
}

std::map<std::string, std::vector<std::string>> PolicySet::FindOwners() {
  std::map<std::string, std::vector<std::string>> conflicts;
  owned.clear();
  for (const auto& [ns, labels] : namespaces) {
    const std::vector<const GpuQuota*> leaves = LeavesOf(ns);
    for (const GpuQuota* leaf : leaves) {
      (leaves.size() == 1 ? owned : conflicts)[leaf->name].push_back(ns);
    }
  }
  return conflicts;
}

}  // namespace tranche
