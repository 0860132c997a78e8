// What is done about the findings of an audit, and what others compare the books with.
#include "scheduler/engine/engine.h"
#include "scheduler/engine/parts.h"

namespace tranche {

void Engine::Mend(std::vector<AuditNote>& faults, Instant now) {
  ClusterState& cluster = parts_->cluster;
  parts_->Advance(now);
  bool quotas = false;
  bool tallies = false;
  for (AuditNote& fault : faults) {
    if (!IsSum(fault.kind)) continue;
    fault.mended = true;
    quotas |= fault.kind == AuditKind::kQuotaSum;
    tallies |= fault.kind == AuditKind::kTally;
    const NodeId id =
        fault.kind == AuditKind::kLoad ? cluster.names.Find(fault.where) : NodeId(kNoNode);
    if (id == kNoNode || cluster.nodes[id] == nullptr) continue;
    cluster.nodes[id]->state.SetPlainCpu(cluster.plain_seen.On(cluster.names.name(id)));
    cluster.Refresh(id, now);
  }
  if (quotas) {
    parts_->ForgetTeams();
    cluster.book.Recount();
  }
  if (!tallies) return;
  cluster.tentative_placements = 0;
  for (const auto& entry : cluster.nodes) {
    if (entry == nullptr) continue;
    for (const Holding& holding : entry->state.holdings()) {
      cluster.tentative_placements +=
          holding.kind == HoldingKind::kTentative && holding.placeholder == PlaceholderRole::kNone;
    }
  }
  cluster.reservations.clear();
  for (const auto& [uid, record] : cluster.pods) {
    if (!record.reserved.empty()) cluster.reservations.insert({record.reserved_since, uid});
  }
}

PodStand Engine::StandOf(const PodUid& uid) const {
  const ClusterState& cluster = parts_->cluster;
  if (const auto record = cluster.pods.find(uid); record != cluster.pods.end()) {
    return {.known = true, .ended = record->second.terminal, .node = record->second.node};
  }
  return {.known = cluster.plain_seen.Has(uid), .node = cluster.plain_seen.NodeOf(uid)};
}

const PolicySet& Engine::policy_set() const { return *parts_->cluster.set; }

const NodeFacts* Engine::FactsOf(const NodeName& node) const {
  const ClusterState& cluster = parts_->cluster;
  const NodeId id = cluster.names.Find(node.str());
  const bool present =
      id != kNoNode && cluster.nodes[id] != nullptr && cluster.nodes[id]->state.present();
  return present ? &cluster.nodes[id]->state.facts() : nullptr;
}

}  // namespace tranche
