// gpushare-device-plugin: of the node's Pending pods that are not assigned, oldest first, the first
// whose containers together ask for as much as this one call.
//
// Where none does, a node of one card gives that card to whomever it is; others answer with an
// environment the container cannot start with. It never fails an admission.
// Source: request-dialects section 7.
#pragma once

#include <string>
#include <vector>

#include "test/fakes/agents/fake_cluster.h"
#include "test/fakes/agents/node_agent.h"

namespace tranche::fakes {

class GpushareAgent : public NodeAgent {
 public:
  // `unit_mib`: 1024 (--memory-unit=GiB) or 1.
  explicit GpushareAgent(FakePods& pods, int64_t unit_mib = 1024)
      : pods_(pods), unit_mib_(unit_mib) {}

  std::vector<std::string> resources() const override { return {"aliyun.com/gpu-mem"}; }
  Service Allocate(const DeviceCall& call) override;

 private:
  FakePods& pods_;
  const int64_t unit_mib_;
};

}  // namespace tranche::fakes
