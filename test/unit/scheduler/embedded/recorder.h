// Writes down what the embedded cluster tells the engine, one line per event.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/ports/cluster_events.h"

namespace tranche::embedded {

class Recorder : public ClusterEvents {
 public:
  void Receive(ClusterEvent event) override {
    std::visit([this](auto& told) { (*this)(told); }, event);
  }

  void operator()(NodeChanged& told) {
    Note("node " + told.node.name.str());
    nodes_[told.node.name.str()] = std::move(told.node);
  }
  void operator()(const NodeUnreadable&) {}  // what it cannot read it refuses
  void operator()(const NodeGone& told) { Note("node gone " + told.name.str()); }
  void operator()(PodChanged& told) {
    PodFacts& pod = told.pod;
    Note(fmt::format("pod {}{}{}{}", pod.request.name.str(),
                     pod.node.empty() ? "" : " on " + pod.node.str(), PhaseText(pod.phase),
                     pod.terminating ? " terminating" : ""));
    const std::string name = pod.request.name.str();
    pods_[name] = std::move(pod);
    if (on_pod) on_pod();
  }
  void operator()(const PodGone& told) { Note("pod gone " + told.uid.str()); }
  void operator()(const NodeZonesChanged& told) {
    Note(fmt::format("zones {}{}", told.node.str(),
                     told.zones ? fmt::format(" {}", told.zones->zones.size()) : " gone"));
  }
  void operator()(const NodeSlicesChanged& told) {
    std::string line = "slices " + told.node.str();
    for (const SliceDevice& device : told.devices) line += " " + device.name;
    Note(std::move(line));
  }
  // Slices are told by NodeSlicesChanged.
  void operator()(const DraChanged& told) {
    if (const auto* claim = std::get_if<dra::Claim>(&told.object)) Note("claim " + claim->str());
    if (const auto* each = std::get_if<dra::DeviceClass>(&told.object))
      Note("device class " + each->name);
    if (const auto* made = std::get_if<dra::ClaimTemplate>(&told.object)) {
      Note("claim template " + made->claim.str());
    }
  }
  void operator()(const DraGone& told) {
    if (told.object.kind == dra::ObjectRef::Kind::kSlice) return;
    Note("gone " + told.object.ns + "/" + told.object.name);
  }
  void operator()(const NodeAgentChanged& told) {
    const std::optional<AgentRegister>& agent = told.agent;
    Note(fmt::format(
        "agent {}{}", told.node.str(),
        agent ? fmt::format(" {} {}", AgentName(agent->kind), agent->devices.size()) : " gone"));
  }
  void operator()(const ScaleUpTold& told) { Note("node raised for " + told.pod.str()); }
  void operator()(const GangSizeChanged& told) {
    Note(fmt::format("gang {} {} {}", told.ns, told.gang, told.size));
  }
  void operator()(PolicyObject& object) {
    Note(fmt::format("{} {}", object.kind, object.name));
    policy_objects_ = std::move(object);
  }
  void operator()(const PolicyObjectGone& told) {
    Note(fmt::format("{} gone {}{}{}", told.kind, told.name.ns, told.name.ns.empty() ? "" : "/",
                     told.name.name));
  }
  void operator()(PolicyObjectsSettled) { Note("settled"); }
  void operator()(Synced) { Note("synced"); }
  void operator()(const Heard& told) { Note(std::string("heard ") + told.resource); }

  void Note(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  // The lines since the last call.
  std::vector<std::string> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }
  const PodFacts& pod(const std::string& name) const { return pods_.at(name); }
  const NodeFacts& node(const std::string& name) const { return nodes_.at(name); }

  // The last one handed over.
  const PolicyObject& policy_objects() const { return policy_objects_; }

  std::function<void()> on_pod;

 private:
  static std::string PhaseText(PodPhase phase) {
    switch (phase) {
      case PodPhase::kPending:
        return " Pending";
      case PodPhase::kRunning:
        return " Running";
      case PodPhase::kSucceeded:
        return " Succeeded";
      case PodPhase::kFailed:
        return " Failed";
      case PodPhase::kUnknown:
        break;
    }
    return " Unknown";
  }

  std::mutex mutex_;
  std::vector<std::string> lines_;
  std::map<std::string, PodFacts> pods_;
  std::map<std::string, NodeFacts> nodes_;
  PolicyObject policy_objects_;
};

}  // namespace tranche::embedded
