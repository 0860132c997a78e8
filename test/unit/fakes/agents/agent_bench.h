// Pods and nodes for tests of the fake agents: a row says only what matters to it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "test/fakes/agents/fake_cluster.h"
#include "test/fakes/agents/node_agent.h"

namespace tranche::fakes {

// Cards GPU-0, GPU-1, ... of 16 GiB.
inline FakeNode CardNode(int cards, std::map<std::string, int64_t> capacity = {}) {
  FakeNode node;
  node.name = "n1";
  node.capacity = std::move(capacity);
  for (int i = 0; i < cards; ++i) {
    FakeCard card;
    card.uuid = "GPU-" + std::to_string(i);
    card.memory_mib = 16384;
    node.cards.push_back(card);
  }
  return node;
}

inline FakeContainer Asking(std::string name, Text limits, bool init = false) {
  return {std::move(name), init, std::move(limits)};
}

// Its uid is its name with "u-" before it.
inline FakePod Named(const std::string& name, std::vector<FakeContainer> containers) {
  FakePod pod;
  pod.name = name;
  pod.uid = "u-" + name;
  pod.containers = std::move(containers);
  return pod;
}

// A pod that is bound to n1 with these annotations.
inline void AddBound(FakePods& pods, FakePod pod, const Text& annotations) {
  const FakePod copy = pod;
  pods.AddPod(std::move(pod));
  pods.Bind(copy.ns, copy.name, copy.uid, "n1", annotations);
}

inline DeviceCall CallFor(const std::string& resource, int count) {
  DeviceCall call{"n1", resource, {}};
  for (int i = 0; i < count; ++i) call.ids.push_back("id-" + std::to_string(i));
  return call;
}

// "pod/container", or "!" and the error.
inline std::string Whom(const Service& service) {
  if (!service.error.empty()) return "!" + service.error;
  if (service.believed.uid.empty()) return "";
  return service.believed.uid.substr(2) + "/" + service.believed.container;
}

}  // namespace tranche::fakes
