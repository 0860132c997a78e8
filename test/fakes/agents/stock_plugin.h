// NVIDIA's own device plugin and the container runtime's hook: whole cards, chosen by the kubelet
// among ids whose cards nobody foresees. A container that asks for none sees what its environment
// says; here that is a part of a card that some other pod was given and only holds.
//
// Source: node-inventory section 1, request-dialects section 11.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "test/fakes/agents/fake_cluster.h"
#include "test/fakes/agents/node_agent.h"

namespace tranche::fakes {

class StockPlugin : public NodeAgent {
 public:
  StockPlugin(FakePods& pods, uint64_t seed);
  std::vector<std::string> resources() const override { return {"nvidia.com/gpu"}; }
  Service Allocate(const DeviceCall& call) override;
  // What a container sees by its environment: refused where nobody holds that card for it.
  Service Hook(const std::string& node, const ContainerId& owner) override;
  // Pods that hold a card and went while a pod that saw the card was still there.
  int early_ends() const override { return early_ends_; }

 private:
  // The card that stands behind each id of the node.
  const std::map<std::string, int>& CardsOf(const FakeNode& node);

  FakePods& pods_;
  std::mt19937_64 random_;
  std::map<std::string, std::map<std::string, int>> cards_;  // node -> id -> card
  int early_ends_ = 0;
};

}  // namespace tranche::fakes
