// Volcano's first GPU sharing (volcano.sh/gpu-memory, volcano.sh/gpu-number): of the node's Pending
// pods that are not assigned, oldest first, the first with an app container of this amount.
//
// The whole pod counts as assigned after one call: a second GPU container finds nobody.
// Source: request-dialects sections 2, 6.
#pragma once

#include <string>
#include <vector>

#include "test/fakes/agents/fake_cluster.h"
#include "test/fakes/agents/node_agent.h"

namespace tranche::fakes {

class VolcanoOldAgent : public NodeAgent {
 public:
  // `unit_mib`: of one unit of gpu-memory.
  explicit VolcanoOldAgent(FakePods& pods, int64_t unit_mib = 1)
      : pods_(pods), unit_mib_(unit_mib) {}

  std::vector<std::string> resources() const override {
    return {"volcano.sh/gpu-memory", "volcano.sh/gpu-number"};
  }
  Service Allocate(const DeviceCall& call) override;

 private:
  FakePods& pods_;
  const int64_t unit_mib_;
};

}  // namespace tranche::fakes
