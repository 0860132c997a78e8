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

// Each leaf's use summed again from who holds what.
void AuditQuota(const QuotaBook& book, std::vector<std::string>& faults) {
  const QuotaTree& tree = book.tree();
  for (QuotaId id{0}; id < tree.size(); ++id) {
    const std::string& name = tree.name(id);
    if (!book.IsLeaf(name)) continue;
    for (const QuotaLineView& line : tree.View(id)) {
      Charge used;
      const auto count = [&](const HeldWork& work) {
        if (work.leaf != name || work.released) return;
        for (const ModelCharge& part : work.parts) {
          if (line.model != kAnyModel && part.model != line.model) continue;
          used.compute += part.charge.compute;
          used.memory += part.charge.memory;
        }
      };
      for (const auto& [uid, work] : book.holdings()) count(work);
      for (const auto& [uid, work] : book.earmarks()) count(work);
      if (used != line.used) {
        faults.push_back(fmt::format("quota {} line {}: expected {}/{} quanta in use, found {}/{}",
                                     name, line.model, used.compute, used.memory, line.used.compute,
                                     line.used.memory));
      }
    }
  }
}

class Auditor {
 public:
  explicit Auditor(EngineParts& parts) : parts_(parts), cluster_(parts.cluster) {}

  void AuditNodes(std::vector<std::string>& faults);
  void AuditPods(std::vector<std::string>& faults);
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

void Auditor::AuditNodes(std::vector<std::string>& faults) {
  int64_t claimed = 0;
  int64_t reserved = 0;
  for (NodeId id{0}; id < cluster_.nodes.size(); ++id) {
    if (cluster_.nodes[id] == nullptr) continue;
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
      claimed += holding.kind == HoldingKind::kTentative;
      reserved += holding.kind == HoldingKind::kReservation;
      if (IsKnownTo(cluster_.Find(holding.uid), holding, id)) continue;
      faults.push_back(fmt::format("{}: a holding of {} has no pod that knows of it", name.str(),
                                   holding.uid.str()));
    }
    if (entry.closed != cluster_.hot[id].closed || entry.hard != cluster_.hot[id].hard ||
        entry.soft != cluster_.hot[id].soft) {
      faults.push_back(fmt::format("{}: the packed row differs from the entry", name.str()));
    }
  }
  if (claimed != cluster_.tentative_placements) {
    faults.push_back(fmt::format("expected {} tentative placements, found {} counted", claimed,
                                 cluster_.tentative_placements));
  }
  if (reserved != static_cast<int64_t>(cluster_.reservations.size())) {
    faults.push_back(fmt::format("expected {} reservations, found {} listed", reserved,
                                 cluster_.reservations.size()));
  }
}

void Auditor::AuditPods(std::vector<std::string>& faults) {
  for (const auto& [uid, record] : cluster_.pods) {
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

std::vector<std::string> Engine::Audit() const {
  std::vector<std::string> faults;
  Auditor auditor(*parts_);
  parts_->namespaces.AuditCaps(faults);
  auditor.AuditNodes(faults);
  auditor.AuditPods(faults);
  parts_->claim_views.Audit(faults);
  auditor.AuditCharges(faults);
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
