#include "bench/cost/simulation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "bench/fill/draws.h"

namespace tranche::bench::cost {
namespace {

constexpr double kMicros = 1e6;
constexpr double kHour = 3'600;
// Pods of a task are no larger than the largest machines of most offers.
constexpr int kGpusOfAPod = 8;

enum class Kind : uint8_t { kEnd, kTaken, kIdle, kArrival };

// Ascending time; of one moment work ends before any arrives.
struct Event {
  int64_t at = 0;
  Kind kind = Kind::kArrival;
  int64_t serial = 0;
  int id = 0;     // a task, or a node
  int round = 0;  // of the task
  friend bool operator>(const Event& left, const Event& right) {
    return std::tuple(left.at, left.kind, left.serial) >
           std::tuple(right.at, right.kind, right.serial);
  }
};

struct Run {
  std::vector<Pod> pods;
  std::vector<Seat> seats;
  int round = 0;
  int64_t worked = 0;  // s that are safe
  int64_t waits_since = 0;
  int64_t started = 0;  // s; may be to come
};

std::vector<Pod> PodsOf(const Task& task, int number) {
  std::vector<Pod> pods;
  int left = task.gpus;
  while (left > 0) {
    Pod& pod = pods.emplace_back();
    pod.task = number;
    pod.number = static_cast<int>(pods.size()) - 1;
    pod.gpus = std::min(left, kGpusOfAPod);
    pod.milli = task.milli;
    pod.cpu = task.cpu * pod.gpus / task.gpus;
    left -= pod.gpus;
  }
  return pods;
}

class World {
 public:
  World(const std::vector<Task>& tasks, const std::vector<Offer>& offers, const Rules& rules,
        uint64_t seed, Policy& policy)
      : tasks_(tasks), offers_(offers), rules_(rules), policy_(policy), draws_(seed) {
    fleet_.offers = &offers;
    fleet_.tasks = &tasks;
    runs_.resize(tasks.size());
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      runs_[i].pods = PodsOf(tasks[i], static_cast<int>(i));
      Push(tasks[i].submit, Kind::kArrival, static_cast<int>(i));
    }
  }

  absl::StatusOr<Figures> Play() {
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      absl::Status status;
      switch (event.kind) {
        case Kind::kArrival:
          runs_[At(event.id)].waits_since = event.at;
          status = Start(event.id, event.at);
          break;
        case Kind::kEnd:
          if (runs_[At(event.id)].round == event.round) End(event.id, event.at);
          break;
        case Kind::kTaken:
          status = TakeAway(event.id, event.at);
          break;
        case Kind::kIdle:
          if (IsIdle(event.id, event.at)) Return(event.id, event.at);
          break;
      }
      if (!status.ok()) return status;
    }
    const double tasks = static_cast<double>(tasks_.size()) - static_cast<double>(figures_.dropped);
    figures_.wait_seconds = tasks > 0 ? waited_ / tasks : 0;
    return figures_;
  }

 private:
  static std::size_t At(int id) { return static_cast<std::size_t>(id); }

  void Push(int64_t at, Kind kind, int id, int round = 0) {
    events_.push({at, kind, serial_++, id, round});
  }

  absl::Status Start(int id, int64_t now) {
    Run& run = runs_[At(id)];
    const auto fits_an_offer = [this](const Pod& pod) {
      return std::ranges::any_of(offers_,
                                 [&](const Offer& offer) { return fleet_.FitsEmpty(pod, offer); });
    };
    if (!std::ranges::all_of(run.pods, fits_an_offer)) {
      ++figures_.dropped;
      return absl::OkStatus();
    }
    run.started = now;
    for (Pod& pod : run.pods) {
      pod.round = run.round;
      absl::StatusOr<std::optional<Seat>> seat = policy_.Place(fleet_, pod, now);
      if (seat.ok() && !*seat) {
        if (absl::Status rented = Rent(pod, now); !rented.ok()) return rented;
        seat = policy_.Place(fleet_, pod, now);
      }
      if (!seat.ok()) return seat.status();
      if (!*seat) return absl::InternalError("expected a place on a machine rented for it");
      if (absl::Status taken = fleet_.Take(pod, **seat); !taken.ok()) return taken;
      run.seats.push_back(**seat);
      run.started = std::max(run.started, fleet_.node((*seat)->node).ready);
    }
    waited_ += static_cast<double>(run.started - run.waits_since);
    Push(run.started + tasks_[At(id)].duration - run.worked, Kind::kEnd, id, run.round);
    return absl::OkStatus();
  }

  absl::Status Rent(const Pod& pod, int64_t now) {
    const absl::StatusOr<std::optional<int>> offer = policy_.Rent(fleet_, pod, now);
    if (!offer.ok()) return offer.status();
    if (!*offer || !fleet_.FitsEmpty(pod, offers_[At(**offer)])) {
      return absl::InternalError("expected an offer that holds the pod");
    }
    const auto id = static_cast<int>(fleet_.nodes.size());
    const Offer& rented = offers_[At(**offer)];
    Node& node = fleet_.nodes.emplace_back();
    node.offer = **offer;
    node.rented = now;
    node.ready = now + rules_.boot;
    node.cpu = rented.cpu;
    std::fill_n(node.free.begin(), rented.gpus, static_cast<int16_t>(kWholeMilli));
    fleet_.open.insert(id);
    ++figures_.rented;
    const double life = draws_.Exponential() * rules_.mean_spot_hours * kHour;
    if (rented.capacity == CapacityType::kSpot) {
      Push(now + std::max<int64_t>(1, std::llround(life)), Kind::kTaken, id);
    }
    policy_.Rented(fleet_, id, now);
    return absl::OkStatus();
  }

  void Free(Run& run, int64_t now) {
    for (std::size_t i = 0; i < run.pods.size(); ++i) {
      const Seat& seat = run.seats[i];
      fleet_.GiveBack(run.pods[i], seat);
      policy_.Left(run.pods[i], now);
      Node& node = fleet_.nodes[At(seat.node)];
      node.tasks.erase(run.pods[i].task);
      if (!node.tasks.empty() || node.gone) continue;
      node.idle_since = now;
      Push(now + rules_.idle, Kind::kIdle, seat.node);
    }
    run.seats.clear();
  }

  void End(int id, int64_t now) {
    Free(runs_[At(id)], now);
    figures_.gpu_hours += tasks_[At(id)].gpu_hours();
  }

  bool IsIdle(int id, int64_t now) const {
    const Node& node = fleet_.node(id);
    return !node.gone && node.tasks.empty() && now - node.idle_since >= rules_.idle;
  }

  void Return(int id, int64_t now) {
    Node& node = fleet_.nodes[At(id)];
    node.gone = true;
    fleet_.open.erase(id);
    figures_.money += static_cast<double>(fleet_.offer(node).micros) / kMicros *
                      static_cast<double>(now - node.rented) / kHour;
    policy_.Returned(id, now);
  }

  absl::Status TakeAway(int id, int64_t now) {
    if (fleet_.node(id).gone) return absl::OkStatus();
    const std::set<int> hit = fleet_.node(id).tasks;
    figures_.interruptions += hit.empty() ? 0 : 1;
    for (const int task : hit) Interrupt(task, now);
    Return(id, now);
    for (const int task : hit) {
      if (absl::Status started = Start(task, now); !started.ok()) return started;
    }
    return absl::OkStatus();
  }

  void Interrupt(int id, int64_t now) {
    Run& run = runs_[At(id)];
    const int64_t worked = run.worked + std::max<int64_t>(0, now - run.started);
    const int64_t safe = worked / rules_.checkpoint * rules_.checkpoint;
    const Task& task = tasks_[At(id)];
    figures_.interrupted_hours += static_cast<double>(task.gpus * task.milli) / kWholeMilli *
                                  static_cast<double>(worked - safe) / kHour;
    // It waited for a machine that is not ready yet, and goes on waiting.
    if (run.started > now) waited_ -= static_cast<double>(run.started - now);
    run.worked = safe;
    run.waits_since = now;
    Free(run, now);
    ++run.round;
  }

  const std::vector<Task>& tasks_;
  const std::vector<Offer>& offers_;
  const Rules rules_;
  Policy& policy_;
  fill::Draws draws_;
  Fleet fleet_;
  std::vector<Run> runs_;  // by task
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  int64_t serial_ = 0;
  double waited_ = 0;
  Figures figures_;
};

}  // namespace

absl::StatusOr<Figures> Live(const std::vector<Task>& tasks, const std::vector<Offer>& offers,
                             const Rules& rules, uint64_t seed, Policy& policy) {
  return World(tasks, offers, rules, seed, policy).Play();
}

double LowerBound(const std::vector<Task>& tasks, const std::vector<Offer>& offers) {
  Fleet fleet;
  fleet.offers = &offers;
  fleet.tasks = &tasks;
  double money = 0;
  double gpu_hours = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    double of_task = 0;
    for (const Pod& pod : PodsOf(tasks[i], static_cast<int>(i))) {
      double least = std::numeric_limits<double>::infinity();
      for (const Offer& offer : offers) {
        if (!fleet.FitsEmpty(pod, offer)) continue;
        const double gpus = static_cast<double>(pod.gpus * pod.milli) / kWholeMilli / offer.gpus;
        const double cpus = static_cast<double>(pod.cpu) / static_cast<double>(offer.cpu);
        least = std::min(least, static_cast<double>(offer.micros) * std::max(gpus, cpus));
      }
      of_task += least;
    }
    if (std::isinf(of_task)) continue;
    money += of_task / kMicros * static_cast<double>(tasks[i].duration) / kHour;
    gpu_hours += tasks[i].gpu_hours();
  }
  return gpu_hours > 0 ? money / gpu_hours : 0;
}

}  // namespace tranche::bench::cost
