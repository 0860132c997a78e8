// Takes the objects administrators declare as they come and go, and says which are in force.
//
// PolicyStore keeps the last good version of each object: one that cannot be read, or that does not
// go together with the others (a parent that does not exist, a cycle), leaves its former version in
// force, and a removed quota that others hang from stays until they do not. What is wrong is
// reported as findings, which become conditions on the objects and a metric. What was in force
// before is not known after a restart: then an object that is wrong is not in force at all.
//
// A plain value; externally synchronised. Cost of Commit: O(objects x depth of the tree + known
// namespaces x quotas).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "policy/policy_set.h"

namespace tranche {

// Whether somebody tells how much GPUs are used, without which idleAfter of a class does nothing.
enum class UseReading : uint8_t { kOff, kOn };

class PolicyStore {
 public:
  explicit PolicyStore(GpuPolicy defaults, UseReading use = UseReading::kOff);

  // An object of kind GPUQuota, GPUBudget, GPUClass, GPUPolicy, GPUPool, GPUPrice, Namespace or
  // PriorityClass as JSON text. Other kinds are ignored. Takes effect with Commit.
  void Upsert(std::string_view kind, std::string_view name, std::string_view json);
  void Remove(std::string_view kind, std::string_view name);

  // Judges what is there now. True when `set` or `findings` changed.
  bool Commit();
  const PolicySet& set() const { return set_; }
  // One Ready finding for every object of our six kinds, and one per further condition that is
  // true. Ascending kind, name, type.
  const std::vector<Finding>& findings() const { return findings_; }
  // Objects that are not in force as written.
  int64_t invalid() const;

 private:
  using Key = std::pair<std::string, std::string>;  // kind, name

  template <typename T>
  void Store(Key key, absl::StatusOr<T> decoded, std::map<std::string, T>& objects);

  GpuPolicy defaults_;
  UseReading use_;
  // The last good version of each object.
  std::map<std::string, GpuPolicy> policies_;
  std::map<std::string, GpuQuota> quotas_;
  std::map<std::string, GpuBudget> budgets_;
  std::map<std::string, GpuClass> classes_;
  std::map<std::string, GpuPool> pools_;
  std::map<std::string, GpuPrice> prices_;
  std::map<std::string, Labels> namespaces_;
  std::set<std::string> priority_classes_;
  std::map<Key, std::string> problems_;  // why the present version cannot be read
  PolicySet set_;
  std::vector<Finding> findings_;
};

}  // namespace tranche
