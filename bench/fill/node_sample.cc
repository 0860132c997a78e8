#include "bench/fill/node_sample.h"

#include <algorithm>
#include <cstdint>

namespace tranche::bench::fill {
namespace {

// What whole cards were asked for in kube-scheduler's own words; parts of cards it does not count.
int64_t CardsAsked(const NodeBook& node) {
  int64_t cards = 0;
  for (std::size_t count = 1; count < node.running.size(); ++count) {
    cards += static_cast<int64_t>(count) * node.running[count];
  }
  return cards;
}

bool Passes(const NodeBook& node, const TaskType& task) {
  if (!node.HasHostRoom(task)) return false;
  return task.gpus == 0 || task.shares() || CardsAsked(node) + task.gpus <= node.gpus;
}

}  // namespace

int NodesToFind(int nodes, int percent) {
  constexpr int kLeast = 100;
  if (nodes < kLeast || percent >= NodeSample::kAll) return nodes;
  if (percent == NodeSample::kByDefault) percent = std::max(50 - nodes / 125, 5);
  return std::max(nodes * percent / 100, kLeast);
}

std::vector<int> NodeSample::Next(const Books& books, const TaskType& task) {
  const int nodes = books.size();
  const auto most = static_cast<std::size_t>(NodesToFind(nodes, percent_));
  std::vector<int> passed;
  int looked = 0;
  for (; looked < nodes && passed.size() < most; ++looked) {
    const int id = (next_ + looked) % nodes;
    if (Passes(books.node(id), task)) passed.push_back(id);
  }
  saw_all_ = looked == nodes;
  next_ = (next_ + looked) % nodes;
  return passed;
}

}  // namespace tranche::bench::fill
