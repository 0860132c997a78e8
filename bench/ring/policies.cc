#include "bench/ring/policies.h"

#include <utility>

#include "topology/machine/machine_table.h"

namespace tranche::bench {
namespace {

GpuSet Lowest(GpuSet free, int count) {
  GpuSet set;
  for (const int gpu : free) {
    if (set.size() < count) set.Add(gpu);
  }
  return set;
}

class Baseline : public RingPolicy {
 public:
  explicit Baseline(const RingMatrix& matrix) : matrix_(matrix) {}
  RingOrder Choose(GpuSet free, int count, bool /*sensitive*/) override {
    return matrix_.BestRing(Lowest(free, count));
  }

 private:
  const RingMatrix& matrix_;
};

// Sockets are the two halves of the machine.
class TopoAware : public RingPolicy {
 public:
  explicit TopoAware(const RingMatrix& matrix) : matrix_(matrix), baseline_(matrix) {}
  RingOrder Choose(GpuSet free, int count, bool sensitive) override {
    const GpuSet all = GpuSet::FirstOf(matrix_.size());
    const GpuSet first = GpuSet::FirstOf(matrix_.size() / 2);
    for (const GpuSet socket : {first, all - first}) {
      if (count >= socket.size() || (free & socket).size() < count) continue;
      RingOrder order;
      for (const int gpu : Lowest(free & socket, count)) order.push_back(gpu);
      return order;
    }
    return baseline_.Choose(free, count, sensitive);
  }

 private:
  const RingMatrix& matrix_;
  Baseline baseline_;
};

class Greedy : public RingPolicy {
 public:
  explicit Greedy(const RingMatrix& matrix) : matrix_(matrix) {}
  RingOrder Choose(GpuSet free, int count, bool /*sensitive*/) override {
    double most = -1;
    GpuSet best;
    for (const GpuSet set : matrix_.Sets(free, count)) {
      const double bandwidth = matrix_.RingBandwidth(matrix_.BestRing(set));
      if (bandwidth <= most) continue;
      most = bandwidth;
      best = set;
    }
    return matrix_.BestRing(best);
  }

 private:
  const RingMatrix& matrix_;
};

// MAPA, Ranganath et al., SC'21.
class Preserve : public RingPolicy {
 public:
  explicit Preserve(const RingMatrix& matrix) : matrix_(matrix) {}
  RingOrder Choose(GpuSet free, int count, bool sensitive) override {
    return sensitive ? MostEffective(free, count) : LeastLost(free, count);
  }

 private:
  RingOrder MostEffective(GpuSet free, int count) const {
    RingOrder best;
    for (const GpuSet set : matrix_.Sets(free, count)) {
      ForEachRing(set, [&](const RingOrder& ring) {
        if (best.empty() || Effective(ring) > Effective(best)) best = ring;
      });
    }
    return best;
  }
  RingOrder LeastLost(GpuSet free, int count) const {
    std::pair<double, double> most = {-1, -1};
    GpuSet best;
    for (const GpuSet set : matrix_.Sets(free, count)) {
      const std::pair<double, double> left = {LeftOver(free - set),
                                              matrix_.RingBandwidth(matrix_.BestRing(set))};
      if (left <= most) continue;
      most = left;
      best = set;
    }
    return matrix_.BestRing(best);
  }
  // What the authors fitted to measurements: of double NVLinks, single ones and PCIe in a ring.
  double Effective(const RingOrder& ring) const {
    double x = 0;
    double y = 0;
    double z = 0;
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const double link = matrix_.bandwidth(ring[i], ring[(i + 1) % ring.size()]);
      double& kind = RingMatrix::IsPcie(link) ? z : link > matrix_.one_nvlink() ? x : y;
      kind += 1;
    }
    return 16.3967 * x + 4.5368 * y + 1.5562 * z - 20.6948 / (x + 1) - 9.4675 / (y + 1) +
           7.6151 / (z + 1) - 7.9733 * x * y + 12.7332 * y * z - 4.1957 * x * z -
           8.4134 / (x * y + 1) + 62.8513 / (y * z + 1) + 27.4183 / (x * z + 1) -
           5.1141 * x * y * z - 46.9739 / (x * y * z + 1);
  }
  double LeftOver(GpuSet rest) const {
    double sum = 0;
    for (const int left : rest) {
      for (const int right : rest) {
        const double link = matrix_.bandwidth(left, right);
        if (left < right && !RingMatrix::IsPcie(link)) sum += link;
      }
    }
    return sum;
  }

  const RingMatrix& matrix_;
};

// The product's own table.
class Tranche : public RingPolicy {
 public:
  explicit Tranche(const RingMatrix& matrix) : matrix_(matrix), table_(matrix.AsMachine()) {}
  RingOrder Choose(GpuSet free, int count, bool sensitive) override {
    SetRules rules;
    rules.goal = sensitive ? SetGoal::kConnected : SetGoal::kPreserve;
    return matrix_.BestRing(table_.Best(free, count, rules)->set);
  }

 private:
  const RingMatrix& matrix_;
  MachineTable table_;
};

}  // namespace

std::unique_ptr<RingPolicy> MakeRingPolicy(std::string_view name, const RingMatrix& matrix) {
  if (name == "baseline") return std::make_unique<Baseline>(matrix);
  if (name == "topoaware") return std::make_unique<TopoAware>(matrix);
  if (name == "greedy") return std::make_unique<Greedy>(matrix);
  if (name == "preserve") return std::make_unique<Preserve>(matrix);
  if (name == "tranche") return std::make_unique<Tranche>(matrix);
  return nullptr;
}

std::string RingPolicyNames() { return "baseline, topoaware, greedy, preserve, tranche"; }

}  // namespace tranche::bench
