// The books checked against themselves, by other means than those that keep them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
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
      faults.push_back(fmt::format("{} card {}: expected {} milli {} MiB, found {} milli {} MiB",
                                   name.str(), i, milli, memory, load.milli.count(),
                                   load.memory.count()));
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

// Each leaf's use summed again from who holds what. Cost: O(holdings + leaves x lines).
void AuditQuota(const QuotaBook& book, std::vector<std::string>& faults) {
  const QuotaTree& tree = book.tree();
  Charge held;
  for (const auto& [uid, work] : book.holdings()) held = AddSaturating(held, TotalOf(work.parts));
  if (held != book.held()) {
    faults.push_back(fmt::format("expected {} and {} quanta held by all, found {} and {} counted",
                                 held.compute, held.memory, book.held().compute,
                                 book.held().memory));
  }
  std::map<std::pair<QuotaId, LineId>, Charge> sums;
  for (QuotaId id{0}; id < tree.size(); ++id) {
    if (!book.IsLeaf(tree.name(id))) continue;
    for (LineId line{0}; line < tree.lines(); ++line) sums.try_emplace({id, line});
  }
  const auto count = [&](const HeldWork& work) {
    const QuotaId leaf = tree.Find(work.leaf);
    if (leaf == kNoQuota || work.released) return;
    for (const ModelCharge& part : work.parts) {
      for (const LineId line : {kAnyLine, tree.FindLine(part.model)}) {
        const auto sum = sums.find({leaf, line});
        if (sum == sums.end()) continue;  // no quota names the model
        sum->second.compute += part.charge.compute;
        sum->second.memory += part.charge.memory;
      }
    }
  };
  for (const auto& [uid, work] : book.holdings()) count(work);
  for (const auto& [uid, work] : book.earmarks()) count(work);
  for (const auto& [place, sum] : sums) {
    const auto [leaf, line] = place;
    const Charge used = tree.Used(leaf, line);
    if (used == sum) continue;
    faults.push_back(fmt::format("quota {} line {}: expected {}/{} quanta in use, found {}/{}",
                                 tree.name(leaf), tree.line_name(line), sum.compute, sum.memory,
                                 used.compute, used.memory));
  }
}

class Auditor {
 public:
  explicit Auditor(EngineParts& parts) : parts_(parts), cluster_(parts.cluster) {}

  void AuditNode(NodeId id, std::vector<std::string>& faults);
  void AuditPod(const PodUid& uid, const PodRecord& record, std::vector<std::string>& faults);
  void AuditTallies(std::vector<std::string>& faults);
  void AuditAgents(std::vector<std::string>& faults);
  void AuditCharges(std::vector<std::string>& faults);

 private:
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

void Auditor::AuditNode(NodeId id, std::vector<std::string>& faults) {
  if (cluster_.nodes[id] == nullptr) return;
  const NodeEntry& entry = *cluster_.nodes[id];
  const NodeName& name = cluster_.names.name(id);
  AuditLoad(name, entry.state, faults);
  for (const Holding& holding : entry.state.holdings()) {
    if (holding.placeholder != PlaceholderRole::kNone) {
      if (cluster_.placeholders.books().Knows(holding.uid)) continue;
      faults.push_back(fmt::format("{}: nobody knows of the placeholder {}", name.str(),
                                   holding.request->name.str()));
      continue;
    }
    if (IsKnownTo(cluster_.Find(holding.uid), holding, id)) continue;
    faults.push_back(fmt::format("{}: a holding of {} has no pod that knows of it", name.str(),
                                 holding.uid.str()));
  }
  if (entry.closed != cluster_.hot[id].closed || entry.hard != cluster_.hot[id].hard ||
      entry.soft != cluster_.hot[id].soft) {
    faults.push_back(fmt::format("{}: the packed row differs from the entry", name.str()));
  }
}

void Auditor::AuditPod(const PodUid& uid, const PodRecord& record,
                       std::vector<std::string>& faults) {
  const std::string& place = record.Place().str();
  if (!place.empty()) {
    const NodeId id = cluster_.names.Find(place);
    if (id == kNoNode || cluster_.nodes[id]->state.Find(uid) == nullptr) {
      faults.push_back(
          fmt::format("pod {} says it is on {}, which does not hold it", uid.str(), place));
    }
  }
  if (!record.reserved.empty() && !cluster_.reservations.contains({record.reserved_since, uid})) {
    faults.push_back(fmt::format("the reservation of {} is not listed", uid.str()));
  }
}

// What is counted over all nodes.
void Auditor::AuditTallies(std::vector<std::string>& faults) {
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
    faults.push_back(fmt::format("expected {} tentative placements, found {} counted", tentative,
                                 cluster_.tentative_placements));
  }
  if (reserved != static_cast<int64_t>(cluster_.reservations.size())) {
    faults.push_back(fmt::format("expected {} reservations, found {} listed", reserved,
                                 cluster_.reservations.size()));
  }
}

void Auditor::AuditAgents(std::vector<std::string>& faults) {
  for (const PodUid& uid : cluster_.agents.Known()) {
    const PodRecord* record = cluster_.Find(uid);
    // Of those that have ended, only what an agent could still take for another.
    if (record == nullptr || (!record->terminal && record->Place().empty())) {
      faults.push_back(fmt::format("{} is in line at an agent and on no node", uid.str()));
    }
  }
}

// What quota counts and keeps has a pod or a claim behind it.
void Auditor::AuditCharges(std::vector<std::string>& faults) {
  for (const auto& [uid, work] : cluster_.book.earmarks()) {
    if (parts_.claim_books.kept.contains(uid)) continue;
    const PodRecord* record = cluster_.Find(uid);
    if (record == nullptr || record->earmark == nullptr ||
        (!parts_.reclaims.of_member.contains(uid) &&
         !parts_.reclaims.nominated_until.contains(uid) && !parts_.gangs.IsSeated(uid, *record))) {
      faults.push_back(fmt::format("quota is kept for {}, for which nothing runs", uid.str()));
    }
  }
  AuditQuota(cluster_.book, faults);
  for (const auto& [uid, work] : cluster_.book.holdings()) {
    if (parts_.metering.unclaimed.contains(uid) || parts_.metering.claims.contains(uid)) continue;
    const PodRecord* record = cluster_.Find(uid);
    if (record == nullptr || record->terminal || record->Place().empty()) {
      faults.push_back(
          fmt::format("quota counts {} of {}, which holds nothing", uid.str(), work.pod.str()));
    }
  }
}

void Engine::AuditSlice(AuditWalk& walk, std::vector<std::string>& faults) const {
  using Stage = AuditWalk::Stage;
  Auditor auditor(*parts_);
  const ClusterState& cluster = parts_->cluster;
  switch (walk.stage) {
    case Stage::kNodes:
      for (int i = 0; i < AuditWalk::kNodesAtOnce && walk.node < cluster.nodes.size();
           ++i, ++walk.node) {
        auditor.AuditNode(walk.node, faults);
      }
      if (walk.node < cluster.nodes.size()) return;
      for (const auto& [uid, record] : cluster.pods) walk.pods.push_back(uid);
      walk.stage = Stage::kPods;
      return;
    case Stage::kPods:
      for (int i = 0; i < AuditWalk::kPodsAtOnce && !walk.pods.empty(); ++i) {
        const auto found = cluster.pods.find(walk.pods.back());
        if (found != cluster.pods.end()) auditor.AuditPod(found->first, found->second, faults);
        walk.pods.pop_back();
      }
      if (walk.pods.empty()) walk.stage = Stage::kTallies;
      return;
    case Stage::kTallies:
      auditor.AuditTallies(faults);
      parts_->namespaces.AuditCaps(faults);
      AuditGangs(parts_->gangs.books(), cluster, faults);
      walk.stage = Stage::kCharges;
      return;
    case Stage::kCharges:
      parts_->claim_views.Audit(faults);
      auditor.AuditAgents(faults);
      auditor.AuditCharges(faults);
      walk.stage = Stage::kDone;
      return;
    case Stage::kDone:
      return;
  }
}

std::vector<std::string> Engine::Audit() const {
  std::vector<std::string> faults;
  for (AuditWalk walk; !walk.done();) AuditSlice(walk, faults);
  return faults;
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
