#include "scheduler/dra/catalog.h"

namespace tranche::dra {

namespace {

// Beyond so many it is cheaper to take all nodes as changed.
constexpr std::size_t kMostChanges = 10'000;

// Under which pool a rule is looked up.
const std::string& PoolOf(const TaintRule& rule) {
  static const std::string kNone;
  return rule.pool ? *rule.pool : kNone;
}
bool MaySelect(const TaintRule& rule, const PoolName& pool) {
  return rule.selects && (!rule.driver || *rule.driver == pool.first) &&
         (!rule.pool || *rule.pool == pool.second);
}

}  // namespace

void Catalog::NoteChange(const std::string& node) {
  if (changes_.all) return;
  changes_.nodes.push_back(node);
  if (changes_.nodes.size() > kMostChanges) changes_ = {true, {}};
}

void Catalog::Outdate(const PoolName& pool) {
  const auto found = users_.find(pool);
  if (found == users_.end()) return;
  for (const std::string& node : found->second) {
    // An entry is stale until it is asked for: it was reported then, or nobody has seen it.
    bool& stale = nodes_[node].stale;
    if (!std::exchange(stale, true)) NoteChange(node);
  }
}

void Catalog::Forget(const Slice& slice) {
  const PoolName pool(slice.driver, slice.pool);
  Outdate(pool);
  if (const auto names = by_pool_.find(pool); names != by_pool_.end()) {
    names->second.erase(slice.name);
    if (names->second.empty()) by_pool_.erase(names);
  }
  if (slice.node.kind != NodeChoice::Kind::kName) {
    unbound_.erase(slice.name);
    nodes_.clear();
    changes_ = {true, {}};
  } else if (const auto names = by_node_.find(slice.node.name.str()); names != by_node_.end()) {
    names->second.erase(slice.name);
    if (names->second.empty()) by_node_.erase(names);
    nodes_.erase(slice.node.name.str());
    NoteChange(slice.node.name.str());
  }
}

bool Catalog::TaintByRules(Slice& slice) const {
  const PoolName pool(slice.driver, slice.pool);
  std::vector<const TaintRule*> rules;
  for (const std::string& of : {std::string(), slice.pool}) {
    const auto names = rules_of_.find(of);
    if (names == rules_of_.end()) continue;
    for (const std::string& name : names->second) {
      const TaintRule& rule = rules_.at(name);
      if (MaySelect(rule, pool)) rules.push_back(&rule);
    }
  }
  bool changed = false;
  for (Device& device : slice.devices) {
    std::vector<Taint> taints;
    for (const TaintRule* const rule : rules) {
      if (!rule->device || *rule->device == device.name) taints.push_back(rule->taint);
    }
    if (taints == device.rule_taints) continue;
    device.rule_taints = std::move(taints);
    changed = true;
  }
  return changed;
}

void Catalog::TaintPoolsOf(const TaintRule& rule) {
  for (const auto& [pool, names] : by_pool_) {
    if (!MaySelect(rule, pool)) continue;
    for (const std::string& name : names) {
      Slice& slice = slices_.at(name);
      if (!TaintByRules(slice)) continue;
      Outdate(pool);
      if (slice.node.kind == NodeChoice::Kind::kName) {
        NoteChange(slice.node.name.str());
      } else {
        changes_ = {true, {}};
      }
    }
  }
}

void Catalog::PutTaintRule(TaintRule rule) {
  if (const auto known = rules_.find(rule.name); known != rules_.end()) {
    if (known->second == rule) return;
    RemoveTaintRule(rule.name);
  }
  rules_of_[PoolOf(rule)].insert(rule.name);
  std::string name = rule.name;
  const auto put = rules_.insert_or_assign(std::move(name), std::move(rule)).first;
  TaintPoolsOf(put->second);
}

void Catalog::RemoveTaintRule(const std::string& name) {
  const auto found = rules_.find(name);
  if (found == rules_.end()) return;
  const TaintRule rule = std::move(found->second);
  rules_.erase(found);
  const auto names = rules_of_.find(PoolOf(rule));
  names->second.erase(name);
  if (names->second.empty()) rules_of_.erase(names);
  TaintPoolsOf(rule);
}

void Catalog::PutSlice(Slice slice) {
  RemoveSlice(slice.name);
  TaintByRules(slice);
  const PoolName pool(slice.driver, slice.pool);
  Outdate(pool);
  by_pool_[pool].insert(slice.name);
  if (slice.node.kind == NodeChoice::Kind::kName) {
    by_node_[slice.node.name.str()].insert(slice.name);
    nodes_.erase(slice.node.name.str());
    NoteChange(slice.node.name.str());
  } else {
    unbound_.insert(slice.name);
    nodes_.clear();
    changes_ = {true, {}};
  }
  std::string name = slice.name;
  slices_.emplace(std::move(name), std::move(slice));
}

void Catalog::RemoveSlice(const std::string& name) {
  const auto found = slices_.find(name);
  if (found == slices_.end()) return;
  Forget(found->second);
  slices_.erase(found);
}

void Catalog::AddHolder(const Claim& claim) {
  if (!claim.allocation) return;
  for (const AllocatedDevice& device : claim.allocation->devices) {
    const PoolName pool(device.id.driver, device.id.pool);
    Outdate(pool);
    holders_[pool].insert(claim.uid);
  }
}

void Catalog::RemoveHolder(const Claim& claim) {
  if (!claim.allocation) return;
  for (const AllocatedDevice& device : claim.allocation->devices) {
    const PoolName pool(device.id.driver, device.id.pool);
    Outdate(pool);
    const auto found = holders_.find(pool);
    if (found == holders_.end()) continue;
    found->second.erase(claim.uid);
    if (found->second.empty()) holders_.erase(found);
  }
}

std::string Catalog::PutClaim(Claim claim) {
  const NamespacedName key{claim.ns, claim.name};
  std::string replaced;
  if (const auto known = claim_names_.find(key); known != claim_names_.end()) {
    if (known->second != claim.uid) replaced = RemoveClaim(key);
  }
  if (const auto before = claims_.find(claim.uid); before != claims_.end()) {
    RemoveHolder(before->second);
  }
  AddHolder(claim);
  claim_names_[key] = claim.uid;
  std::string uid = claim.uid;
  claims_.insert_or_assign(std::move(uid), std::move(claim));
  return replaced;
}

std::string Catalog::RemoveClaim(const NamespacedName& name) {
  const auto known = claim_names_.find(name);
  if (known == claim_names_.end()) return "";
  std::string uid = known->second;
  RemoveHolder(claims_.at(uid));
  claims_.erase(uid);
  claim_names_.erase(known);
  return uid;
}

void Catalog::PutTemplate(Claim claim) {
  NamespacedName key{claim.ns, claim.name};
  templates_.insert_or_assign(std::move(key), std::move(claim));
}

const Claim* Catalog::FindClaim(const NamespacedName& name) const {
  const auto found = claim_names_.find(name);
  return found == claim_names_.end() ? nullptr : &claims_.at(found->second);
}

const Claim* Catalog::FindByUid(const std::string& uid) const {
  const auto found = claims_.find(uid);
  return found == claims_.end() ? nullptr : &found->second;
}

const Claim* Catalog::FindTemplate(const NamespacedName& name) const {
  const auto found = templates_.find(name);
  return found == templates_.end() ? nullptr : &found->second;
}

std::set<std::string> Catalog::HoldersOf(const PoolName& pool) const {
  const auto found = holders_.find(pool);
  return found == holders_.end() ? std::set<std::string>() : found->second;
}

// All slices of every pool with a slice for the node: a pool counts only when it is whole.
std::vector<const Slice*> Catalog::SlicesFor(const std::string& node) const {
  std::set<std::string> names = unbound_;
  if (const auto own = by_node_.find(node); own != by_node_.end()) {
    names.insert(own->second.begin(), own->second.end());
  }
  std::set<PoolName> pools;
  for (const std::string& name : names) {
    const Slice& slice = slices_.at(name);
    pools.insert({slice.driver, slice.pool});
  }
  std::vector<const Slice*> slices;
  for (const PoolName& pool : pools) {
    for (const std::string& name : by_pool_.at(pool)) slices.push_back(&slices_.at(name));
  }
  return slices;
}

const NodeBooks& Catalog::BooksOn(const NodeView& node) {
  const std::string name(node.name);
  NodeEntry& entry = nodes_[name];
  // What a label decides may have changed with the node.
  if (!entry.stale && unbound_.empty()) return entry.books;
  const std::vector<const Slice*> slices = SlicesFor(name);
  // A pool that gives nothing now may do so when its other slices change.
  for (const Slice* slice : slices) users_[{slice->driver, slice->pool}].insert(name);
  std::vector<Pool> pools = PoolsOf(slices, node);
  std::set<std::string> holders;
  for (const Pool& pool : pools) holders.merge(HoldersOf({pool.driver, pool.name}));
  std::vector<const Claim*> claims;
  for (const std::string& uid : holders) claims.push_back(&claims_.at(uid));
  entry.books = BooksOf(std::move(pools), Occupancy(claims));
  entry.stale = false;
  return entry.books;
}

std::vector<Object> Catalog::ObjectsAfter(const std::optional<ObjectRef>& after,
                                          std::size_t limit) const {
  using Kind = ObjectRef::Kind;
  std::vector<Object> objects;
  // Of one kind, whose keys are in the order of the refs.
  const auto add = [&](Kind kind, const auto& all, const auto& key, const auto& object) {
    if (after && after->kind > kind) return;
    auto at = after && after->kind == kind ? all.upper_bound(key) : all.begin();
    for (; at != all.end() && objects.size() < limit; ++at) objects.push_back(object(*at));
  };
  const std::string name = after ? after->name : "";
  const NamespacedName in_namespace{after ? after->ns : "", name};
  add(Kind::kClass, classes_.classes(), name, [](const auto& at) { return Object(at.second); });
  add(Kind::kSlice, slices_, name, [](const auto& at) { return Object(at.second); });
  add(Kind::kClaim, claim_names_, in_namespace,
      [this](const auto& at) { return Object(claims_.at(at.second)); });
  add(Kind::kTemplate, templates_, in_namespace,
      [](const auto& at) { return Object(ClaimTemplate{at.second}); });
  add(Kind::kTaintRule, rules_, name, [](const auto& at) { return Object(at.second); });
  return objects;
}

DeviceTable Catalog::TableOf(const Allocation& allocation) const {
  std::set<PoolName> pools;
  for (const AllocatedDevice& device : allocation.devices) {
    pools.insert({device.id.driver, device.id.pool});
  }
  std::vector<const Slice*> slices;
  for (const PoolName& pool : pools) {
    const auto names = by_pool_.find(pool);
    if (names == by_pool_.end()) continue;
    for (const std::string& name : names->second) slices.push_back(&slices_.at(name));
  }
  return DeviceTable(slices);
}

}  // namespace tranche::dra
