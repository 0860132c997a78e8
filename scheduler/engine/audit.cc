// The books checked against themselves, by other means than those that keep them.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "scheduler/engine/engine.h"
#include "scheduler/engine/parts.h"
#include "scheduler/engine/selection/shape.h"

namespace tranche {
namespace {

// Cards that somebody follows a placeholder on and that none holds: one unit each will be taken.
int64_t PlaceholdersToBe(const NodeState& state) {
  if (!state.inventory().placeholders) return 0;
  std::set<int> followed;
  std::set<int> held;
  for (const Holding& holding : state.holdings()) {
    if (holding.kind == HoldingKind::kTentative) continue;
    for (const CardUse& use : holding.use.cards) {
      if (use.kept > 0)
        (holding.placeholder == PlaceholderRole::kNone ? followed : held).insert(use.card);
    }
  }
  return std::ranges::count_if(followed, [&held](int card) { return !held.contains(card); });
}

// The node's load summed device by device from its holdings, without Load's own arithmetic.
void AuditLoad(const NodeName& name, const NodeState& state, std::vector<std::string>& faults) {
  const Inventory& inventory = state.inventory();
  for (std::size_t i = 0; i < inventory.cards.size(); ++i) {
    int64_t milli = 0, memory = 0;
    for (const Holding& holding : state.holdings()) {
      if (holding.kind == HoldingKind::kTentative) continue;
      for (const CardUse& use : holding.use.cards) {
        if (use.card != static_cast<int>(i)) continue;
        milli += use.milli.count();
        memory += use.memory.count();
      }
    }
    const CardLoad& load = state.hard().cards[i];
    if (load.milli.count() != milli || load.memory.count() != memory) {
      faults.push_back(
          fmt::format("{} card {}: expected {}/1000 and {} MiB, found {}/1000 and {} MiB",
                      name.str(), i, milli, memory, load.milli.count(), load.memory.count()));
    }
  }
  for (std::size_t k = 0; k < inventory.keys.size(); ++k) {
    int64_t used = 0;
    for (const Holding& holding : state.holdings()) {
      if (holding.kind == HoldingKind::kTentative) continue;
      for (const PoolNeed& need : holding.request->pool_needs) {
        if (need.key == inventory.keys[k].key) used += need.count;
      }
    }
    if (inventory.keys[k].key == kGpuKey) used += PlaceholdersToBe(state);
    if (used != state.hard().keys[k]) {
      faults.push_back(fmt::format("{} {}: expected {} in use, found {}", name.str(),
                                   inventory.keys[k].key, used, state.hard().keys[k]));
    }
  }
}

// The leaf's use summed again from who holds what. Cost: O(its holdings + earmarks + lines).
void AuditLeaf(const QuotaBook& book, QuotaId leaf, std::vector<AuditNote>& faults) {
  const QuotaTree& tree = book.tree();
  const std::string& name = tree.name(leaf);
  std::vector<Charge> sums(tree.lines());
  const auto count = [&](const HeldWork& work) {
    if (work.released) return;
    for (const ModelCharge& part : work.parts) {
      for (const LineId line : {kAnyLine, tree.LineOf(leaf, part.model)}) {
        if (line == kNoLine) continue;  // no quota names the model
        sums[line].compute += part.charge.compute;
        sums[line].memory += part.charge.memory;
      }
    }
  };
  if (const auto* work = book.WorkOf(name)) {
    for (const auto& [uid, held] : *work) count(*held);
  }
  for (const auto& [uid, work] : book.earmarks()) {
    if (work.leaf == name) count(work);
  }
  for (LineId line{0}; line < tree.lines(); ++line) {
    const Charge used = tree.Used(leaf, line);
    const Charge& sum = sums[line];
    if (used == sum) continue;
    faults.push_back(
        {AuditKind::kQuotaSum, name,
         fmt::format("quota {} line {}: expected {}/{} quanta in use, found {}/{}", name,
                     tree.line_name(line), sum.compute, sum.memory, used.compute, used.memory)});
  }
}

void NoteAll(AuditKind kind, const std::string& where, const std::vector<std::string>& texts,
             std::vector<AuditNote>& notes) {
  for (const std::string& text : texts) notes.push_back({kind, where, text});
}

class Auditor {
 public:
  explicit Auditor(EngineParts& parts) : parts_(parts), cluster_(parts.cluster) {}

  // Each looks at what the walk has come to, and moves it on.
  void AuditNodes(AuditWalk& walk, AuditFindings& found);
  void AuditPods(AuditWalk& walk, AuditFindings& found);
  void AuditQuotas(AuditWalk& walk, AuditFindings& found);
  void AuditHoldings(AuditWalk& walk, AuditFindings& found);
  void AuditAllGangs(AuditWalk& walk, AuditFindings& found);
  void AuditTallies(std::vector<AuditNote>& faults);
  void AuditAgents(std::vector<AuditNote>& faults);
  void AuditEarmarks(std::vector<AuditNote>& faults);

 private:
  void AuditNode(NodeId id, AuditFindings& found);
  void AuditHolding(const NodeName& node, NodeId id, const Holding& holding, AuditFindings& found);
  void AuditPod(const PodUid& uid, const PodRecord& record, AuditFindings& found);
  bool IsKnownTo(const PodRecord* record, const Holding& holding, NodeId id) const;

  EngineParts& parts_;
  ClusterState& cluster_;
};

}  // namespace

bool Auditor::IsKnownTo(const PodRecord* record, const Holding& holding, NodeId id) const {
  if (record == nullptr || record->terminal) return false;
  const NodeName& name = cluster_.names.name(id);
  switch (holding.kind) {
    case HoldingKind::kTentative:
      return record->tentative == id;
    case HoldingKind::kEarmark:
      return record->earmark != nullptr && record->earmark->node == name;
    case HoldingKind::kReservation:
      return record->reserved == name;
    case HoldingKind::kAllocation:
      return record->node == name;
  }
  return false;
}

void Auditor::AuditHolding(const NodeName& node, NodeId id, const Holding& holding,
                           AuditFindings& found) {
  const std::string pod = holding.request->name.str();
  if (holding.placeholder != PlaceholderRole::kNone) {
    if (cluster_.placeholders.books().Knows(holding.uid)) return;
    found.faults.push_back(
        {AuditKind::kHolding, node.str(),
         fmt::format("{}: nobody knows of the placeholder {}", node.str(), pod)});
    return;
  }
  if (!IsKnownTo(cluster_.Find(holding.uid), holding, id)) {
    found.faults.push_back({AuditKind::kHolding, node.str(),
                            fmt::format("{}: a holding of {} has no pod that knows of it",
                                        node.str(), holding.uid.str())});
  }
  if (holding.kind != HoldingKind::kAllocation || parts_.claim_wishes.HasOnlyDraGpus(id)) return;
  if (holding.unreadable) {
    found.set_aside.push_back({AuditKind::kUnreadable, pod, "pod: " + holding.problem});
  } else if (!holding.others.empty()) {
    found.set_aside.push_back({AuditKind::kDisputed, pod,
                               "several texts name devices of the pod, and all of these are busy"});
  } else if (!holding.known) {
    found.set_aside.push_back({AuditKind::kDisputed, pod, holding.problem});
  }
}

void Auditor::AuditNode(NodeId id, AuditFindings& found) {
  if (cluster_.nodes[id] == nullptr) return;
  const NodeEntry& entry = *cluster_.nodes[id];
  const NodeName& name = cluster_.names.name(id);
  std::vector<std::string> loads;
  AuditLoad(name, entry.state, loads);
  if (entry.closed != cluster_.hot[id].closed || entry.hard != cluster_.hot[id].hard ||
      entry.soft != cluster_.hot[id].soft) {
    loads.push_back(fmt::format("{}: the packed row differs from the entry", name.str()));
  }
  NoteAll(AuditKind::kLoad, name.str(), loads, found.faults);
  for (const Holding& holding : entry.state.holdings()) AuditHolding(name, id, holding, found);
  if (!entry.unreadable.empty()) {
    found.set_aside.push_back({AuditKind::kUnreadable, name.str(), entry.unreadable});
  }
}

void Auditor::AuditNodes(AuditWalk& walk, AuditFindings& found) {
  for (int i = 0; i < AuditWalk::kNodesAtOnce && walk.node < cluster_.nodes.size();
       ++i, ++walk.node) {
    AuditNode(walk.node, found);
    const NodeEntry* const entry = cluster_.nodes[walk.node].get();
    if (entry != nullptr && entry->state.present()) {
      walk.nodes.push_back(cluster_.names.name(walk.node));
    }
  }
  if (walk.node == cluster_.nodes.size()) walk.stage = AuditWalk::Stage::kPods;
}

void Auditor::AuditPod(const PodUid& uid, const PodRecord& record, AuditFindings& found) {
  const std::string& place = record.Place().str();
  if (!place.empty()) {
    const NodeId id = cluster_.names.Find(place);
    if (id == kNoNode || cluster_.nodes[id]->state.Find(uid) == nullptr) {
      found.faults.push_back(
          {AuditKind::kPod, record.request->name.str(),
           fmt::format("pod {} says it is on {}, which does not hold it", uid.str(), place)});
    }
  }
  if (!record.reserved.empty() && !cluster_.reservations.contains({record.reserved_since, uid})) {
    found.faults.push_back({AuditKind::kTally, record.request->name.str(),
                            fmt::format("the reservation of {} is not listed", uid.str())});
  }
}

// By the buckets of the table, so that nobody has to copy its keys. When it grows meanwhile, it is
// walked anew.
void Auditor::AuditPods(AuditWalk& walk, AuditFindings& found) {
  const auto& pods = cluster_.pods;
  if (walk.buckets != pods.bucket_count()) {
    walk.bucket = 0;
    walk.buckets = pods.bucket_count();
  }
  while (walk.bucket < walk.buckets && walk.pods.size() < AuditWalk::kPodsAtOnce) {
    for (auto at = pods.begin(walk.bucket); at != pods.end(walk.bucket); ++at) {
      AuditPod(at->first, at->second, found);
      walk.pods.push_back(at->first);
    }
    ++walk.bucket;
  }
  if (walk.bucket == walk.buckets) walk.stage = AuditWalk::Stage::kQuotas;
}

void Auditor::AuditQuotas(AuditWalk& walk, AuditFindings& found) {
  const QuotaBook& book = cluster_.book;
  std::size_t looked_at = 0;
  for (; looked_at < AuditWalk::kHoldingsAtOnce && walk.quota < book.tree().size(); ++walk.quota) {
    const std::string& name = book.tree().name(walk.quota);
    if (!book.IsLeaf(name)) continue;
    AuditLeaf(book, walk.quota, found.faults);
    const auto* const work = book.WorkOf(name);
    looked_at += 1 + book.earmarks().size() + (work == nullptr ? 0 : work->size());
  }
  if (walk.quota >= book.tree().size()) walk.stage = AuditWalk::Stage::kCharges;
}

// What quota counts has a pod or a claim behind it.
void Auditor::AuditHoldings(AuditWalk& walk, AuditFindings& found) {
  const auto& holdings = cluster_.book.holdings();
  int looked_at = 0;
  auto at = holdings.upper_bound(walk.charge);
  for (; at != holdings.end() && looked_at < AuditWalk::kHoldingsAtOnce; ++at, ++looked_at) {
    const auto& [uid, work] = *at;
    walk.charge = uid;
    const auto* const of_leaf = cluster_.book.WorkOf(work.leaf);
    if (!work.leaf.empty() && (of_leaf == nullptr || !of_leaf->contains(uid))) {
      found.faults.push_back(
          {AuditKind::kCharge, work.pod.str(),
           fmt::format("{} is charged to {}, which does not list it", uid.str(), work.leaf)});
    }
    if (parts_.metering.IsAbandoned(work)) {
      found.set_aside.push_back(
          {AuditKind::kUnownedWork, work.pod.str(),
           fmt::format("admitted to quota {}, which is gone, and no quota owns its namespace",
                       work.leaf)});
    }
    if (parts_.metering.unclaimed.contains(uid) || parts_.metering.claims.contains(uid)) continue;
    const PodRecord* record = cluster_.Find(uid);
    if (record == nullptr || record->terminal || record->Place().empty()) {
      found.faults.push_back(
          {AuditKind::kCharge, work.pod.str(),
           fmt::format("quota counts {} of {}, which holds nothing", uid.str(), work.pod.str())});
    }
  }
  if (at == holdings.end()) walk.stage = AuditWalk::Stage::kGangs;
}

void Auditor::AuditAllGangs(AuditWalk& walk, AuditFindings& found) {
  const auto& gangs = parts_.gangs.books().all;
  std::size_t looked_at = 0;
  auto at = gangs.upper_bound(walk.gang);
  for (; at != gangs.end() && looked_at < AuditWalk::kHoldingsAtOnce; ++at) {
    walk.gang = at->first;
    looked_at += 1 + at->second.members.size();
    if (CountsHold(at->second, cluster_)) continue;
    found.faults.push_back({AuditKind::kGang, at->first,
                            fmt::format("gang {}: its counts are not what its {} members are",
                                        at->first, at->second.members.size())});
  }
  if (at == gangs.end()) walk.stage = AuditWalk::Stage::kTallies;
}

// What is counted over all nodes.
void Auditor::AuditTallies(std::vector<AuditNote>& faults) {
  int64_t tentative = 0;
  int64_t reserved = 0;
  for (NodeId id{0}; id < cluster_.nodes.size(); ++id) {
    if (cluster_.nodes[id] == nullptr) continue;
    for (const Holding& holding : cluster_.nodes[id]->state.holdings()) {
      if (holding.placeholder != PlaceholderRole::kNone) continue;
      tentative += holding.kind == HoldingKind::kTentative;
      reserved += holding.kind == HoldingKind::kReservation;
    }
  }
  if (tentative != cluster_.tentative_placements) {
    faults.push_back({AuditKind::kTally, "",
                      fmt::format("expected {} tentative placements, found {} counted", tentative,
                                  cluster_.tentative_placements)});
  }
  if (reserved != static_cast<int64_t>(cluster_.reservations.size())) {
    faults.push_back({AuditKind::kTally, "",
                      fmt::format("expected {} reservations, found {} listed", reserved,
                                  cluster_.reservations.size())});
  }
}

void Auditor::AuditAgents(std::vector<AuditNote>& faults) {
  for (const PodUid& uid : cluster_.agents.Known()) {
    const PodRecord* record = cluster_.Find(uid);
    // Of those that have ended, only what an agent could still take for another.
    if (record == nullptr || (!record->terminal && record->Place().empty())) {
      faults.push_back({AuditKind::kAgent, uid.str(),
                        fmt::format("{} is in line at an agent and on no node", uid.str())});
    }
  }
}

// What quota keeps has a pod or a claim that it is kept for.
void Auditor::AuditEarmarks(std::vector<AuditNote>& faults) {
  for (const auto& [uid, work] : cluster_.book.earmarks()) {
    if (parts_.claim_books.kept.contains(uid)) continue;
    const PodRecord* record = cluster_.Find(uid);
    if (record == nullptr || record->earmark == nullptr ||
        (!parts_.reclaims.of_member.contains(uid) &&
         !parts_.reclaims.nominated_until.contains(uid) && !parts_.gangs.IsSeated(uid, *record))) {
      faults.push_back({AuditKind::kCharge, work.pod.str(),
                        fmt::format("quota is kept for {}, for which nothing runs", uid.str())});
    }
  }
}

void Engine::AuditSlice(AuditWalk& walk, AuditFindings& found) const {
  using Stage = AuditWalk::Stage;
  Auditor auditor(*parts_);
  walk.nodes.clear();
  walk.pods.clear();
  switch (walk.stage) {
    case Stage::kNodes:
      return auditor.AuditNodes(walk, found);
    case Stage::kPods:
      return auditor.AuditPods(walk, found);
    case Stage::kQuotas:
      return auditor.AuditQuotas(walk, found);
    case Stage::kCharges:
      return auditor.AuditHoldings(walk, found);
    case Stage::kGangs:
      return auditor.AuditAllGangs(walk, found);
    case Stage::kTallies: {
      std::vector<std::string> caps, claims;
      parts_->namespaces.AuditCaps(caps);
      parts_->claim_views.Audit(claims);
      NoteAll(AuditKind::kNamespaceCap, "", caps, found.faults);
      NoteAll(AuditKind::kClaim, "", claims, found.faults);
      auditor.AuditTallies(found.faults);
      auditor.AuditAgents(found.faults);
      auditor.AuditEarmarks(found.faults);
      walk.stage = Stage::kDone;
      return;
    }
    case Stage::kDone:
      return;
  }
}

std::vector<std::string> Engine::Audit() const {
  AuditFindings found;
  for (AuditWalk walk; !walk.done();) AuditSlice(walk, found);
  std::vector<std::string> texts;
  for (AuditNote& fault : found.faults) texts.push_back(std::move(fault.text));
  const QuotaBook& book = parts_->cluster.book;
  Charge held;
  for (const auto& [uid, work] : book.holdings()) held = AddSaturating(held, TotalOf(work.parts));
  if (held != book.held()) {
    texts.push_back(fmt::format("expected {} and {} quanta held by all, found {} and {} counted",
                                held.compute, held.memory, book.held().compute,
                                book.held().memory));
  }
  return texts;
}

std::vector<std::string> Engine::AuditVerdicts(const PodRequest& request) const {
  EngineParts& parts = *parts_;
  ClusterState& cluster = parts.cluster;
  std::vector<std::string> faults;
  if (SelectsDevices(request)) return faults;
  const RequestContext context = parts.rules.ContextOf(request);
  Shape* shape = parts.selection.ShapeOf(context);
  parts.selection.Begin(request);
  for (NodeId id{0}; id < cluster.nodes.size(); ++id) {
    if (cluster.nodes[id] == nullptr || !cluster.nodes[id]->state.present()) continue;
    const Verdict cached = parts.selection.Lookup(shape, context, id, Taken::kTentatively);
    const NodeState& state = cluster.nodes[id]->state;
    Picks picks;
    Worth worth;
    const Reason reason = cluster.scorer.Evaluate(RoomOf(state, state.soft()), request,
                                                  *context.policy, picks, worth, context.sharing);
    if (reason != cached.reason || (reason == Reason::kNone && worth != cached.worth)) {
      faults.push_back(fmt::format("{}: expected {} at cost {}, found {} at {} in the cache",
                                   cluster.names.name(id).str(), Describe(reason).code, worth.base,
                                   Describe(cached.reason).code, cached.worth.base));
    }
  }
  return faults;
}

std::string Engine::Digest() const {
  ClusterState& cluster = parts_->cluster;
  std::string digest;
  for (const NodeId id : cluster.names.ascending()) {
    if (cluster.nodes[id] == nullptr) continue;
    const NodeState& state = cluster.nodes[id]->state;
    digest += cluster.names.name(id).str() + "\n";
    for (const Holding& holding : state.holdings()) {
      if (holding.kind == HoldingKind::kTentative) continue;
      digest += "  " + holding.uid.str();
      for (const CardUse& use : holding.use.cards) {
        digest += fmt::format(" card{}:{}m/{}MiB", use.card, use.milli.count(), use.memory.count());
      }
      for (const InstanceUse& use : holding.use.instances) {
        digest += fmt::format(" pool{}.{}", use.pool, use.slot);
      }
      digest += "\n";
    }
  }
  return digest;
}

}  // namespace tranche
