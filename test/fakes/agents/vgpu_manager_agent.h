// vgpu-manager's device plugin: of the living pods given to this node and not finished the one with
// the smallest predicate-time; serves the first of its containers that is not served yet. When the
// container starts it looks who really owns the devices, and stops it where it guessed wrong.
// Source: request-dialects section 10.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "test/fakes/agents/fake_cluster.h"
#include "test/fakes/agents/node_agent.h"

namespace tranche::fakes {

class VgpuManagerAgent : public NodeAgent {
 public:
  explicit VgpuManagerAgent(FakePods& pods) : pods_(pods) {}

  std::vector<std::string> resources() const override { return {"nvidia.com/vgpu-number"}; }
  Service Allocate(const DeviceCall& call) override;
  Service PreStart(const DeviceCall& call, const ContainerId& owner) override;

 private:
  Service Fail(const FakePod& pod, const std::string& why);

  FakePods& pods_;
  // The container it served, by node and ids.
  std::map<std::pair<std::string, std::vector<std::string>>, ContainerId> served_;
};

}  // namespace tranche::fakes
