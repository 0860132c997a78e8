#include "bench/fill/books.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "topology/base/check.h"

namespace tranche::bench::fill {

bool NodeBook::Fits(const TaskType& task) const {
  if (!HasHostRoom(task)) return false;
  if (task.gpus == 0) return true;
  if (model < 0 || (task.models >> model & 1) == 0) return false;
  const auto holding =
      std::ranges::count_if(levels(), [&](int16_t level) { return level >= task.milli; });
  return holding >= task.gpus;
}

int NodeBook::Tightest(const TaskType& task) const {
  int best = -1;
  for (int i = 0; i < gpus; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (free[at] < task.milli) continue;
    if (best < 0 || free[at] < free[static_cast<std::size_t>(best)]) best = i;
  }
  return best;
}

uint32_t NodeBook::FirstIdle(int count) const {
  uint32_t chosen = 0;
  for (int i = 0; i < gpus && count > 0; ++i) {
    if (free[static_cast<std::size_t>(i)] < kWhole) continue;
    chosen |= uint32_t{1} << i;
    --count;
  }
  return chosen;
}

Books::Books(const Fleet& fleet, std::span<const int> order)
    : versions_(order.size(), 1), capacity_(fleet.milli()) {
  for (const int id : order) {
    const Machine& machine = fleet.machines[static_cast<std::size_t>(id)];
    NodeBook node;
    node.cpu = machine.cpu;
    node.memory = machine.memory;
    node.model = machine.model;
    node.gpus = machine.gpus;
    std::fill_n(node.free.begin(), machine.gpus, static_cast<int16_t>(kWhole));
    node.idle = machine.gpus * kWhole;
    nodes_.push_back(node);
  }
}

bool Books::FitsSomewhere(const TaskType& task) const {
  return std::ranges::any_of(nodes_, [&](const NodeBook& node) { return node.Fits(task); });
}

absl::Status Books::Check(const TaskType& task, const Placement& placement) const {
  const auto wrong = [&](std::string_view expected, std::string_view found) {
    return absl::InternalError(fmt::format(
        "placement on node {} for {} GPUs of {} milli, {} milli CPU, {} MiB: expected {}, found {}",
        placement.node, task.gpus, task.milli, task.cpu, task.memory, expected, found));
  };
  if (placement.node < 0 || placement.node >= size()) return wrong("a known node", "another");
  const NodeBook& book = node(placement.node);
  if (!book.HasHostRoom(task)) {
    return wrong("room", fmt::format("{} milli CPU and {} MiB", book.cpu, book.memory));
  }
  if (std::popcount(placement.gpus) != task.gpus) {
    return wrong("as many GPUs", fmt::format("{}", std::popcount(placement.gpus)));
  }
  if (task.gpus == 0) return absl::OkStatus();
  if (placement.gpus >> book.gpus != 0) return wrong("a GPU of the node", "another");
  if ((task.models >> book.model & 1) == 0) return wrong("a model it allows", "another");
  for (int i = 0; i < book.gpus; ++i) {
    const int16_t level = book.free[static_cast<std::size_t>(i)];
    if ((placement.gpus >> i & 1) == 0 || level >= task.milli) continue;
    return wrong("room", fmt::format("{} milli on GPU {}", level, i));
  }
  return absl::OkStatus();
}

void Books::Move(const TaskType& task, const Placement& placement, int sign) {
  const auto at = static_cast<std::size_t>(placement.node);
  NodeBook& node = nodes_[at];
  node.cpu -= sign * task.cpu;
  node.memory -= sign * task.memory;
  node.tasks += sign;
  if (task.gpus > 0) {
    int16_t& running = node.running[static_cast<std::size_t>(task.shares() ? 0 : task.gpus)];
    running = static_cast<int16_t>(running + sign);
  }
  for (int i = 0; i < node.gpus; ++i) {
    if ((placement.gpus >> i & 1) == 0) continue;
    int16_t& level = node.free[static_cast<std::size_t>(i)];
    level = static_cast<int16_t>(level - sign * task.milli);
    TRANCHE_CHECK_GE(level, 0);
    TRANCHE_CHECK_LE(level, kWhole);
  }
  node.idle -= sign * task.total();
  used_ += sign * task.total();
  ++versions_[at];
}

void Books::Take(const TaskType& task, const Placement& placement) { Move(task, placement, 1); }

void Books::GiveBack(const TaskType& task, const Placement& placement) {
  Move(task, placement, -1);
}

}  // namespace tranche::bench::fill
