#include "scheduler/app/event_feed.h"

#include <algorithm>

namespace tranche::app {

void EventFeed::Open(ClusterEvents& receiver) {
  const std::lock_guard lock(mutex_);
  for (auto& [key, object] : known_.steering) receiver.SteeringChanged(std::move(object));
  receiver.SteeringSettled();
  for (auto& [node, zones] : known_.zones) receiver.NodeZonesChanged(node, std::move(zones));
  for (auto& [node, slices] : known_.slices) receiver.NodeSlicesChanged(node, std::move(slices));
  for (auto& [node, agent] : known_.agents) receiver.NodeAgentChanged(node, std::move(agent));
  for (const auto& [gang, size] : known_.gangs) {
    receiver.GangSizeChanged(gang.first, gang.second, size);
  }
  for (auto& [name, node] : known_.nodes) receiver.NodeChanged(std::move(node));
  for (auto& [uid, pod] : known_.pods) receiver.PodChanged(std::move(pod));
  receiver.Synced();
  const Steady::time_point now = Steady::now();
  for (const auto& [resource, when] : known_.heard) {
    if (now - when <= kFreshlyHeard) receiver.Heard(resource.c_str());
  }
  known_ = {};
  receiver_ = &receiver;
}

int64_t EventFeed::HighestEpoch() const {
  const std::lock_guard lock(mutex_);
  int64_t highest = 0;
  for (const auto& [uid, pod] : known_.pods) {
    if (!pod.node.empty() && pod.allocation) highest = std::max(highest, pod.allocation->epoch);
  }
  return highest;
}

void EventFeed::NodeChanged(NodeFacts node) {
  const std::lock_guard lock(mutex_);
  if (receiver_ != nullptr) return receiver_->NodeChanged(std::move(node));
  NodeName name = node.name;
  known_.nodes.insert_or_assign(std::move(name), std::move(node));
}

void EventFeed::NodeGone(const NodeName& name) {
  const std::lock_guard lock(mutex_);
  if (receiver_ != nullptr) return receiver_->NodeGone(name);
  known_.nodes.erase(name);
}

void EventFeed::PodChanged(PodFacts pod) {
  const std::lock_guard lock(mutex_);
  if (receiver_ != nullptr) return receiver_->PodChanged(std::move(pod));
  PodUid uid = pod.request.uid;
  known_.pods.insert_or_assign(std::move(uid), std::move(pod));
}

void EventFeed::PodGone(const PodUid& uid) {
  const std::lock_guard lock(mutex_);
  if (receiver_ != nullptr) return receiver_->PodGone(uid);
  known_.pods.erase(uid);
}

void EventFeed::NodeZonesChanged(const NodeName& name, std::optional<NodeZones> zones) {
  const std::lock_guard lock(mutex_);
  if (receiver_ != nullptr) return receiver_->NodeZonesChanged(name, std::move(zones));
  if (zones) {
    known_.zones.insert_or_assign(name, *std::move(zones));
  } else {
    known_.zones.erase(name);
  }
}

void EventFeed::NodeSlicesChanged(const NodeName& name, std::vector<SliceDevice> devices) {
  const std::lock_guard lock(mutex_);
  if (receiver_ != nullptr) return receiver_->NodeSlicesChanged(name, std::move(devices));
  if (devices.empty()) {
    known_.slices.erase(name);
  } else {
    known_.slices.insert_or_assign(name, std::move(devices));
  }
}

void EventFeed::NodeAgentChanged(const NodeName& name, std::optional<AgentRegister> agent) {
  const std::lock_guard lock(mutex_);
  if (receiver_ != nullptr) return receiver_->NodeAgentChanged(name, std::move(agent));
  if (agent) {
    known_.agents.insert_or_assign(name, *std::move(agent));
  } else {
    known_.agents.erase(name);
  }
}

void EventFeed::GangSizeChanged(const std::string& ns, const std::string& gang, int size) {
  const std::lock_guard lock(mutex_);
  if (receiver_ != nullptr) return receiver_->GangSizeChanged(ns, gang, size);
  if (size > 0) {
    known_.gangs[{ns, gang}] = size;
  } else {
    known_.gangs.erase({ns, gang});
  }
}

void EventFeed::SteeringChanged(SteeringObject object) {
  const std::lock_guard lock(mutex_);
  if (receiver_ != nullptr) return receiver_->SteeringChanged(std::move(object));
  known_.steering[{object.kind, object.ns, object.name}] = object;
}

void EventFeed::SteeringGone(const std::string& kind, const std::string& ns,
                             const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (receiver_ != nullptr) return receiver_->SteeringGone(kind, ns, name);
  known_.steering.erase({kind, ns, name});
}

void EventFeed::SteeringSettled() {
  const std::lock_guard lock(mutex_);
  if (receiver_ != nullptr) receiver_->SteeringSettled();
}

void EventFeed::Synced() {
  // Whoever opens the feed knows that lists are complete.
  const std::lock_guard lock(mutex_);
  if (receiver_ != nullptr) receiver_->Synced();
}

void EventFeed::Heard(const char* resource) {
  const std::lock_guard lock(mutex_);
  if (receiver_ != nullptr) return receiver_->Heard(resource);
  known_.heard[resource] = Steady::now();
}

}  // namespace tranche::app
