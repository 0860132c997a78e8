#include "bench/gang/simulation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <queue>
#include <set>
#include <utility>

#include "bench/fill/draws.h"

namespace tranche::bench {
namespace {

constexpr int kSmallest = 2;
constexpr int kLargest = 64;

// The fewest domains that hold so many; all of them where they do not.
int Fewest(const std::vector<int>& seats, int members) {
  int domains = 0;
  for (const int here : seats) {
    if (members <= 0) break;
    members -= here;
    ++domains;
  }
  return domains;
}

class Run {
 public:
  Run(const GangTree& tree, GangCluster cluster, const GangPolicy& policy)
      : tree_(tree), policy_(policy), cluster_(std::move(cluster)) {}

  void Arrive(const GangArrival& gang, bool measured) {
    while (!running_.empty() && running_.top().leaves <= gang.at) {
      cluster_.End(running_.top().nodes);
      running_.pop();
    }
    const auto begin = std::chrono::steady_clock::now();
    std::optional<std::vector<std::size_t>> nodes = policy_(cluster_, gang.members);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    figures_.seconds += took.count();
    figures_.longest_seconds = std::max(figures_.longest_seconds, took.count());
    ++figures_.plans;
    figures_.arrived += measured;
    if (!nodes) return;
    if (measured) Note(*nodes);
    cluster_.Start(*nodes);
    running_.push({gang.leaves, started_++, *std::move(nodes)});
  }

  const GangFigures& figures() const { return figures_; }

 private:
  struct Running {
    double leaves = 0;
    int64_t number = 0;
    std::vector<std::size_t> nodes;
    bool operator>(const Running& other) const {
      return std::pair(leaves, number) > std::pair(other.leaves, other.number);
    }
  };

  int Spans(const std::vector<std::size_t>& nodes, GangLevel level) const {
    std::set<std::size_t> domains;
    for (const std::size_t node : nodes) {
      domains.insert(node / static_cast<std::size_t>(tree_.NodesOf(level)));
    }
    return static_cast<int>(domains.size());
  }

  int SeatsWhenEmpty(GangLevel level) const {
    return tree_.NodesOf(level) * (kGangGpus / cluster_.gpus());
  }

  // Before it starts.
  void Note(const std::vector<std::size_t>& nodes) {
    const auto members = static_cast<int>(nodes.size());
    const auto ratios = [&](GangLevel level, double& to_empty, double& to_now) {
      const double spans = Spans(nodes, level);
      const int here = SeatsWhenEmpty(level);
      to_empty += spans / ((members + here - 1) / here);
      to_now += spans / Fewest(cluster_.SeatsBy(level), members);
    };
    ++figures_.placed;
    ratios(GangLevel::kRack, figures_.racks_to_empty, figures_.racks_to_now);
    ratios(GangLevel::kBlock, figures_.blocks_to_empty, figures_.blocks_to_now);
    for (const GangLevel level : {GangLevel::kRack, GangLevel::kBlock, GangLevel::kZone}) {
      if (SeatsWhenEmpty(level) < members) continue;
      ++figures_.levelled;
      figures_.met += Spans(nodes, level) == 1;
      figures_.could += cluster_.SeatsBy(level).front() >= members;
      break;
    }
  }

  const GangTree& tree_;
  const GangPolicy& policy_;
  GangCluster cluster_;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
  int64_t started_ = 0;
  GangFigures figures_;
};

}  // namespace

std::vector<GangArrival> DrawGangs(std::size_t count, double load, double seats, uint64_t seed) {
  // Every quantity has a sequence of its own, so that one seed means the same fortune at every
  // load.
  fill::Draws gaps(seed * 3);
  fill::Draws sizes(seed * 3 + 1);
  fill::Draws lives(seed * 3 + 2);
  const double span = std::log(static_cast<double>(kLargest) / kSmallest);
  const double mean = (kLargest - kSmallest) / span;
  std::vector<GangArrival> gangs;
  double now = 0;
  for (std::size_t i = 0; i < count; ++i) {
    now += gaps.Exponential() * mean / (load * seats);
    constexpr uint64_t kSteps = uint64_t{1} << 32;
    const double point = static_cast<double>(sizes.Below(kSteps)) / static_cast<double>(kSteps);
    gangs.push_back({.at = now,
                     .leaves = now + lives.Exponential(),
                     .members = static_cast<int>(std::lround(kSmallest * std::exp(point * span)))});
  }
  return gangs;
}

GangFigures SimulateGangs(const GangTree& tree, const std::vector<GangArrival>& arrivals,
                          GangCluster cluster, const GangPolicy& policy) {
  Run run(tree, std::move(cluster), policy);
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    run.Arrive(arrivals[i], i >= arrivals.size() / 10);
  }
  return run.figures();
}

}  // namespace tranche::bench
