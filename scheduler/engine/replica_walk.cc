#include "scheduler/engine/replica_walk.h"

#include <algorithm>
#include <utility>

#include "scheduler/engine/engine.h"
#include "scheduler/engine/parts.h"

namespace tranche {
namespace {

void Begin(EngineParts& parts, ClusterCopy& copy, Instant now) {
  const ClusterState& cluster = parts.cluster;
  copy.version = cluster.version();
  copy.complete = cluster.cluster_complete;
  copy.options = cluster.options;
  copy.options.epoch = cluster.epoch;
  copy.set = cluster.set;
  copy.defaults = cluster.default_policy();
  // Growing later would move all of them at once.
  copy.nodes.reserve(cluster.names.size());
  copy.history.open.reserve(cluster.book.holdings().size());
  for (CapRow& row : parts.namespaces.caps.Rows()) copy.caps.push_back(std::move(row.cap));
  for (const auto& [key, budget] : parts.reclaims.disruption_budgets) {
    copy.disruption_budgets.push_back(budget);
  }
  const auto& sizes = parts.gangs.books().declared;
  copy.gang_sizes.assign(sizes.begin(), sizes.end());
  copy.history.from = copy.history.heartbeat = now;
}

void CopyObjects(const EngineParts& parts, ReplicaWalk& walk) {
  std::vector<dra::Object> objects =
      parts.cluster.catalog.ObjectsAfter(walk.object, ReplicaWalk::kObjectsAtOnce);
  if (objects.size() < ReplicaWalk::kObjectsAtOnce) walk.stage = ReplicaWalk::Stage::kNodes;
  if (!objects.empty()) walk.object = dra::RefOf(objects.back());
  std::ranges::move(objects, std::back_inserter(walk.copy.dra_objects));
}

template <typename Value>
std::optional<Value> FoundIn(const std::map<NodeName, Value>& all, const NodeName& name) {
  const auto found = all.find(name);
  return found == all.end() ? std::nullopt : std::optional(found->second);
}

NodeCopy CopyOf(const ClusterState& cluster, NodeId id) {
  const NodeEntry& entry = *cluster.nodes[id];
  const NodeName& name = cluster.names.name(id);
  NodeCopy copy;
  copy.present = entry.state.present();
  if (copy.present) {
    copy.facts = entry.state.facts();
    NodeOverlay::TakeFrom(copy.facts);
  }
  copy.facts.name = name;
  copy.unreadable = entry.unreadable;
  copy.held = entry.held;
  copy.plain_cpu = cluster.plain_seen.On(name);
  copy.zones = FoundIn(cluster.overlay.zones, name);
  copy.slices = FoundIn(cluster.overlay.slices, name).value_or(std::vector<SliceDevice>());
  copy.agent = FoundIn(cluster.overlay.agents, name);
  return copy;
}

// Pods of ours that hold cards are known by their nodes alone.
void CopyPlaceholders(const ClusterState& cluster, NodeId id, ClusterCopy& copy) {
  for (const Holding& holding : cluster.nodes[id]->state.holdings()) {
    if (holding.placeholder == PlaceholderRole::kNone) continue;
    PodCopy& pod = copy.pods[holding.uid];
    pod.facts.request = *holding.request;
    pod.facts.node = cluster.names.name(id);
    pod.facts.phase = PodPhase::kRunning;
    pod.facts.allocation = holding.allocation;
    pod.facts.placeholder = PlaceholderFacts{holding.told};
  }
}

void CopyNodes(ClusterState& cluster, ReplicaWalk& walk) {
  const std::vector<NodeId>& order = cluster.names.ascending();
  const auto name_of = [&cluster](NodeId id) { return cluster.names.name(id); };
  auto at = walk.node ? std::ranges::upper_bound(order, *walk.node, {}, name_of) : order.begin();
  for (int i = 0; i < ReplicaWalk::kNodesAtOnce && at != order.end(); ++i, ++at) {
    walk.node = name_of(*at);
    if (cluster.nodes[*at] == nullptr) continue;
    walk.copy.nodes.push_back(CopyOf(cluster, *at));
    CopyPlaceholders(cluster, *at, walk.copy);
  }
  if (at != order.end()) return;
  walk.stage = ReplicaWalk::Stage::kPods;
}

// What its object says, as far as it was kept.
PodCopy CopyOf(const EngineParts& parts, const PodUid& uid, const PodRecord& record) {
  const ClusterState& cluster = parts.cluster;
  PodCopy copy;
  PodFacts& pod = copy.facts;
  const PodTraits& traits = record.traits;
  pod.request = *record.request;
  pod.node = record.Place();
  pod.nominated = traits.nominated;
  pod.terminating = traits.leaves_at.has_value();
  pod.deletion_at = traits.leaves_at;
  pod.gated = traits.gated;
  pod.our_gates = traits.gates;
  pod.foreign_gates = traits.foreign_gates;
  if (record.waits_since != Instant()) pod.created = record.waits_since;
  if (traits.made_anew) pod.owner = traits.owner;
  pod.evictable = traits.evictable;
  pod.grace = traits.grace;
  pod.unschedulable = traits.unschedulable;
  pod.checkpointed_at = traits.checkpoint;
  pod.labels = traits.labels;
  pod.unreadable = record.unreadable;
  copy.eligible_at = record.eligible_at;
  copy.last_reason = WaitsBecause(cluster, record);
  copy.evicted = traits.evicted_at.has_value();
  copy.counted = record.counted;
  if (const GpuClass* gpu_class = cluster.set->ClassOf(record.request->priority_class)) {
    copy.workload_class = gpu_class->name;
  }
  if (pod.node.empty()) return copy;
  pod.bound_at = record.node.empty() ? record.reserved_since : record.held_since;
  const NodeId id = cluster.names.Find(pod.node.str());
  const Holding* holding =
      id == kNoNode || cluster.nodes[id] == nullptr ? nullptr : cluster.nodes[id]->state.Find(uid);
  if (holding != nullptr) {
    pod.allocation = holding->allocation;
    if (!holding->others.empty()) pod.disputed = holding->others.front();
  }
  if (const HeldWork* work = cluster.book.Find(uid)) {
    copy.leaf = work->leaf;
    copy.workload_class = work->workload_class;
    pod.running_at = work->running;
  }
  pod.phase = pod.running_at ? PodPhase::kRunning : PodPhase::kPending;
  return copy;
}

void CopyCharge(const ClusterState& cluster, const PodUid& uid, const NodeName& node, int interval,
                ClusterCopy& copy) {
  const HeldWork* work = cluster.book.Find(uid);
  if (work == nullptr) return;
  OpenInterval open;
  open.uid = uid;
  open.interval = interval;
  open.pod = work->pod;
  open.node = node;
  open.leaf = work->leaf;
  open.workload_class = work->workload_class;
  open.parts = work->parts;
  open.since = work->since;
  open.running = work->running;
  open.allocation = AllocationOn(cluster, node, uid);
  copy.history.open.push_back(std::move(open));
}

// What comes after the last pod that was copied, in the order of names.
template <typename Names>
auto NextOf(const Names& names, const std::pair<PodName, PodUid>& last) {
  return last.second.empty() ? names.begin() : names.upper_bound(last);
}

void CopyPods(const EngineParts& parts, ReplicaWalk& walk) {
  const ClusterState& cluster = parts.cluster;
  auto at = NextOf(cluster.pods_by_name, walk.pod);
  for (int i = 0; i < ReplicaWalk::kPodsAtOnce && at != cluster.pods_by_name.end(); ++i, ++at) {
    walk.pod = *at;
    const auto found = cluster.pods.find(at->second);
    if (found == cluster.pods.end()) continue;
    const PodRecord& record = found->second;
    // Those that filter alone saw come to nothing where their object never comes.
    if (record.terminal || (!record.seen && record.Place().empty())) continue;
    walk.copy.pods.insert_or_assign(at->second, CopyOf(parts, at->second, record));
    if (record.Place().empty()) continue;
    CopyCharge(cluster, at->second, record.Place(), record.interval, walk.copy);
  }
  if (at != cluster.pods_by_name.end()) return;
  walk.pod = {};
  walk.stage = ReplicaWalk::Stage::kClaimingPods;
}

void CopyClaimingPods(const EngineParts& parts, ReplicaWalk& walk) {
  const ClaimBooks& books = parts.claim_books;
  auto at = NextOf(books.by_name, walk.pod);
  for (int i = 0; i < ReplicaWalk::kPodsAtOnce && at != books.by_name.end(); ++i, ++at) {
    walk.pod = *at;
    const auto found = books.pods.find(at->second);
    if (found == books.pods.end() || found->second.terminal || !found->second.seen) continue;
    PodCopy copy = CopyOf(parts, at->second, found->second);
    copy.facts.claims = found->second.claims;
    if (found->second.held_since) copy.facts.phase = PodPhase::kRunning;
    walk.copy.pods.try_emplace(at->second, std::move(copy));
  }
  if (at == books.by_name.end()) walk.stage = ReplicaWalk::Stage::kClaims;
}

void CopyClaims(const EngineParts& parts, ReplicaWalk& walk) {
  const std::map<PodUid, MeteredClaim>& claims = parts.metering.claims;
  auto at = walk.claim ? claims.upper_bound(*walk.claim) : claims.begin();
  for (int i = 0; i < ReplicaWalk::kPodsAtOnce && at != claims.end(); ++i, ++at) {
    walk.claim = at->first;
    CopyCharge(parts.cluster, at->first, at->second.node, at->second.interval, walk.copy);
  }
  if (at == claims.end()) walk.stage = ReplicaWalk::Stage::kEnd;
}

}  // namespace

ClusterCopy ReplicaWalk::Take() {
  std::ranges::sort(copy.history.open, {}, &OpenInterval::uid);
  return std::move(copy);
}

void Engine::CopySlice(ReplicaWalk& walk, Instant now) {
  EngineParts& parts = *parts_;
  parts.Advance(now);
  switch (walk.stage) {
    case ReplicaWalk::Stage::kBegin:
      Begin(parts, walk.copy, now);
      walk.stage = ReplicaWalk::Stage::kObjects;
      return;
    case ReplicaWalk::Stage::kObjects:
      return CopyObjects(parts, walk);
    case ReplicaWalk::Stage::kNodes:
      return CopyNodes(parts.cluster, walk);
    case ReplicaWalk::Stage::kPods:
      return CopyPods(parts, walk);
    case ReplicaWalk::Stage::kClaimingPods:
      return CopyClaimingPods(parts, walk);
    case ReplicaWalk::Stage::kClaims:
      return CopyClaims(parts, walk);
    case ReplicaWalk::Stage::kEnd: {
      ClusterCopy& copy = walk.copy;
      copy.at = now;
      for (auto& [uid, stand] : BudgetStands(now)) {
        RestoredUse use;
        use.name = uid;
        use.mark.at = now;
        use.stand = std::move(stand);
        copy.history.restored.push_back(std::move(use));
      }
      copy.history.decay = Decay();
      copy.reclaims = Reclaims();
      copy.learned = parts.cluster.scorer.Memory();
      walk.stage = ReplicaWalk::Stage::kDone;
      return;
    }
    case ReplicaWalk::Stage::kDone:
      return;
  }
}

uint64_t Engine::Version() const { return parts_->cluster.version(); }

}  // namespace tranche
