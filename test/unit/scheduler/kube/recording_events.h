// A ClusterEvents that writes down what it was told, one line an event, for tests to wait on.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/ports/cluster_events.h"

namespace tranche::kube {

class RecordingEvents : public ClusterEvents {
 public:
  void NodeChanged(NodeFacts node) override { Add("node " + node.name.str()); }
  void NodeGone(const NodeName& name) override { Add("node gone " + name.str()); }
  void PodChanged(PodFacts pod) override {
    const std::string place = pod.node.empty() ? "" : " on " + pod.node.str();
    const std::string problem = pod.allocation_problem.empty() ? "" : " unreadable";
    Add(fmt::format("pod {} {}{}{}", pod.request.name.str(), pod.request.uid.str(), place,
                    problem));
  }
  void PodGone(const PodUid& uid) override { Add("pod gone " + uid.str()); }
  void NodeZonesChanged(const NodeName& name, std::optional<NodeZones> zones) override {
    Add(fmt::format("zones {}{}", name.str(),
                    zones ? fmt::format(" {}", zones->zones.size()) : " gone"));
  }
  void NodeSlicesChanged(const NodeName& name, std::vector<SliceDevice> devices) override {
    std::string line = "slices " + name.str();
    for (const SliceDevice& device : devices) line += " " + device.name;
    Add(std::move(line));
  }
  // Slices are told by NodeSlicesChanged.
  void DraChanged(dra::Object object) override {
    if (const auto* claim = std::get_if<dra::Claim>(&object)) Add("claim " + claim->str());
    if (const auto* each = std::get_if<dra::DeviceClass>(&object))
      Add("device class " + each->name);
    if (const auto* made = std::get_if<dra::ClaimTemplate>(&object)) {
      Add("claim template " + made->claim.str());
    }
  }
  void DraGone(const dra::ObjectRef& object) override {
    if (object.kind == dra::ObjectRef::Kind::kSlice) return;
    Add("gone " + object.ns + "/" + object.name);
  }
  void NodeAgentChanged(const NodeName& name, std::optional<AgentRegister> agent) override {
    Add(fmt::format(
        "agent {}{}", name.str(),
        agent ? fmt::format(" {} {}", AgentName(agent->kind), agent->devices.size()) : " gone"));
  }
  void GangSizeChanged(const std::string& ns, const std::string& gang, int size) override {
    Add(fmt::format("gang {} {} {}", ns, gang, size));
  }
  void PolicyObjectChanged(PolicyObject object) override {
    std::string line =
        fmt::format("{} {}{}{}", object.kind, object.ns, object.ns.empty() ? "" : "/", object.name);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      policy_objects_.push_back(std::move(object));
    }
    Add(std::move(line));
  }
  void PolicyObjectGone(const std::string& kind, const NamespacedName& object) override {
    Add(fmt::format("{} gone {}{}{}", kind, object.ns, object.ns.empty() ? "" : "/", object.name));
  }
  void PolicyObjectsSettled() override { Add("settled"); }
  void Synced() override { Add("synced"); }
  void Heard(const char*) override {}

  // True once a line equal to `line` is there.
  bool Saw(const std::string& line, int times = 1) {
    std::unique_lock<std::mutex> lock(mutex_);
    return added_.wait_for(lock, std::chrono::seconds(10),
                           [&] { return std::count(lines_.begin(), lines_.end(), line) >= times; });
  }
  std::vector<std::string> Lines() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return lines_;
  }
  // Every object handed over, in order.
  std::vector<PolicyObject> PolicyObjects() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return policy_objects_;
  }
  std::ptrdiff_t Count(const std::string& line) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::count(lines_.begin(), lines_.end(), line);
  }
  // Position of the first such line; the number of lines when there is none.
  std::ptrdiff_t Position(const std::string& line) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::find(lines_.begin(), lines_.end(), line) - lines_.begin();
  }

 private:
  void Add(std::string line) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      lines_.push_back(std::move(line));
    }
    added_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable added_;
  std::vector<std::string> lines_;
  std::vector<PolicyObject> policy_objects_;
};

}  // namespace tranche::kube
