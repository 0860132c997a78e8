// An engine with nodes and pods by name, for its tests.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "scheduler/engine/engine.h"
#include "test/builders/cluster.h"

namespace tranche {

class EngineTest : public testing::Test {
 protected:
  EngineTest() : engine_(EngineOptions{}) {
    GpuPolicy policy;
    policy.unenforced_sharing = Permission::kAllow;
    test::SetPolicy(engine_, policy);
  }

  void Nodes(const std::vector<NodeFacts>& nodes) {
    for (const NodeFacts& node : nodes) {
      engine_.UpsertNode(node, now_);
      names_.push_back(node.name);
    }
  }

  // Names of the nodes filter chose, best first.
  std::vector<std::string> Filter(const PodRequest& request) {
    std::vector<std::string_view> names;
    for (const NodeName& name : names_) names.push_back(name.str());
    engine_.Filter(request, names, now_, answer_);
    std::vector<std::string> chosen;
    for (const uint32_t position : answer_.chosen) chosen.push_back(names_[position].str());
    return chosen;
  }

  std::string ReasonOn(const PodRequest& request, const std::string& node) {
    Filter(request);
    for (const auto& [position, reason] : answer_.refused) {
      if (names_[position].str() == node) return std::string(Describe(reason).code);
    }
    return "";
  }

  BindPlan Bind(const PodRequest& request, const std::string& node) {
    engine_.UpsertPod(test::Pending(request), now_);
    return engine_.Bind(request.name, request.uid, NodeName(node), now_);
  }

  // Binds and has the server confirm it. False: refused.
  bool Place(const PodRequest& request, const std::string& node) {
    const BindPlan plan = Bind(request, node);
    if (plan.kind != BindPlan::Kind::kWrite) return false;
    engine_.SettleBind(request.uid, NodeName(node), BindOutcome::kBound, now_);
    return true;
  }

  // "card:milli" of every device, in container order.
  static std::vector<std::string> Devices(const Allocation& allocation) {
    std::vector<std::string> devices;
    for (const ContainerDevices& container : allocation.containers) {
      for (const Device& device : container.devices) {
        devices.push_back(fmt::format("{}:{}", device.card, device.milli.count()));
      }
    }
    return devices;
  }

  int64_t FreeMilli(const std::string& node) {
    for (const NodeView& view : engine_.Nodes(NodeName(), 100, now_)) {
      if (view.name.str() != node) continue;
      int64_t free = 0;
      for (const GpuView& gpu : view.gpus) free += gpu.free_milli.count();
      return free;
    }
    return -1;
  }

  Engine engine_;
  Instant now_ = test::At(0);
  std::vector<NodeName> names_;
  FilterAnswer answer_;
};

}  // namespace tranche
