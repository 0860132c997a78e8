#include "bench/gang/cluster.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <numeric>

#include "bench/fill/draws.h"
#include "fmt/format.h"
#include "topology/base/check.h"

namespace tranche::bench {

int GangTree::NodesOf(GangLevel level) const {
  switch (level) {
    case GangLevel::kClique:
      break;
    case GangLevel::kRack:
      return nodes;
    case GangLevel::kBlock:
      return nodes * racks;
    case GangLevel::kZone:
      return nodes * racks * blocks;
  }
  return 1;
}

absl::StatusOr<GangScene> ParseGangScene(const std::string& text) {
  GangScene scene{.name = text};
  const std::size_t dash = std::min(text.find('-'), text.size());
  const std::string others = text.substr(0, dash);
  bool known = true;
  if (others == "random") {
    scene.others = GangScene::Others::kRandom;
  } else if (others == "packed") {
    scene.others = GangScene::Others::kPacked;
  } else {
    known = others == "empty";
  }
  const char* end = text.data() + text.size();
  const auto [rest, error] =
      std::from_chars(std::min(text.data() + dash + 1, end), end, scene.gpus);
  if (!known || error != std::errc() || rest != end || scene.gpus < 1 || scene.gpus > kGangGpus) {
    return absl::InvalidArgumentError(fmt::format(
        "--scene: expected empty, random or packed, \"-\" and 1 to {} GPUs, found \"{}\"",
        kGangGpus, text));
  }
  return scene;
}

GangCluster::GangCluster(const GangTree& tree, const GangScene& scene, double share, uint64_t seed)
    : free_(static_cast<std::size_t>(tree.Nodes()), kGangGpus), gpus_(scene.gpus) {
  for (int i = 0; i < tree.Nodes(); ++i) {
    GangNode node;
    for (const GangLevel level : {GangLevel::kRack, GangLevel::kBlock, GangLevel::kZone}) {
      node.domain[static_cast<std::size_t>(level)] = i / tree.NodesOf(level);
    }
    nodes_.push_back(node);
  }
  if (scene.others != GangScene::Others::kNone) {
    fill::Draws draws(seed);
    std::vector<std::size_t> slots;  // a node for each of its GPUs
    std::vector<std::size_t> order(free_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    draws.Shuffle(order);
    for (const std::size_t node : order) slots.insert(slots.end(), kGangGpus, node);
    if (scene.others == GangScene::Others::kRandom) draws.Shuffle(slots);
    const auto taken =
        static_cast<std::size_t>(std::llround(share * static_cast<double>(slots.size())));
    for (std::size_t i = 0; i < taken; ++i) --free_[slots[i]];
  }
  left_ = free_;
}

int GangCluster::Seats(std::size_t node, int, int most) {
  return std::min(most, left_[node] / gpus_);
}

void GangCluster::Take(std::size_t node, int, int count) {
  left_[node] -= count * gpus_;
  TRANCHE_CHECK_GE(left_[node], 0);
}

const std::vector<GangNode>& GangCluster::nodes() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) nodes_[i].cost = free_[i];
  return nodes_;
}

void GangCluster::Start(const std::vector<std::size_t>& members) {
  for (const std::size_t node : members) {
    free_[node] -= gpus_;
    TRANCHE_CHECK_GE(free_[node], 0);
  }
}

void GangCluster::End(const std::vector<std::size_t>& members) {
  for (const std::size_t node : members) {
    free_[node] += gpus_;
    TRANCHE_CHECK_LE(free_[node], kGangGpus);
  }
}

std::vector<int> GangCluster::SeatsBy(GangLevel level) const {
  std::vector<int> seats;
  for (std::size_t i = 0; i < free_.size(); ++i) {
    const auto domain = static_cast<std::size_t>(nodes_[i].domain[static_cast<std::size_t>(level)]);
    seats.resize(std::max(seats.size(), domain + 1));
    seats[domain] += free_[i] / gpus_;
  }
  std::sort(seats.begin(), seats.end(), std::greater<>());
  return seats;
}

}  // namespace tranche::bench
