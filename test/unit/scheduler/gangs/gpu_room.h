// Nodes with free GPUs for the gang planner: members of a kind ask for so many GPUs of one node.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "scheduler/gangs/gang_plan.h"
#include "topology/base/check.h"

namespace tranche::test {

class GpuRoom : public GangRoom {
 public:
  // By node; by kind.
  GpuRoom(std::vector<int> free, std::vector<int> asks)
      : free_(std::move(free)), asks_(std::move(asks)), left_(free_) {}

  int Seats(std::size_t node, int kind, int most) override {
    return std::min(most, left_[node] / Ask(kind));
  }
  void Take(std::size_t node, int kind, int count) override {
    left_[node] -= count * Ask(kind);
    TRANCHE_CHECK_GE(left_[node], 0);
  }
  void Reset() override { left_ = free_; }

  const std::vector<int>& left() const { return left_; }

 private:
  int Ask(int kind) const { return asks_[static_cast<std::size_t>(kind)]; }

  std::vector<int> free_;
  std::vector<int> asks_;
  std::vector<int> left_;
};

}  // namespace tranche::test
