// volcano-vgpu-device-plugin: looks through the pods of the whole cluster for one that was given
// this node and has just as many devices left as it is called for, and takes the oldest.
//
// It does not ask whether the pod still lives, and a pod with two GPU containers never matches.
// Source: request-dialects section 6.
#pragma once

#include <string>
#include <vector>

#include "test/fakes/agents/fake_cluster.h"
#include "test/fakes/agents/node_agent.h"

namespace tranche::fakes {

class VolcanoAgent : public NodeAgent {
 public:
  // `memory_factor`: MiB of one unit of memory in the list.
  explicit VolcanoAgent(FakePods& pods, int64_t memory_factor = 1)
      : pods_(pods), memory_factor_(memory_factor) {}

  std::vector<std::string> resources() const override { return {"volcano.sh/vgpu-number"}; }
  Service Allocate(const DeviceCall& call) override;

 private:
  FakePods& pods_;
  const int64_t memory_factor_;
};

}  // namespace tranche::fakes
