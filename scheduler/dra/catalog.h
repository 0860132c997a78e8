// All objects of resource.k8s.io the cluster shows, and each node's books made from them on demand.
//
// Books and device tables point into the slices kept here: they are good until the next Put or
// Remove. Books of a node are made anew only after one of its pools, or a claim on one of them, has
// changed. Externally synchronised, const calls included. Cost: Put and Remove O(log objects), plus
// the nodes that use the pool; BooksOn O(devices and claims of the node's pools) where something
// changed, else a look-up.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/dra/charge.h"
#include "scheduler/dra/free.h"
#include "scheduler/dra/model.h"
#include "scheduler/dra/selectors.h"
#include "topology/base/ids.h"

namespace tranche::dra {

using PoolName = std::pair<std::string, std::string>;  // driver, pool

class Catalog {
 public:
  void PutSlice(Slice slice);
  void RemoveSlice(const std::string& name);
  // Of one uid; another claim of the same name has been replaced by it. The uid of the claim that
  // was; empty: none was.
  std::string PutClaim(Claim claim);
  // The uid of what was removed; empty: nothing was.
  std::string RemoveClaim(const NamespacedName& name);
  // Of slices that come later too. Cost: all pools, and the devices of those it may select; of a
  // slice, the rules of its pool and those of no pool.
  void PutTaintRule(TaintRule rule);
  void RemoveTaintRule(const std::string& name);
  void PutTemplate(Claim claim);
  void RemoveTemplate(const NamespacedName& name) { templates_.erase(name); }

  Selectors& classes() { return classes_; }
  const std::map<std::string, Claim>& claims() const { return claims_; }  // by uid
  // nullptr: none is known.
  const Claim* FindClaim(const NamespacedName& name) const;
  const Claim* FindByUid(const std::string& uid) const;
  const Claim* FindTemplate(const NamespacedName& name) const;
  // Uids of claims that hold devices of the pool, ascending.
  std::set<std::string> HoldersOf(const PoolName& pool) const;
  bool has_slices() const { return !slices_.empty(); }
  // At most `limit` objects after `after` (nullopt: from the first) in the order of their refs.
  std::vector<Object> ObjectsAfter(const std::optional<ObjectRef>& after, std::size_t limit) const;

  const NodeBooks& BooksOn(const NodeView& node);
  // Nodes whose books have changed since the last call. `all`: take it that all have.
  struct Changes {
    bool all = false;
    std::vector<std::string> nodes;  // repeats are possible
  };
  Changes TakeChanges() { return std::exchange(changes_, {}); }
  // Books of some nodes hang on labels, which change with the nodes themselves.
  bool depends_on_labels() const { return !unbound_.empty(); }
  // Does some slice name the node, or may it reach devices of many nodes?
  bool MayHaveDevices(const std::string& node) const {
    return !unbound_.empty() || by_node_.contains(node);
  }
  DeviceTable TableOf(const Allocation& allocation) const;

 private:
  struct NodeEntry {
    NodeBooks books;
    bool stale = true;
  };
  void Forget(const Slice& slice);
  void Outdate(const PoolName& pool);
  void NoteChange(const std::string& node);
  // The taints that rules give the slice's devices; true: they are others now.
  bool TaintByRules(Slice& slice) const;
  void TaintPoolsOf(const TaintRule& rule);
  void AddHolder(const Claim& claim);
  void RemoveHolder(const Claim& claim);
  std::vector<const Slice*> SlicesFor(const std::string& node) const;

  std::map<std::string, Slice> slices_;
  std::map<PoolName, std::set<std::string>> by_pool_;               // names of slices
  std::unordered_map<std::string, std::set<std::string>> by_node_;  // of those that name one node
  std::set<std::string> unbound_;                                   // of the others
  std::map<std::string, Claim> claims_;
  std::map<NamespacedName, std::string> claim_names_;
  std::map<PoolName, std::set<std::string>> holders_;
  std::map<NamespacedName, Claim> templates_;
  std::map<std::string, TaintRule> rules_;
  std::map<std::string, std::set<std::string>> rules_of_;  // by pool; "": they name none
  Selectors classes_;
  std::map<std::string, NodeEntry> nodes_;
  std::map<PoolName, std::set<std::string>> users_;  // nodes whose books have the pool
  Changes changes_;
};

}  // namespace tranche::dra
