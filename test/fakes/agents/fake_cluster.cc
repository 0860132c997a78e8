#include "test/fakes/agents/fake_cluster.h"

#include <cstdlib>

namespace tranche::fakes {
namespace {

std::string Find(const Text& text, const std::string& key) {
  const auto found = text.find(key);
  return found == text.end() ? "" : found->second;
}

void Merge(const TextPatch& patch, Text& text) {
  for (const auto& [key, value] : patch) {
    if (value) {
      text[key] = *value;
    } else {
      text.erase(key);
    }
  }
}

}  // namespace

int64_t FakeContainer::Limit(const std::string& resource) const {
  const std::string amount = Find(limits, resource);
  return amount.empty() ? 0 : std::strtoll(amount.c_str(), nullptr, 10);
}

const char* PhaseName(FakePhase phase) {
  switch (phase) {
    case FakePhase::kPending:
      return "Pending";
    case FakePhase::kRunning:
      return "Running";
    case FakePhase::kSucceeded:
      return "Succeeded";
    case FakePhase::kFailed:
      break;
  }
  return "Failed";
}

std::string FakePod::Note(const std::string& key) const { return Find(annotations, key); }
std::string FakeNode::Note(const std::string& key) const { return Find(annotations, key); }

int FakeNode::CardOf(const std::string& uuid) const {
  for (std::size_t i = 0; i < cards.size(); ++i) {
    if (cards[i].uuid == uuid) return static_cast<int>(i);
  }
  return -1;
}

void FakePods::SetNow(int64_t now_ms) {
  const std::lock_guard lock(mutex_);
  now_ms_ = now_ms;
}

void FakePods::AddNode(FakeNode node) {
  {
    const std::lock_guard lock(mutex_);
    node.version = 1;
    Event event;
    event.node = node;
    event.is_node = true;
    nodes_[node.name] = std::move(node);
    Tell(std::move(event));
  }
  Drain();
}

void FakePods::AddPod(FakePod pod) {
  {
    const std::lock_guard lock(mutex_);
    pod.created = ++order_;
    pod.created_ms = now_ms_;
    names_[{pod.ns, pod.name}] = pod.uid;
    Event event;
    event.pod = pod;
    pods_[pod.uid] = std::move(pod);
    Tell(std::move(event));
  }
  Drain();
}

std::optional<FakePod> FakePods::Pod(const std::string& uid) const {
  const std::lock_guard lock(mutex_);
  const auto found = pods_.find(uid);
  return found == pods_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<FakePod> FakePods::PodNamed(const std::string& ns, const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find({ns, name});
  return found == names_.end() ? std::nullopt : std::optional(pods_.at(found->second));
}

std::vector<FakePod> FakePods::Pods() const {
  const std::lock_guard lock(mutex_);
  std::vector<FakePod> all;
  for (const auto& [name, uid] : names_) all.push_back(pods_.at(uid));
  return all;
}

std::vector<FakePod> FakePods::PodsOn(const std::string& node) const {
  const std::lock_guard lock(mutex_);
  std::vector<FakePod> here;
  for (const auto& [name, uid] : names_) {
    const FakePod& pod = pods_.at(uid);
    if (pod.node == node) here.push_back(pod);
  }
  return here;
}

std::optional<FakeNode> FakePods::Node(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<FakeNode> FakePods::Nodes() const {
  const std::lock_guard lock(mutex_);
  std::vector<FakeNode> all;
  for (const auto& [name, node] : nodes_) all.push_back(node);
  return all;
}

int FakePods::Bind(const std::string& ns, const std::string& name, const std::string& uid,
                   const std::string& node, const Text& annotations) {
  {
    const std::lock_guard lock(mutex_);
    const auto named = names_.find({ns, name});
    if (named == names_.end() || !nodes_.contains(node)) return 404;
    FakePod& pod = pods_.at(named->second);
    ++pod.binding_posts;
    if ((!uid.empty() && pod.uid != uid) || !pod.node.empty() || pod.deleting) return 409;
    pod.node = node;
    pod.bound = ++order_;
    pod.bound_ms = now_ms_;
    for (const auto& [key, value] : annotations) pod.annotations[key] = value;
    Event event;
    event.pod = pod;
    Tell(std::move(event));
  }
  Drain();
  return 201;
}

int FakePods::Change(const std::string& uid, const std::function<void(FakePod&)>& change) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = pods_.find(uid);
    if (found == pods_.end()) return 404;
    change(found->second);
    Event event;
    event.pod = found->second;
    Tell(std::move(event));
  }
  Drain();
  return 200;
}

int FakePods::PatchAnnotations(const std::string& uid, const TextPatch& patch) {
  return Change(uid, [&patch](FakePod& pod) { Merge(patch, pod.annotations); });
}

int FakePods::PatchLabels(const std::string& uid, const TextPatch& patch) {
  return Change(uid, [&patch](FakePod& pod) { Merge(patch, pod.labels); });
}

int FakePods::SetPhase(const std::string& uid, FakePhase phase, const std::string& reason) {
  return Change(uid, [phase, &reason](FakePod& pod) {
    pod.phase = phase;
    pod.reason = reason;
  });
}

int FakePods::SetTold(const std::string& uid, const std::string& told) {
  return Change(uid, [&told](FakePod& pod) { pod.told = told; });
}

int FakePods::MarkDeleting(const std::string& uid) {
  return Change(uid, [](FakePod& pod) { pod.deleting = true; });
}

int FakePods::Delete(const std::string& uid) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = pods_.find(uid);
    if (found == pods_.end()) return 404;
    Event event;
    event.pod = std::move(found->second);
    event.gone = true;
    names_.erase({event.pod.ns, event.pod.name});
    pods_.erase(found);
    Tell(std::move(event));
  }
  Drain();
  return 200;
}

int FakePods::PatchNode(const std::string& name, const TextPatch& annotations,
                        std::optional<uint64_t> version) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = nodes_.find(name);
    if (found == nodes_.end()) return 404;
    FakeNode& node = found->second;
    if (version && *version != node.version) return 409;
    Merge(annotations, node.annotations);
    ++node.version;
    for (const auto& [key, value] : annotations) {
      if (value) ++node_writes_[key];
    }
    Event event;
    event.node = node;
    event.is_node = true;
    Tell(std::move(event));
  }
  Drain();
  return 200;
}

void FakePods::Watch(PodWatcher pods, NodeWatcher nodes) {
  std::vector<FakeNode> all_nodes;
  std::vector<FakePod> all_pods;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, node] : nodes_) all_nodes.push_back(node);
    for (const auto& [name, uid] : names_) all_pods.push_back(pods_.at(uid));
    watchers_.emplace_back(pods, nodes);
  }
  for (const FakeNode& node : all_nodes) {
    if (nodes) nodes(node);
  }
  for (const FakePod& pod : all_pods) pods(pod, false);
}

int FakePods::NodeWrites(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = node_writes_.find(key);
  return found == node_writes_.end() ? 0 : found->second;
}

void FakePods::Tell(Event event) { events_.push_back(std::move(event)); }

void FakePods::Drain() {
  std::unique_lock lock(mutex_);
  if (draining_) return;
  draining_ = true;
  while (!events_.empty()) {
    const Event event = std::move(events_.front());
    events_.pop_front();
    const auto watchers = watchers_;
    lock.unlock();
    for (const auto& [pods, nodes] : watchers) {
      if (event.is_node && nodes) nodes(event.node);
      if (!event.is_node && pods) pods(event.pod, event.gone);
    }
    lock.lock();
  }
  draining_ = false;
}

}  // namespace tranche::fakes
