// Placeholder pods as the cluster shows them.
#include <utility>

#include "scheduler/engine/impl.h"

namespace tranche {

void Engine::Impl::UpsertKeeper(PodFacts pod, Instant now) {
  if (pod.node.empty()) return;  // it holds nothing, and we make them with a node
  const PodUid uid = pod.request.uid;
  PlaceholderSighting sighting{
      pod.request.name, uid, pod.node, -1, pod.keeper->told, pod.terminating, !pod.holds_devices()};
  const bool known = placeholders.books().Knows(uid);
  if (sighting.ended) {
    placeholders.books().See(sighting, now);
    if (known) {
      ReleaseOn(pod.node, uid, now);
    } else if (const NodeId id = names.Find(pod.node.str()); id != kNoNode && nodes[id]) {
      Refresh(id, now);
    }
    return;
  }
  const NodeId id = InternNode(pod.node);
  NodeState& state = nodes[id]->state;
  Holding holding;
  holding.uid = uid;
  holding.request = std::make_shared<const PodRequest>(std::move(pod.request));
  holding.allocation = std::move(pod.allocation);
  holding.told = pod.keeper->told;
  const Holding* before = state.Find(uid);
  holding.keeper = before != nullptr ? before->keeper : KeeperRole::kLingering;
  state.Hold(std::move(holding));
  const Holding& after = *state.Find(uid);
  if (after.known) sighting.card = after.picks.front().card;
  placeholders.books().See(sighting, now);
  Refresh(id, now);
}

bool Engine::Impl::DropKeeper(const PodUid& uid, Instant now) {
  const std::optional<NodeName> node = placeholders.books().Gone(uid);
  if (!node) return false;
  ReleaseOn(*node, uid, now);
  return true;
}

void Engine::Impl::StartKeepers(Instant now) {
  placeholders.books().Complete(now);
  for (NodeId id = 0; id < nodes.size(); ++id) {
    if (nodes[id] != nullptr) Refresh(id, now);
  }
}

void Engine::SettleKeeper(const PodName& keeper, const NodeName& node, Instant now) {
  impl_->Advance(now);
  impl_->placeholders.books().NotMade(keeper, now);
  const NodeId id = impl_->names.Find(node.str());
  if (id != kNoNode && impl_->nodes[id] != nullptr) impl_->Refresh(id, now);
}

}  // namespace tranche
