#include "bench/fill/baselines.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "bench/fill/draws.h"

namespace tranche::bench::fill {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"random",  "dotprod", "clustering",
                                                    "packing", "bestfit", "fgd"};
// What CPU and GPU amounts are measured by: the largest node there is in OpenB.
constexpr double kMostCpu = 128'000;
constexpr double kMostGpu = 8'000;

uint32_t Bit(int gpu) { return uint32_t{1} << gpu; }

// Where all but Random and FGD put a task inside a node that fits.
uint32_t UsualGpus(const TaskType& task, const NodeBook& node) {
  return task.shares() ? Bit(node.Tightest(task)) : node.FirstIdle(task.gpus);
}

int Floor(double score) { return static_cast<int>(std::floor(score)); }

int BestFit(const TaskType& task, const NodeBook& node) {
  const double cpu = static_cast<double>(node.cpu - task.cpu) / kMostCpu;
  const double gpu = static_cast<double>(node.idle - task.total()) / kMostGpu;
  return Floor(100 * (1 - 0.5 * cpu - 0.5 * gpu));
}

int DotProd(const TaskType& task, const NodeBook& node) {
  const double cpu = static_cast<double>(node.cpu) / kMostCpu * static_cast<double>(task.cpu);
  const double gpu = static_cast<double>(node.idle) / kMostGpu * static_cast<double>(task.total());
  return Floor(100 * (1 - 0.5 * (cpu / kMostCpu + gpu / kMostGpu)));
}

int GpuPacking(const TaskType& task, const NodeBook& node) {
  if (task.gpus == 0) return 0;
  if (node.AllIdle()) return std::max(33 - node.gpus, node.gpus);
  std::array<int16_t, kMaxGpus> levels = node.free;
  const auto end = std::remove_if(levels.begin(), levels.begin() + node.gpus,
                                  [&](int16_t level) { return level < task.milli; });
  std::sort(levels.begin(), end);
  int idle = 0;
  int64_t milli = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(task.gpus); ++i) {
    idle += levels[i] == kWhole;
    milli += levels[i];
  }
  // Free percent are milli by ten, and a tenth of them counts.
  return idle > 0 ? std::max(50 - idle, 33)
                  : std::max(Floor(100 - static_cast<double>(milli) / 100), 50);
}

int GpuClustering(const TaskType& task, const NodeBook& node) {
  if (task.gpus == 0) return 0;
  const int16_t same = node.running[static_cast<std::size_t>(task.shares() ? 0 : task.gpus)];
  int all = 0;
  for (const int16_t running : node.running) all += running;
  int base = 0;
  if (same > 0) {
    base = same == all ? 75 : 50;
  } else if (all == 0) {
    base = 25;
  }
  return Floor(base + 25 * (1 - static_cast<double>(node.idle) / kMostGpu));
}

struct Offer {
  int score = -1;  // below 0: does not fit
  uint32_t gpus = 0;
};

// A policy whose score depends on the node and the task's type alone: it is computed again only
// for nodes that changed.
class ScoredPlacer : public Placer {
 public:
  explicit ScoredPlacer(const Variant& variant) : variant_(variant) {}

  absl::StatusOr<std::optional<Placement>> Place(const Books& books,
                                                 const Arrival& arrival) override {
    const auto nodes = static_cast<std::size_t>(books.size());
    if (known_.empty()) known_.resize(nodes * variant_.types.size());
    const auto type = static_cast<std::size_t>(arrival.type);
    Known* const row = &known_[type * nodes];
    const TaskType& task = variant_.types[type];
    const Offer* best = nullptr;
    int at = -1;
    for (int id = 0; id < books.size(); ++id) {
      Known& known = row[id];
      if (known.version != books.version(id)) {
        known = {books.version(id), books.node(id).Fits(task) ? Score(books, id, task) : Offer()};
      }
      if (known.offer.score < 0 || (best != nullptr && known.offer.score <= best->score)) continue;
      best = &known.offer;
      at = id;
    }
    if (best == nullptr) return std::nullopt;
    return Placement{at, best->gpus};
  }

  absl::Status Leave(const Arrival& /*task*/, Instant /*now*/) override { return absl::OkStatus(); }

 private:
  struct Known {
    uint32_t version = 0;
    Offer offer;
  };
  // Requires: the task fits there.
  virtual Offer Score(const Books& books, int id, const TaskType& task) = 0;

  const Variant& variant_;
  std::vector<Known> known_;  // by type, then node
};

class FormulaPlacer final : public ScoredPlacer {
 public:
  using Formula = int (*)(const TaskType& task, const NodeBook& node);
  FormulaPlacer(const Variant& variant, Formula formula)
      : ScoredPlacer(variant), formula_(formula) {}

 private:
  Offer Score(const Books& books, int id, const TaskType& task) override {
    const NodeBook& node = books.node(id);
    // A negative score, possible on nodes larger than the measures, still means that it fits.
    return {std::max(formula_(task, node), 0), UsualGpus(task, node)};
  }

  Formula formula_;
};

class FgdPlacer final : public ScoredPlacer {
 public:
  FgdPlacer(const Variant& variant, const TargetWorkload& target)
      : ScoredPlacer(variant), target_(target) {}

 private:
  Offer Score(const Books& books, int id, const TaskType& task) override {
    const NodeBook& node = books.node(id);
    const int64_t before = Before(books, id);
    if (!task.shares()) {
      const uint32_t gpus = node.FirstIdle(task.gpus);
      return {Sigmoid(before - After(node, task, gpus)), gpus};
    }
    Offer best;
    for (int gpu = 0; gpu < node.gpus; ++gpu) {
      const int16_t level = node.free[static_cast<std::size_t>(gpu)];
      const auto before_it = node.levels().first(static_cast<std::size_t>(gpu));
      if (level < task.milli || std::ranges::find(before_it, level) != before_it.end()) continue;
      const int score = Sigmoid(before - After(node, task, Bit(gpu)));
      if (score > best.score) best = {score, Bit(gpu)};
    }
    return best;
  }

  int64_t Before(const Books& books, int id) {
    if (before_.empty()) before_.resize(static_cast<std::size_t>(books.size()));
    auto& [version, value] = before_[static_cast<std::size_t>(id)];
    if (version != books.version(id)) {
      version = books.version(id);
      value = target_.Fragmentation(books.node(id));
    }
    return value;
  }

  int64_t After(const NodeBook& node, const TaskType& task, uint32_t gpus) const {
    NodeBook after = node;
    after.cpu -= task.cpu;
    for (int i = 0; i < node.gpus; ++i) {
      int16_t& level = after.free[static_cast<std::size_t>(i)];
      if ((gpus >> i & 1) != 0) level = static_cast<int16_t>(level - task.milli);
    }
    return target_.Fragmentation(after);
  }

  int Sigmoid(int64_t gain) const {
    const double gpus = static_cast<double>(gain) / static_cast<double>(kWhole * target_.scale());
    return Floor(100 / (1 + std::exp(-gpus)));
  }

  const TargetWorkload& target_;
  std::vector<std::pair<uint32_t, int64_t>> before_;  // version and fragmentation of each node
};

class RandomPlacer final : public Placer {
 public:
  RandomPlacer(const Variant& variant, uint64_t seed) : variant_(variant), draws_(seed) {}

  absl::StatusOr<std::optional<Placement>> Place(const Books& books,
                                                 const Arrival& arrival) override {
    const TaskType& task = variant_.types[static_cast<std::size_t>(arrival.type)];
    fitting_.clear();
    for (int id = 0; id < books.size(); ++id) {
      if (books.node(id).Fits(task)) fitting_.push_back(id);
    }
    if (fitting_.empty()) return std::nullopt;
    const int id = fitting_[draws_.Index(fitting_.size())];
    const NodeBook& node = books.node(id);
    if (!task.shares()) return Placement{id, node.FirstIdle(task.gpus)};
    std::vector<int> holding;
    for (int gpu = 0; gpu < node.gpus; ++gpu) {
      if (node.free[static_cast<std::size_t>(gpu)] >= task.milli) holding.push_back(gpu);
    }
    return Placement{id, Bit(holding[draws_.Index(holding.size())])};
  }

  absl::Status Leave(const Arrival& /*task*/, Instant /*now*/) override { return absl::OkStatus(); }

 private:
  const Variant& variant_;
  Draws draws_;
  std::vector<int> fitting_;
};

}  // namespace

std::span<const std::string_view> BaselineNames() { return kNames; }

std::unique_ptr<Placer> MakeBaseline(std::string_view name, const Variant& variant,
                                     const TargetWorkload& target, uint64_t seed) {
  if (name == "random") return std::make_unique<RandomPlacer>(variant, seed);
  if (name == "fgd") return std::make_unique<FgdPlacer>(variant, target);
  constexpr std::pair<std::string_view, FormulaPlacer::Formula> kFormulas[] = {
      {"dotprod", &DotProd},
      {"clustering", &GpuClustering},
      {"packing", &GpuPacking},
      {"bestfit", &BestFit},
  };
  for (const auto& [known, formula] : kFormulas) {
    if (name == known) return std::make_unique<FormulaPlacer>(variant, formula);
  }
  return nullptr;
}

}  // namespace tranche::bench::fill
