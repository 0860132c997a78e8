// Everything administrators declared and that is in force, as a whole, at one moment; and what is
// wrong with single objects (policy/policy_store.h makes both).
//
// Plain values.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "policy/selector.h"
#include "policy/spec.h"

namespace tranche {

struct PolicySet {
  std::vector<GpuPolicy> policies;  // those with a namespace selector by name, then the one without
  std::vector<GpuPolicy> node_policies;      // those with a node selector, ascending name
  std::vector<GpuQuota> quotas;              // ascending name
  std::vector<GpuBudget> budgets;            // ascending name
  std::vector<GpuClass> classes;             // ascending name
  std::vector<GpuPool> pools;                // ascending name
  std::vector<GpuPrice> prices;              // ascending name, all of one currency
  std::map<std::string, Labels> namespaces;  // known ones; kubernetes.io/metadata.name always set
  // What follows from quotas and budgets: pools that lines or rates are of, ascending.
  std::vector<std::string> metered_pools;
  // What follows from quotas and namespaces: by leaf, the known namespaces it alone owns,
  // ascending.
  std::map<std::string, std::vector<std::string>> owned;
  friend bool operator==(const PolicySet&, const PolicySet&) = default;

  // The first policy that is for the namespace; nullptr: none.
  const GpuPolicy* PolicyFor(const std::string& ns) const;
  // The class of a priority class name; nullptr: none.
  const GpuClass* ClassOf(std::string_view priority_class) const;
  // The object of that name; nullptr: none.
  const GpuClass* ClassNamed(std::string_view name) const;
  const GpuQuota* QuotaNamed(std::string_view name) const;
  // Quotas whose selector matches the namespace, ascending name: one is its leaf, several conflict.
  std::vector<const GpuQuota*> LeavesOf(const std::string& ns) const;
  // The one pool a node with these labels is in: of those whose selector matches the one with the
  // most requirements, then the first by name; nullptr: none. Cost: pools x their requirements, so
  // it is asked when a node's labels or the pools change, and remembered.
  const GpuPool* PoolOf(const FindLabel& label) const;
  const GpuPool* PoolOf(const Labels& labels) const;
  // What the one node policy for a node with these labels says: of those whose selector matches the
  // one with the most requirements, then the first by name. Cost as of PoolOf.
  NodeRules RulesOf(const FindLabel& label) const;
  // The pool's name where GPUs are charged by it, else empty. O(log pools).
  const std::string& MeteredName(const GpuPool* pool) const;
  // Makes `metered_pools`. Cost: lines and rates.
  void FindMeteredPools();
  // Makes `owned`. Returns the namespaces that several quotas own, by quota. Cost: namespaces x
  // quotas.
  std::map<std::string, std::vector<std::string>> FindOwners();

 private:
  Labels LabelsOf(const std::string& ns) const;
};

// Something that is wrong with, or must be known of, one object. `type` is a condition type.
struct Finding {
  std::string kind;  // "GPUQuota"
  std::string name;
  std::string type;     // Ready (about validity), LeafConflict, UnknownPriorityClass, ...
  bool status = false;  // of the condition; Ready false: not in force as written
  // Of Ready: Accepted, Invalid, UnknownParent, Cycle, UnknownQuota, Duplicate, Surplus,
  // OtherCurrency; of others the type.
  std::string reason;
  std::string message;  // field path, rule, value
  friend bool operator==(const Finding&, const Finding&) = default;
};

// The namespaces' labels where no Namespace object is known: the name label the API server sets.
Labels LabelsOfUnknownNamespace(const std::string& ns);

}  // namespace tranche
