#include "topology/machine/ring.h"

#include <algorithm>
#include <utility>

namespace tranche {
namespace {

// Held and Karp's table has 2^(n-1) x n entries: 24,576 for 12 GPUs;
// larger sets take the nearest neighbour each time.
constexpr int kMostExact = 12;
constexpr int kNone = -1;

// Rings through `gpus` that use no hop of fewer than `least` NVLinks, by Held and Karp.
class RingSearch {
 public:
  RingSearch(const Machine& machine, const std::vector<int>& gpus)
      : size_(static_cast<int>(gpus.size())), others_((1U << (gpus.size() - 1)) - 1) {
    for (const int left : gpus) {
      for (const int right : gpus) hops_.push_back(machine.link(left, right).nvlinks);
    }
    home_.resize((others_ + 1) * gpus.size());
  }

  // Links of the best such ring; kNone: there is none.
  int Solve(int least) {
    least_ = least;
    for (unsigned rest = 0; rest <= others_; ++rest) {
      for (int at = 0; at < size_; ++at) {
        if (!Holds(rest, at)) Home(rest, at) = Way(rest, at);
      }
    }
    return Home(others_, 0);
  }

  // Positions in order, the first of equal rings. Requires: Solve found one.
  std::vector<int> Order() {
    std::vector<int> order = {0};
    for (unsigned rest = others_; rest != 0;) {
      const int at = order.back();
      int next = 1;
      while (!Holds(rest, next) || Via(rest, at, next) != Home(rest, at)) ++next;
      order.push_back(next);
      rest &= ~Bit(next);
    }
    return order;
  }

 private:
  static unsigned Bit(int at) { return 1U << (at - 1); }
  // The start, position 0, is in no rest.
  static bool Holds(unsigned rest, int at) { return at > 0 && (rest & Bit(at)) != 0; }
  int Hop(int left, int right) const {
    return hops_[static_cast<std::size_t>(left * size_ + right)];
  }
  // Most links on a way from `at` through all of `rest` and back to the start.
  int& Home(unsigned rest, int at) {
    return home_[rest * static_cast<std::size_t>(size_) + static_cast<std::size_t>(at)];
  }
  int Via(unsigned rest, int at, int next) {
    const int home = Home(rest & ~Bit(next), next);
    return Hop(at, next) < least_ || home == kNone ? kNone : Hop(at, next) + home;
  }
  int Way(unsigned rest, int at) {
    if (rest == 0) return Hop(at, 0) >= least_ || at == 0 ? Hop(at, 0) : kNone;
    int most = kNone;
    for (int next = 1; next < size_; ++next) {
      if (Holds(rest, next)) most = std::max(most, Via(rest, at, next));
    }
    return most;
  }

  int size_;
  unsigned others_;  // all but the start
  int least_ = 0;
  std::vector<int> hops_;
  std::vector<int> home_;
};

// Numbers of links between two of the set, most first, and 0.
std::vector<int> Strengths(const Machine& machine, const std::vector<int>& gpus) {
  std::vector<int> strengths = {0};
  for (const int left : gpus) {
    for (const int right : gpus) {
      if (left < right) strengths.push_back(machine.link(left, right).nvlinks);
    }
  }
  std::sort(strengths.rbegin(), strengths.rend());
  strengths.erase(std::unique(strengths.begin(), strengths.end()), strengths.end());
  return strengths;
}

Ring ExactRing(const Machine& machine, const std::vector<int>& gpus) {
  RingSearch search(machine, gpus);
  for (const int least : Strengths(machine, gpus)) {
    const int links = search.Solve(least);
    if (links == kNone) continue;
    Ring ring = {.weakest = least, .links = links, .order = {}};
    for (const int at : search.Order()) ring.order.push_back(gpus[static_cast<std::size_t>(at)]);
    return ring;
  }
  return {};  // not reached: a ring of hops of no links always exists
}

// On to the neighbour with most links each time.
Ring GreedyRing(const Machine& machine, GpuSet set) {
  Ring ring;
  int at = set.first();
  ring.order.push_back(at);
  set.Remove(at);
  ring.weakest = kMaxNvlinks;
  const auto go = [&](int next) {
    ring.weakest = std::min<int>(ring.weakest, machine.link(at, next).nvlinks);
    ring.links += machine.link(at, next).nvlinks;
    at = next;
  };
  while (!set.empty()) {
    int next = set.first();
    for (const int gpu : set) {
      if (machine.link(at, gpu).nvlinks > machine.link(at, next).nvlinks) next = gpu;
    }
    set.Remove(next);
    ring.order.push_back(next);
    go(next);
  }
  go(ring.order.front());
  return ring;
}

}  // namespace

Ring BestRing(const Machine& machine, GpuSet set) {
  std::vector<int> gpus;
  for (const int gpu : set) gpus.push_back(gpu);
  if (gpus.size() < 2) return {.weakest = 0, .links = 0, .order = std::move(gpus)};
  return set.size() > kMostExact ? GreedyRing(machine, set) : ExactRing(machine, gpus);
}

}  // namespace tranche
