#include "bench/fill/replay.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>

#include "bench/fill/draws.h"

namespace tranche::bench::fill {
namespace {

using SteadyClock = std::chrono::steady_clock;

// A task a second; how far they are apart changes no placement.
constexpr std::chrono::seconds kBetween{1};
constexpr Instant kStart{std::chrono::seconds(1'800'000'000)};

// Adds up what was seen at each percent of arrival.
class Tally {
 public:
  void Add(std::size_t percent, double value) {
    if (percent >= sums_.size()) {
      sums_.resize(percent + 1);
      counts_.resize(percent + 1);
    }
    sums_[percent] += value;
    ++counts_[percent];
  }
  Curve Means() const {
    Curve means(sums_.size());
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const double before = i > 0 ? means[i - 1] : 0;
      means[i] = counts_[i] > 0 ? sums_[i] / counts_[i] : before;
    }
    return means;
  }

 private:
  std::vector<double> sums_;
  std::vector<int> counts_;
};

int NodesInUse(const Books& books) {
  int count = 0;
  for (int id = 0; id < books.size(); ++id) count += books.node(id).tasks > 0;
  return count;
}

double Percent(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

Deal DealFill(const Fleet& fleet, const Variant& variant, double tune, uint64_t seed) {
  Draws draws(seed);
  Deal deal;
  deal.order.resize(fleet.machines.size());
  std::iota(deal.order.begin(), deal.order.end(), 0);
  draws.Shuffle(deal.order);
  deal.arrivals = variant.tasks;
  draws.Shuffle(deal.arrivals);

  const auto type_of = [&](int type) { return variant.types[static_cast<std::size_t>(type)]; };
  const auto wanted = std::llround(tune * static_cast<double>(fleet.milli()));
  int64_t demand = variant.milli();
  while (demand > wanted) {
    const std::size_t at = draws.Index(deal.arrivals.size());
    demand -= type_of(deal.arrivals[at]).total();
    deal.arrivals.erase(deal.arrivals.begin() + static_cast<std::ptrdiff_t>(at));
  }
  while (demand < wanted) {
    const int type = variant.tasks[draws.Index(variant.tasks.size())];
    // As published: one GPU's share is looked at, whatever the number of GPUs.
    if (demand + type_of(type).milli > wanted) break;
    demand += type_of(type).total();
    deal.arrivals.push_back(type);
  }
  return deal;
}

absl::StatusOr<std::optional<Placement>> PlaceChecked(const Variant& variant,
                                                      const Arrival& arrival, Books& books,
                                                      Placer& placer, double& seconds) {
  const TaskType& task = variant.types[static_cast<std::size_t>(arrival.type)];
  const auto begin = SteadyClock::now();
  const auto placement = placer.Place(books, arrival);
  seconds += std::chrono::duration<double>(SteadyClock::now() - begin).count();
  if (!placement.ok()) return placement.status();
  if (!placement->has_value()) {
    if (!books.FitsSomewhere(task)) return std::nullopt;
    return absl::InternalError(
        fmt::format("task {}: expected a placement, as a node fits, found none", arrival.serial));
  }
  if (absl::Status fits = books.Check(task, **placement); !fits.ok()) return fits;
  books.Take(task, **placement);
  return placement;
}

absl::StatusOr<FillRun> Replay(const Variant& variant, const TargetWorkload& target,
                               const Deal& deal, Books& books, Placer& placer) {
  FillRun run;
  Tally allocation, ratio, amount;
  std::vector<int64_t> fragments;  // of each node, scaled
  int64_t fragment = 0;
  for (int id = 0; id < books.size(); ++id) {
    fragments.push_back(target.Fragmentation(books.node(id)));
    fragment += fragments.back();
  }
  const int64_t capacity = books.capacity();
  int64_t arrived = 0;
  bool half = false;
  for (const int type : deal.arrivals) {
    const Arrival arrival{run.arrived, type, kStart + kBetween * run.arrived};
    ++run.arrived;
    const auto placement = PlaceChecked(variant, arrival, books, placer, run.seconds);
    if (!placement.ok()) return placement.status();
    const TaskType& task = variant.types[static_cast<std::size_t>(type)];
    if (placement->has_value()) {
      const int id = (*placement)->node;
      int64_t& part = fragments[static_cast<std::size_t>(id)];
      fragment -= part;
      part = target.Fragmentation(books.node(id));
      fragment += part;
    } else {
      ++run.dropped[static_cast<std::size_t>(task.task_class())];
    }
    arrived += task.total();
    if (!half && 2 * arrived >= capacity) {
      half = true;
      run.nodes_at_50 = NodesInUse(books);
    }
    const auto percent = static_cast<std::size_t>((200 * arrived + capacity) / (2 * capacity));
    allocation.Add(percent, Percent(books.used(), capacity));
    ratio.Add(percent, Percent(fragment, target.scale() * (capacity - books.used())));
    amount.Add(percent, Percent(fragment, target.scale() * capacity));
  }
  run.allocation = allocation.Means();
  run.ratio = ratio.Means();
  run.amount = amount.Means();
  return run;
}

}  // namespace tranche::bench::fill
