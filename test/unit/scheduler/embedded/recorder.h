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
  void NodeChanged(NodeFacts node) override {
    Note("node " + node.name.str());
    nodes_[node.name.str()] = std::move(node);
  }
  void NodeGone(const NodeName& name) override { Note("node gone " + name.str()); }
  void PodChanged(PodFacts pod) override {
    Note(fmt::format("pod {}{}{}{}", pod.request.name.str(),
                     pod.node.empty() ? "" : " on " + pod.node.str(), PhaseText(pod.phase),
                     pod.terminating ? " terminating" : ""));
    const std::string name = pod.request.name.str();
    pods_[name] = std::move(pod);
    if (on_pod) on_pod();
  }
  void PodGone(const PodUid& uid) override { Note("pod gone " + uid.str()); }
  void NodeZonesChanged(const NodeName& name, std::optional<NodeZones> zones) override {
    Note(fmt::format("zones {}{}", name.str(),
                     zones ? fmt::format(" {}", zones->zones.size()) : " gone"));
  }
  void NodeSlicesChanged(const NodeName& name, std::vector<SliceDevice> devices) override {
    std::string line = "slices " + name.str();
    for (const SliceDevice& device : devices) line += " " + device.name;
    Note(std::move(line));
  }
  // Slices are told by NodeSlicesChanged.
  void DraChanged(dra::Object object) override {
    if (const auto* claim = std::get_if<dra::Claim>(&object)) Note("claim " + claim->str());
    if (const auto* each = std::get_if<dra::DeviceClass>(&object))
      Note("device class " + each->name);
    if (const auto* made = std::get_if<dra::ClaimTemplate>(&object)) {
      Note("claim template " + made->claim.str());
    }
  }
  void DraGone(const dra::ObjectRef& object) override {
    if (object.kind == dra::ObjectRef::Kind::kSlice) return;
    Note("gone " + object.ns + "/" + object.name);
  }
  void NodeAgentChanged(const NodeName& name, std::optional<AgentRegister> agent) override {
    Note(fmt::format(
        "agent {}{}", name.str(),
        agent ? fmt::format(" {} {}", AgentName(agent->kind), agent->devices.size()) : " gone"));
  }
  void GangSizeChanged(const std::string& ns, const std::string& gang, int size) override {
    Note(fmt::format("gang {} {} {}", ns, gang, size));
  }
  void PolicyObjectChanged(PolicyObject object) override {
    Note(fmt::format("{} {}", object.kind, object.name));
    policy_objects_ = std::move(object);
  }
  void PolicyObjectGone(const std::string& kind, const NamespacedName& object) override {
    Note(fmt::format("{} gone {}{}{}", kind, object.ns, object.ns.empty() ? "" : "/", object.name));
  }
  void PolicyObjectsSettled() override { Note("settled"); }
  void Synced() override { Note("synced"); }
  void Heard(const char* resource) override { Note(std::string("heard ") + resource); }

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
