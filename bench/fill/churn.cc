#include "bench/fill/churn.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <optional>
#include <queue>
#include <utility>

#include "bench/fill/draws.h"
#include "bench/fill/replay.h"

namespace tranche::bench::fill {
namespace {

constexpr double kEnd = kWarmUp + kMeasured;

// To the scheduler a mean lifetime is a day.
Instant InstantOf(double lifetimes) {
  constexpr Instant kStart{std::chrono::seconds(1'800'000'000)};
  constexpr double kDay = 24.0 * 3600 * 1000;
  return kStart + Millis(static_cast<int64_t>(lifetimes * kDay));
}

// The integral of what is used over the measured time.
class UseOverTime {
 public:
  // `used` since the call before.
  void Advance(double now, int64_t used) {
    const double from = std::clamp(last_, kWarmUp, kEnd);
    const double to = std::clamp(now, kWarmUp, kEnd);
    sum_ += (to - from) * static_cast<double>(used);
    last_ = now;
  }
  double mean() const { return sum_ / kMeasured; }

 private:
  double last_ = 0;
  double sum_ = 0;
};

struct Running {
  Arrival arrival;
  Placement placement;
};

}  // namespace

ChurnDeal DealChurn(const Fleet& fleet, const Variant& variant, double load, uint64_t seed) {
  Draws draws(seed);
  ChurnDeal deal;
  deal.order.resize(fleet.machines.size());
  std::iota(deal.order.begin(), deal.order.end(), 0);
  draws.Shuffle(deal.order);
  const double mean_milli =
      static_cast<double>(variant.milli()) / static_cast<double>(variant.tasks.size());
  const double between = mean_milli / (load * static_cast<double>(fleet.milli()));
  for (double now = between * draws.Exponential(); now < kEnd;
       now += between * draws.Exponential()) {
    const int type = variant.tasks[draws.Index(variant.tasks.size())];
    deal.visits.push_back({now, now + draws.Exponential(), type});
  }
  return deal;
}

absl::StatusOr<ChurnRun> RunChurn(const Variant& variant, const ChurnDeal& deal, Books& books,
                                  Placer& placer) {
  using Departure = std::pair<double, std::size_t>;  // when, position in `running`
  std::priority_queue<Departure, std::vector<Departure>, std::greater<>> departures;
  std::vector<Running> running;
  ChurnRun run;
  UseOverTime use;
  const auto depart_until = [&](double now) -> absl::Status {
    while (!departures.empty() && departures.top().first <= now) {
      const auto [when, at] = departures.top();
      departures.pop();
      use.Advance(when, books.used());
      const Running& task = running[at];
      books.GiveBack(variant.types[static_cast<std::size_t>(task.arrival.type)], task.placement);
      if (absl::Status left = placer.Leave(task.arrival, InstantOf(when)); !left.ok()) return left;
    }
    return absl::OkStatus();
  };
  for (const Visit& visit : deal.visits) {
    if (absl::Status left = depart_until(visit.arrives); !left.ok()) return left;
    use.Advance(visit.arrives, books.used());
    const Arrival arrival{run.decisions++, visit.type, InstantOf(visit.arrives)};
    const auto placement = PlaceChecked(variant, arrival, books, placer, run.seconds);
    if (!placement.ok()) return placement.status();
    if (visit.arrives >= kWarmUp) {
      const TaskType& task = variant.types[static_cast<std::size_t>(visit.type)];
      const auto at = static_cast<std::size_t>(task.task_class());
      ++run.arrived[at];
      run.lost[at] += !placement->has_value();
    }
    if (!placement->has_value()) continue;
    departures.emplace(visit.leaves, running.size());
    running.push_back({arrival, **placement});
  }
  if (absl::Status left = depart_until(kEnd); !left.ok()) return left;
  use.Advance(kEnd, books.used());
  run.allocation = 100 * use.mean() / static_cast<double>(books.capacity());
  return run;
}

}  // namespace tranche::bench::fill
