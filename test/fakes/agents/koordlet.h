// Koordinator's node agent: no device plugin to be called; a hook of the container runtime reads
// the decision of just this pod, by its UID.
// Source: request-dialects section 12.
#pragma once

#include <string>
#include <vector>

#include "test/fakes/agents/fake_cluster.h"
#include "test/fakes/agents/node_agent.h"

namespace tranche::fakes {

class Koordlet : public NodeAgent {
 public:
  explicit Koordlet(FakePods& pods) : pods_(pods) {}

  std::vector<std::string> resources() const override { return {}; }
  Service Allocate(const DeviceCall& call) override;
  // The decision is of the pod: its first container is given all, the others see the same cards.
  Service Hook(const std::string& node, const ContainerId& owner) override;

 private:
  FakePods& pods_;
};

}  // namespace tranche::fakes
