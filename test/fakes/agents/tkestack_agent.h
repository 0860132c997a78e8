// gpu-manager of tkestack: of the node's Pending, unassigned pods, oldest first, the first
// container it has not served that asks for this amount of cores. For parts of a card it chooses
// the card itself, from its own books, and fails the admission where the scheduler foretold
// another; whole cards it chooses freely and writes down.
// Source: request-dialects section 8.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/fakes/agents/fake_cluster.h"
#include "test/fakes/agents/node_agent.h"

namespace tranche::fakes {

class TkestackAgent : public NodeAgent {
 public:
  explicit TkestackAgent(FakePods& pods) : pods_(pods) {}

  std::vector<std::string> resources() const override { return {"tencent.com/vcuda-core"}; }
  Service Allocate(const DeviceCall& call) override;
  Service PreStart(const DeviceCall& call, const ContainerId& owner) override;

 private:
  // What it gave.
  struct Record {
    ContainerId owner;
    std::string node;
    Grant grant;
  };
  struct CardState {
    int minor = 0;
    int64_t free_cores = 100;
    int64_t free_memory = 0;
    int processes = 0;
  };
  std::vector<CardState> Cards(const FakeNode& node) const;
  Service Serve(const FakePod& pod, const FakeNode& node, const FakeContainer& container,
                int index);
  // The card for a part of one; -1: none has room.
  int PickPart(const FakeNode& node, int64_t cores, int64_t memory_mib) const;
  // Whole idle cards; empty: too few.
  std::vector<int> PickWhole(const FakeNode& node, std::size_t count) const;

  FakePods& pods_;
  std::vector<Record> records_;
};

}  // namespace tranche::fakes
