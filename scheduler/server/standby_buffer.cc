#include "scheduler/server/standby_buffer.h"

#include <algorithm>

namespace tranche {

void StandbyBuffer::Open(ClusterEvents& receiver) {
  const absl::MutexLock lock(&mutex_);
  for (auto& [key, object] : known_.policy_objects) receiver.PolicyObjectChanged(std::move(object));
  receiver.PolicyObjectsSettled();
  for (auto& [node, zones] : known_.zones) receiver.NodeZonesChanged(node, std::move(zones));
  for (auto& [node, slices] : known_.slices) receiver.NodeSlicesChanged(node, std::move(slices));
  for (auto& [ref, object] : known_.dra) receiver.DraChanged(std::move(object));
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

int64_t StandbyBuffer::HighestEpoch() const {
  const absl::MutexLock lock(&mutex_);
  int64_t highest = 0;
  for (const auto& [uid, pod] : known_.pods) {
    if (!pod.node.empty() && pod.allocation) highest = std::max(highest, pod.allocation->epoch);
  }
  return highest;
}

void StandbyBuffer::NodeChanged(NodeFacts node) {
  const absl::MutexLock lock(&mutex_);
  if (receiver_ != nullptr) return receiver_->NodeChanged(std::move(node));
  NodeName name = node.name;
  known_.nodes.insert_or_assign(std::move(name), std::move(node));
}

void StandbyBuffer::NodeGone(const NodeName& name) {
  const absl::MutexLock lock(&mutex_);
  if (receiver_ != nullptr) return receiver_->NodeGone(name);
  known_.nodes.erase(name);
}

void StandbyBuffer::PodChanged(PodFacts pod) {
  const absl::MutexLock lock(&mutex_);
  if (receiver_ != nullptr) return receiver_->PodChanged(std::move(pod));
  PodUid uid = pod.request.uid;
  known_.pods.insert_or_assign(std::move(uid), std::move(pod));
}

void StandbyBuffer::PodGone(const PodUid& uid) {
  const absl::MutexLock lock(&mutex_);
  if (receiver_ != nullptr) return receiver_->PodGone(uid);
  known_.pods.erase(uid);
}

void StandbyBuffer::NodeZonesChanged(const NodeName& name, std::optional<NodeZones> zones) {
  const absl::MutexLock lock(&mutex_);
  if (receiver_ != nullptr) return receiver_->NodeZonesChanged(name, std::move(zones));
  if (zones) {
    known_.zones.insert_or_assign(name, *std::move(zones));
  } else {
    known_.zones.erase(name);
  }
}

void StandbyBuffer::NodeSlicesChanged(const NodeName& name, std::vector<SliceDevice> devices) {
  const absl::MutexLock lock(&mutex_);
  if (receiver_ != nullptr) return receiver_->NodeSlicesChanged(name, std::move(devices));
  if (devices.empty()) {
    known_.slices.erase(name);
  } else {
    known_.slices.insert_or_assign(name, std::move(devices));
  }
}

void StandbyBuffer::DraChanged(dra::Object object) {
  const absl::MutexLock lock(&mutex_);
  if (receiver_ != nullptr) return receiver_->DraChanged(std::move(object));
  dra::ObjectRef ref = dra::RefOf(object);
  known_.dra.insert_or_assign(std::move(ref), std::move(object));
}

void StandbyBuffer::DraGone(const dra::ObjectRef& object) {
  const absl::MutexLock lock(&mutex_);
  if (receiver_ != nullptr) return receiver_->DraGone(object);
  known_.dra.erase(object);
}

void StandbyBuffer::NodeAgentChanged(const NodeName& name, std::optional<AgentRegister> agent) {
  const absl::MutexLock lock(&mutex_);
  if (receiver_ != nullptr) return receiver_->NodeAgentChanged(name, std::move(agent));
  if (agent) {
    known_.agents.insert_or_assign(name, *std::move(agent));
  } else {
    known_.agents.erase(name);
  }
}

void StandbyBuffer::GangSizeChanged(const std::string& ns, const std::string& gang, int size) {
  const absl::MutexLock lock(&mutex_);
  if (receiver_ != nullptr) return receiver_->GangSizeChanged(ns, gang, size);
  if (size > 0) {
    known_.gangs[{ns, gang}] = size;
  } else {
    known_.gangs.erase({ns, gang});
  }
}

void StandbyBuffer::PolicyObjectChanged(PolicyObject object) {
  const absl::MutexLock lock(&mutex_);
  if (receiver_ != nullptr) return receiver_->PolicyObjectChanged(std::move(object));
  known_.policy_objects[{object.kind, object.ns, object.name}] = object;
}

void StandbyBuffer::PolicyObjectGone(const std::string& kind, const NamespacedName& object) {
  const absl::MutexLock lock(&mutex_);
  if (receiver_ != nullptr) return receiver_->PolicyObjectGone(kind, object);
  known_.policy_objects.erase({kind, object.ns, object.name});
}

void StandbyBuffer::PolicyObjectsSettled() {
  const absl::MutexLock lock(&mutex_);
  if (receiver_ != nullptr) receiver_->PolicyObjectsSettled();
}

void StandbyBuffer::Synced() {
  // The lists are complete before anybody opens the buffer.
  const absl::MutexLock lock(&mutex_);
  if (receiver_ != nullptr) receiver_->Synced();
}

void StandbyBuffer::Heard(const char* resource) {
  const absl::MutexLock lock(&mutex_);
  if (receiver_ != nullptr) return receiver_->Heard(resource);
  known_.heard[resource] = Steady::now();
}

}  // namespace tranche
