// elastic-gpu-agent: Allocate gives a placeholder; when the container starts it asks kubelet who
// owns the device ids, so that it cannot mistake one pod for another.
// Source: request-dialects section 9.
#pragma once

#include <string>
#include <vector>

#include "test/fakes/agents/fake_cluster.h"
#include "test/fakes/agents/node_agent.h"

namespace tranche::fakes {

class ElasticAgent : public NodeAgent {
 public:
  explicit ElasticAgent(FakePods& pods) : pods_(pods) {}

  std::vector<std::string> resources() const override {
    return {"elasticgpu.io/gpu-core", "elasticgpu.io/gpu-memory"};
  }
  Service Allocate(const DeviceCall& call) override;
  Service PreStart(const DeviceCall& call, const ContainerId& owner) override;

 private:
  FakePods& pods_;
};

}  // namespace tranche::fakes
