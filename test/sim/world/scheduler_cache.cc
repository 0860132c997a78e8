#include "test/sim/world/scheduler_cache.h"

#include <optional>
#include <utility>

namespace tranche::sim {

void SchedulerCache::SetNode(StoredPtr node) {
  auto view = std::make_shared<const NodeView>(std::move(node));
  nodes_[view->name].view = view;
}

void SchedulerCache::RemoveNode(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  found->second.view = nullptr;
  if (found->second.pods.empty()) nodes_.erase(found);
}

void SchedulerCache::Place(const PodViewPtr& pod, const std::string& name) {
  Node& node = nodes_[name];
  node.pods[pod->uid] = pod;
  AddAmounts(node.used, pod->requests);
  placed_[pod->uid] = name;
}

void SchedulerCache::Unplace(const std::string& uid) {
  const auto found = placed_.find(uid);
  if (found == placed_.end()) return;
  Node& node = nodes_.at(found->second);
  SubtractAmounts(node.used, node.pods.at(uid)->requests);
  node.pods.erase(uid);
  if (node.view == nullptr && node.pods.empty()) nodes_.erase(found->second);
  placed_.erase(found);
}

void SchedulerCache::SetPod(PodViewPtr pod) {
  nominated_.erase(pod->uid);
  if (!pod->node.empty()) {
    Unplace(pod->uid);
    assumed_.erase(pod->uid);
    Place(pod, pod->node);
  } else if (!pod->nominated.empty()) {
    nominated_[pod->uid] = pod->nominated;
  }
  pods_[pod->uid] = std::move(pod);
}

void SchedulerCache::RemovePod(const std::string& uid) {
  Unplace(uid);
  assumed_.erase(uid);
  nominated_.erase(uid);
  pods_.erase(uid);
}

void SchedulerCache::Assume(const PodViewPtr& pod, const std::string& node) {
  Place(pod, node);
  assumed_.insert(pod->uid);
}

void SchedulerCache::Forget(const std::string& uid) {
  if (assumed_.erase(uid) > 0) Unplace(uid);
}

PodViewPtr SchedulerCache::Pod(const std::string& uid) const {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : found->second;
}

const SchedulerCache::Node* SchedulerCache::FindNode(const std::string& name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() || found->second.view == nullptr ? nullptr : &found->second;
}

std::string SchedulerCache::WhyNot(const PodView& pod, const Node& node) const {
  std::string why = UnsuitableFor(pod, *node.view);
  if (why.empty()) why = Lacks(pod, *node.view, node.used);
  if (!why.empty() || nominated_.empty()) return why;
  std::optional<Amounts> used;  // nullopt: that of the node
  for (const auto& [uid, name] : nominated_) {
    if (name != node.view->name || uid == pod.uid) continue;
    const PodViewPtr other = Pod(uid);
    if (other == nullptr || assumes(uid) || other->priority < pod.priority) continue;
    if (!used) used = node.used;
    AddAmounts(*used, other->requests);
  }
  return used ? Lacks(pod, *node.view, *used) : why;
}

void SchedulerCache::Clear() { *this = SchedulerCache(); }

}  // namespace tranche::sim
