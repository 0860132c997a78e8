#include "scheduler/server/standby_buffer.h"

#include <algorithm>
#include <variant>

namespace tranche {
namespace {

// As many as the engine keeps; of events nobody tells that they are over.
constexpr std::size_t kMostScaleUps = 50'000;

}  // namespace

// Puts down the newest of what an event tells.
struct StandbyBuffer::Keep {
  void operator()(NodeChanged& told) const {
    NodeName name = told.node.name;
    known.unreadable.erase(name);
    known.nodes.insert_or_assign(std::move(name), std::move(told));
  }
  void operator()(const NodeGone& told) const {
    known.unreadable.erase(told.name);
    known.nodes.erase(told.name);
  }
  void operator()(NodeUnreadable& told) const {
    known.unreadable.insert_or_assign(told.name, std::move(told.problem));
  }
  void operator()(PodChanged& told) const {
    PodUid uid = told.pod.request.uid;
    known.pods.insert_or_assign(std::move(uid), std::move(told));
  }
  void operator()(const PodGone& told) const {
    known.pods.erase(told.uid);
    known.scale_ups.erase(told.uid);
  }
  void operator()(NodeZonesChanged& told) const {
    known.zones.erase(told.node);
    if (told.zones) known.zones.emplace(told.node, *std::move(told.zones));
  }
  void operator()(NodeSlicesChanged& told) const {
    known.slices.erase(told.node);
    if (!told.devices.empty()) known.slices.emplace(told.node, std::move(told.devices));
  }
  void operator()(NodeAgentChanged& told) const {
    known.agents.erase(told.node);
    if (told.agent) known.agents.emplace(told.node, *std::move(told.agent));
  }
  void operator()(DraChanged& told) const {
    dra::ObjectRef ref = dra::RefOf(told.object);
    known.dra.insert_or_assign(std::move(ref), std::move(told.object));
  }
  void operator()(const DraGone& told) const { known.dra.erase(told.object); }
  void operator()(const GangSizeChanged& told) const {
    known.gangs.erase({told.ns, told.gang});
    if (told.size > 0) known.gangs.emplace(std::pair(told.ns, told.gang), told.size);
  }
  void operator()(const ScaleUpTold& told) const {
    if (known.scale_ups.size() < kMostScaleUps) known.scale_ups.emplace(told.pod, told.told);
  }
  void operator()(const PolicyObject& told) const {
    known.policy_objects[{told.kind, told.ns, told.name}] = told;
  }
  void operator()(const PolicyObjectGone& told) const {
    known.policy_objects.erase({told.kind, told.name.ns, told.name.name});
  }
  void operator()(PolicyObjectsSettled) const {}
  // The lists are complete before anybody opens the buffer.
  void operator()(Synced) const {}
  void operator()(const Heard& told) const { known.heard[told.resource] = Steady::now(); }

  Known& known;
};

void StandbyBuffer::Open(ClusterEvents& receiver) {
  const absl::MutexLock lock(&mutex_);
  for (auto& [key, object] : known_.policy_objects) receiver.Receive(std::move(object));
  receiver.Receive(PolicyObjectsSettled());
  for (auto& [node, zones] : known_.zones) {
    receiver.Receive(NodeZonesChanged{node, std::move(zones)});
  }
  for (auto& [node, slices] : known_.slices) {
    receiver.Receive(NodeSlicesChanged{node, std::move(slices)});
  }
  for (auto& [ref, object] : known_.dra) receiver.Receive(DraChanged{std::move(object)});
  for (auto& [node, agent] : known_.agents) {
    receiver.Receive(NodeAgentChanged{node, std::move(agent)});
  }
  for (const auto& [gang, size] : known_.gangs) {
    receiver.Receive(GangSizeChanged{gang.first, gang.second, size});
  }
  for (auto& [name, node] : known_.nodes) receiver.Receive(std::move(node));
  for (auto& [name, problem] : known_.unreadable) {
    receiver.Receive(NodeUnreadable{name, std::move(problem)});
  }
  for (auto& [uid, pod] : known_.pods) receiver.Receive(std::move(pod));
  for (const auto& [uid, told] : known_.scale_ups) receiver.Receive(ScaleUpTold{uid, told});
  receiver.Receive(Synced());
  const Steady::time_point now = Steady::now();
  for (const auto& [resource, when] : known_.heard) {
    if (now - when <= kFreshlyHeard) receiver.Receive(Heard{resource.c_str()});
  }
  known_ = {};
  receiver_ = &receiver;
}

int64_t StandbyBuffer::HighestEpoch(int64_t most) const {
  const absl::MutexLock lock(&mutex_);
  int64_t highest = 0;
  for (const auto& [uid, known] : known_.pods) {
    const PodFacts& pod = known.pod;
    if (pod.node.empty() || !pod.allocation || pod.allocation->epoch > most) continue;
    highest = std::max(highest, pod.allocation->epoch);
  }
  return highest;
}

void StandbyBuffer::Receive(ClusterEvent event) {
  const absl::MutexLock lock(&mutex_);
  if (receiver_ != nullptr) return receiver_->Receive(std::move(event));
  std::visit(Keep{known_}, event);
}

}  // namespace tranche
