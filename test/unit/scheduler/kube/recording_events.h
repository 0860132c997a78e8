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
  void Receive(ClusterEvent event) override {
    std::visit([this](auto& told) { (*this)(told); }, event);
  }

  void operator()(NodeChanged& told) { Add("node " + told.node.name.str()); }
  void operator()(const NodeGone& told) { Add("node gone " + told.name.str()); }
  void operator()(const NodeUnreadable& told) {
    Add(fmt::format("node {} unreadable: {}", told.name.str(), told.problem));
  }
  void operator()(PodChanged& told) {
    PodFacts& pod = told.pod;
    const std::string place = pod.node.empty() ? "" : " on " + pod.node.str();
    std::string problem = pod.allocation_problem.empty() ? "" : " unreadable";
    if (pod.unreadable && pod.terminating) problem += " leaving";
    if (pod.unreadable && pod.phase == PodPhase::kFailed) problem += " ended";
    Add(fmt::format("pod {} {}{}{}", pod.request.name.str(), pod.request.uid.str(), place,
                    problem));
  }
  void operator()(const PodGone& told) { Add("pod gone " + told.uid.str()); }
  void operator()(const NodeZonesChanged& told) {
    Add(fmt::format("zones {}{}", told.node.str(),
                    told.zones ? fmt::format(" {}", told.zones->zones.size()) : " gone"));
  }
  void operator()(const NodeSlicesChanged& told) {
    std::string line = "slices " + told.node.str();
    for (const SliceDevice& device : told.devices) line += " " + device.name;
    Add(std::move(line));
  }
  // Slices are told by NodeSlicesChanged.
  void operator()(const DraChanged& told) {
    if (const auto* claim = std::get_if<dra::Claim>(&told.object)) Add("claim " + claim->str());
    if (const auto* each = std::get_if<dra::DeviceClass>(&told.object))
      Add("device class " + each->name);
    if (const auto* made = std::get_if<dra::ClaimTemplate>(&told.object)) {
      Add("claim template " + made->claim.str());
    }
  }
  void operator()(const DraGone& told) {
    if (told.object.kind == dra::ObjectRef::Kind::kSlice) return;
    Add("gone " + told.object.ns + "/" + told.object.name);
  }
  void operator()(const NodeAgentChanged& told) {
    const std::optional<AgentRegister>& agent = told.agent;
    Add(fmt::format(
        "agent {}{}", told.node.str(),
        agent ? fmt::format(" {} {}", AgentName(agent->kind), agent->devices.size()) : " gone"));
  }
  void operator()(const ScaleUpTold& told) {
    Add(fmt::format("node raised for {}{}", told.pod.str(), told.told ? "" : " now"));
  }
  void operator()(const GangSizeChanged& told) {
    Add(fmt::format("gang {} {} {}", told.ns, told.gang, told.size));
  }
  void operator()(PolicyObject& object) {
    std::string line =
        fmt::format("{} {}{}{}", object.kind, object.ns, object.ns.empty() ? "" : "/", object.name);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      policy_objects_.push_back(std::move(object));
    }
    Add(std::move(line));
  }
  void operator()(const PolicyObjectGone& told) {
    Add(fmt::format("{} gone {}{}{}", told.kind, told.name.ns, told.name.ns.empty() ? "" : "/",
                    told.name.name));
  }
  void operator()(PolicyObjectsSettled) { Add("settled"); }
  void operator()(Synced) { Add("synced"); }
  void operator()(Heard) {}

  // True once a line equal to `line` is there.
  bool Saw(const std::string& line, int times = 1) {
    std::unique_lock<std::mutex> lock(mutex_);
    return added_.wait_for(lock, std::chrono::seconds(60),
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
