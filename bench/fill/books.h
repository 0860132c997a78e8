// The cluster as the benchmark keeps it, the judge of every policy: what is free on which node and
// GPU, who fits where, and whether a placement may stand.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "bench/fill/trace.h"

namespace tranche::bench::fill {

struct Placement {
  int node = -1;
  uint32_t gpus = 0;  // bit i: GPU i; each gives the task's milli
};

// What is left of a node.
struct NodeBook {
  int64_t cpu = 0;
  int64_t memory = 0;
  int model = -1;
  int gpus = 0;
  std::array<int16_t, kMaxGpus> free{};         // milli
  int64_t idle = 0;                             // sum of free
  std::array<int16_t, kMaxGpus + 1> running{};  // tasks by GPU count; those that share count at 0
  int tasks = 0;                                // that run here, with GPUs or without

  std::span<const int16_t> levels() const { return {free.data(), static_cast<std::size_t>(gpus)}; }
  // CPU and memory, which are kube-scheduler's part.
  bool HasHostRoom(const TaskType& task) const { return cpu >= task.cpu && memory >= task.memory; }
  bool Fits(const TaskType& task) const;
  // The tightest GPU that holds the task, lowest number first among equals. Requires: Fits.
  int Tightest(const TaskType& task) const;
  // The lowest-numbered fully free GPUs. Requires: Fits, and the task asks for whole ones.
  uint32_t FirstIdle(int count) const;
  bool AllIdle() const { return idle == gpus * kWhole; }
};

class Books {
 public:
  // `order[i]` is the machine that is node i.
  Books(const Fleet& fleet, std::span<const int> order);

  int size() const { return static_cast<int>(nodes_.size()); }
  const NodeBook& node(int id) const { return nodes_[static_cast<std::size_t>(id)]; }
  // Changes with every change of the node; never 0.
  uint32_t version(int id) const { return versions_[static_cast<std::size_t>(id)]; }
  int64_t capacity() const { return capacity_; }  // milli
  int64_t used() const { return used_; }          // milli

  bool FitsSomewhere(const TaskType& task) const;
  // Error: Internal, saying what would be wrong with it.
  absl::Status Check(const TaskType& task, const Placement& placement) const;
  // Requires: Check.
  void Take(const TaskType& task, const Placement& placement);
  // Requires: it was taken.
  void GiveBack(const TaskType& task, const Placement& placement);

 private:
  void Move(const TaskType& task, const Placement& placement, int sign);

  std::vector<NodeBook> nodes_;
  std::vector<uint32_t> versions_;
  int64_t capacity_ = 0;
  int64_t used_ = 0;
};

}  // namespace tranche::bench::fill
