#include "policy/policy_store.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "fmt/format.h"
#include "policy/decode.h"
#include "policy/line_name.h"

namespace tranche {
namespace {

constexpr std::string_view kReady = "Ready";
constexpr size_t kNamedNamespaces = 5;  // of a conflict

template <typename T>
using ByName = std::map<std::string, T>;

// What is said of the objects. The first word on a condition stands.
class Findings {
 public:
  void Accept(std::string_view kind, const std::string& name) {
    Add({std::string(kind), name, std::string(kReady), true, "Accepted", "in force as written"});
  }
  void Refuse(std::string_view kind, const std::string& name, std::string_view reason,
              std::string message) {
    Add({std::string(kind), name, std::string(kReady), false, std::string(reason),
         std::move(message)});
  }
  // A further condition that is true.
  void Note(std::string_view kind, const std::string& name, std::string_view type,
            std::string message) {
    Add({std::string(kind), name, std::string(type), true, std::string(type), std::move(message)});
  }
  std::vector<Finding> Sorted() const {
    std::vector<Finding> sorted;
    for (const auto& [key, finding] : findings_) sorted.push_back(finding);
    return sorted;
  }

 private:
  void Add(Finding finding) {
    std::tuple key(finding.kind, finding.name, finding.type);
    findings_.emplace(std::move(key), std::move(finding));
  }

  std::map<std::tuple<std::string, std::string, std::string>, Finding> findings_;
};

template <typename T>
std::vector<T> Values(const ByName<T>& objects) {
  std::vector<T> values;
  for (const auto& [name, object] : objects) values.push_back(object);
  return values;
}

// ---- the quota tree

bool LacksParent(const ByName<GpuQuota>& quotas, const GpuQuota& quota) {
  return !quota.parent.empty() && !quotas.contains(quota.parent);
}

bool IsOnCycle(const ByName<GpuQuota>& quotas, const GpuQuota& quota) {
  const std::string* ancestor = &quota.parent;
  for (size_t step = 0; step < quotas.size() && *ancestor != quota.name; ++step) {
    const auto found = quotas.find(*ancestor);
    if (found == quotas.end()) return false;
    ancestor = &found->second.parent;
  }
  return *ancestor == quota.name;
}

// One step from what is wanted towards a tree, going back to what was in force; false when it is
// one. It ends: a quota goes back once, comes back once, or is left out once.
bool MendTree(const ByName<GpuQuota>& former, ByName<GpuQuota>& quotas) {
  for (auto& [name, quota] : quotas) {
    const bool lacks_parent = LacksParent(quotas, quota);
    if (!lacks_parent && !IsOnCycle(quotas, quota)) continue;
    const auto before = former.find(name);
    if (before == former.end()) {
      quotas.erase(quotas.find(name));
    } else if (quota != before->second) {
      quota = before->second;
    } else if (lacks_parent) {
      quotas.emplace(quota.parent, former.at(quota.parent));
    } else {
      continue;  // the former quotas had no cycle: another one on it has changed
    }
    return true;
  }
  return false;
}

void ExplainQuota(const ByName<GpuQuota>& wanted, const ByName<GpuQuota>& in_force,
                  const GpuQuota& quota, Findings& findings) {
  const auto present = in_force.find(quota.name);
  const bool as_written = present != in_force.end() && present->second == quota;
  if (as_written && !LacksParent(wanted, quota)) {
    findings.Accept("GPUQuota", quota.name);
    return;
  }
  const std::string_view consequence = as_written ? "its former parent stays in force"
                                       : present == in_force.end()
                                           ? "not in force"
                                           : "its former version stays in force";
  const bool cycle = IsOnCycle(wanted, quota);
  findings.Refuse(
      "GPUQuota", quota.name, cycle ? "Cycle" : "UnknownParent",
      fmt::format("spec.parent: expected {}, found \"{}\"; {}",
                  cycle ? "a quota that is not below this one" : "a GPUQuota that is in force",
                  quota.parent, consequence));
}

std::vector<GpuQuota> JudgeQuotas(const ByName<GpuQuota>& wanted,
                                  const std::vector<GpuQuota>& former, Findings& findings) {
  ByName<GpuQuota> before;
  for (const GpuQuota& quota : former) before.emplace(quota.name, quota);
  ByName<GpuQuota> in_force = wanted;
  while (MendTree(before, in_force)) {
  }
  for (const auto& [name, quota] : wanted) ExplainQuota(wanted, in_force, quota, findings);
  return Values(in_force);
}

// Namespaces that several quotas own.
void FindLeafConflicts(ByName<std::vector<std::string>> conflicts, Findings& findings) {
  for (auto& [quota, namespaces] : conflicts) {
    const size_t all = namespaces.size();
    namespaces.resize(std::min(all, kNamedNamespaces));
    std::string message = fmt::format("spec.namespaceSelector: other quotas match these, too: {}",
                                      fmt::join(namespaces, ", "));
    if (all > kNamedNamespaces) message += fmt::format(" and {} more", all - kNamedNamespaces);
    findings.Note("GPUQuota", quota, "LeafConflict", std::move(message));
  }
}

// ---- the others

std::vector<GpuBudget> JudgeBudgets(const ByName<GpuBudget>& wanted,
                                    const std::vector<GpuQuota>& quotas, Findings& findings) {
  std::set<std::string_view> names;
  for (const GpuQuota& quota : quotas) names.insert(quota.name);
  std::vector<GpuBudget> in_force;
  for (const auto& [name, budget] : wanted) {
    if (budget.quota_ref.empty() || names.contains(budget.quota_ref)) {
      findings.Accept("GPUBudget", name);
      in_force.push_back(budget);
    } else {
      findings.Refuse("GPUBudget", name, "UnknownQuota",
                      fmt::format("spec.quotaRef: expected a GPUQuota that is in force, found "
                                  "\"{}\"; not in force",
                                  budget.quota_ref));
    }
  }
  return in_force;
}

std::vector<GpuClass> JudgeClasses(const ByName<GpuClass>& wanted,
                                   const std::set<std::string>& priority_classes, UseReading use,
                                   Findings& findings) {
  std::vector<GpuClass> in_force;
  std::map<std::string, std::string> owners;  // priority class -> class
  for (const auto& [name, written] : wanted) {
    GpuClass& result = in_force.emplace_back(written);
    result.priority_classes.clear();
    for (const std::string& priority_class : written.priority_classes) {
      const auto [owner, is_first] = owners.emplace(priority_class, name);
      if (is_first) {
        result.priority_classes.push_back(priority_class);
      } else {
        findings.Refuse("GPUClass", name, "Duplicate",
                        fmt::format("spec.priorityClassNames: expected names no other GPUClass "
                                    "has, found \"{}\"; it stays with GPUClass {}",
                                    priority_class, owner->second));
      }
      if (!priority_classes.empty() && !priority_classes.contains(priority_class)) {
        findings.Note("GPUClass", name, "UnknownPriorityClass",
                      fmt::format("spec.priorityClassNames: expected names of PriorityClasses, "
                                  "found \"{}\"",
                                  priority_class));
      }
    }
    if (written.idle_after && use == UseReading::kOff) {
      findings.Note("GPUClass", name, "IdleAfterIgnored",
                    "spec.idleAfter: expected use.prometheus in the configuration of the server, "
                    "found none; nobody tells whether GPUs are used, and nothing is idle");
    }
    findings.Accept("GPUClass", name);
  }
  return in_force;
}

std::vector<GpuPolicy> JudgePolicies(const ByName<GpuPolicy>& wanted, Findings& findings) {
  std::vector<GpuPolicy> in_force;
  const GpuPolicy* everywhere = nullptr;
  for (const auto& [name, policy] : wanted) {
    if (policy.nodes) continue;
    if (policy.namespaces) {
      in_force.push_back(policy);
    } else if (everywhere == nullptr) {
      everywhere = &policy;
    } else {
      findings.Refuse("GPUPolicy", name, "Surplus",
                      fmt::format("spec.selector.namespaces: expected one GPUPolicy without it, "
                                  "and GPUPolicy {} is that; not in force",
                                  everywhere->name));
    }
    findings.Accept("GPUPolicy", name);
  }
  if (everywhere != nullptr) in_force.push_back(*everywhere);
  return in_force;
}

std::vector<GpuPolicy> JudgeNodePolicies(const ByName<GpuPolicy>& wanted, Findings& findings) {
  std::vector<GpuPolicy> in_force;
  for (const auto& [name, policy] : wanted) {
    if (!policy.nodes) continue;
    in_force.push_back(policy);
    findings.Accept("GPUPolicy", name);
  }
  return in_force;
}

std::vector<GpuPool> JudgePools(const ByName<GpuPool>& wanted, Findings& findings) {
  for (const auto& [name, pool] : wanted) findings.Accept("GPUPool", name);
  return Values(wanted);
}

std::vector<GpuPrice> JudgePrices(const ByName<GpuPrice>& wanted, const ByName<GpuPool>& pools,
                                  Findings& findings) {
  std::vector<GpuPrice> in_force;
  for (const auto& [name, price] : wanted) {
    if (!in_force.empty() && price.currency != in_force.front().currency) {
      findings.Refuse(
          "GPUPrice", name, "OtherCurrency",
          fmt::format("spec.currency: expected \"{}\", the currency of GPUPrice {}, "
                      "found \"{}\"; not in force",
                      in_force.front().currency, in_force.front().name, price.currency));
      continue;
    }
    if (!price.pool.empty() && !pools.contains(price.pool)) {
      findings.Note("GPUPrice", name, "UnknownPool",
                    fmt::format("spec.pool: expected the name of a GPUPool, found \"{}\"; no GPU "
                                "has this price",
                                price.pool));
    }
    findings.Accept("GPUPrice", name);
    in_force.push_back(price);
  }
  return in_force;
}

// Pools that lines and rates are of and that are not there.
void NoteUnknownPools(const PolicySet& set, const ByName<GpuPool>& pools, Findings& findings) {
  const auto note = [&](const char* kind, const std::string& object, const char* field,
                        std::string_view pool) {
    if (pool.empty() || pools.contains(std::string(pool))) return;
    findings.Note(kind, object, "UnknownPool",
                  fmt::format("{}: expected the name of a GPUPool, found \"{}\"; it is of no GPU",
                              field, pool));
  };
  for (const GpuQuota& quota : set.quotas) {
    for (const QuotaLine& line : quota.lines) note("GPUQuota", quota.name, "spec.lines", line.pool);
  }
  for (const GpuBudget& budget : set.budgets) {
    for (const auto& [name, rate] : budget.rates) {
      note("GPUBudget", budget.name, "spec.rates", PartsOf(name).pool);
    }
  }
}

}  // namespace

PolicyStore::PolicyStore(GpuPolicy defaults, UseReading use)
    : defaults_(std::move(defaults)), use_(use) {}

template <typename T>
void PolicyStore::Store(Key key, absl::StatusOr<T> decoded, std::map<std::string, T>& objects) {
  if (decoded.ok()) {
    decoded->name = key.second;
    objects.insert_or_assign(key.second, *std::move(decoded));
    problems_.erase(key);
  } else {
    const std::string_view consequence =
        objects.contains(key.second) ? "its former version stays in force" : "not in force";
    std::string problem =
        fmt::format("{}; {}", std::string(decoded.status().message()), consequence);
    problems_.insert_or_assign(std::move(key), std::move(problem));
  }
}

void PolicyStore::Upsert(std::string_view kind, std::string_view name, std::string_view json) {
  Key key(kind, name);
  if (kind == "GPUPolicy") {
    Store(std::move(key), DecodeGpuPolicy(json, defaults_), policies_);
  } else if (kind == "GPUQuota") {
    Store(std::move(key), DecodeGpuQuota(json), quotas_);
  } else if (kind == "GPUBudget") {
    Store(std::move(key), DecodeGpuBudget(json), budgets_);
  } else if (kind == "GPUClass") {
    Store(std::move(key), DecodeGpuClass(json), classes_);
  } else if (kind == "GPUPool") {
    Store(std::move(key), DecodeGpuPool(json), pools_);
  } else if (kind == "GPUPrice") {
    Store(std::move(key), DecodeGpuPrice(json), prices_);
  } else if (kind == "Namespace") {
    // The API server lets no other labels in than text.
    absl::StatusOr<Labels> labels = DecodeNamespaceLabels(name, json);
    if (labels.ok()) namespaces_.insert_or_assign(std::string(name), *std::move(labels));
  } else if (kind == "PriorityClass") {
    priority_classes_.emplace(name);
  }
}

void PolicyStore::Remove(std::string_view kind, std::string_view name) {
  const Key key(kind, name);
  problems_.erase(key);
  if (kind == "GPUPolicy") policies_.erase(key.second);
  if (kind == "GPUQuota") quotas_.erase(key.second);
  if (kind == "GPUBudget") budgets_.erase(key.second);
  if (kind == "GPUClass") classes_.erase(key.second);
  if (kind == "GPUPool") pools_.erase(key.second);
  if (kind == "GPUPrice") prices_.erase(key.second);
  if (kind == "Namespace") namespaces_.erase(key.second);
  if (kind == "PriorityClass") priority_classes_.erase(key.second);
}

bool PolicyStore::Commit() {
  Findings findings;
  for (const auto& [key, problem] : problems_) {
    findings.Refuse(key.first, key.second, "Invalid", problem);
  }
  PolicySet set;
  set.namespaces = namespaces_;
  set.quotas = JudgeQuotas(quotas_, set_.quotas, findings);
  set.budgets = JudgeBudgets(budgets_, set.quotas, findings);
  set.classes = JudgeClasses(classes_, priority_classes_, use_, findings);
  set.policies = JudgePolicies(policies_, findings);
  set.node_policies = JudgeNodePolicies(policies_, findings);
  set.pools = JudgePools(pools_, findings);
  set.prices = JudgePrices(prices_, pools_, findings);
  set.FindMeteredPools();
  NoteUnknownPools(set, pools_, findings);
  FindLeafConflicts(set.FindOwners(), findings);

  std::vector<Finding> sorted = findings.Sorted();
  const bool changed = set != set_ || sorted != findings_;
  set_ = std::move(set);
  findings_ = std::move(sorted);
  return changed;
}

int64_t PolicyStore::invalid() const {
  return std::count_if(findings_.begin(), findings_.end(), [](const Finding& finding) {
    return finding.type == kReady && !finding.status;
  });
}

}  // namespace tranche
