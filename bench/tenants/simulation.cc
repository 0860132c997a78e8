#include "bench/tenants/simulation.h"

#include <algorithm>
#include <compare>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "bench/tenants/reclaimer.h"
#include "bench/tenants/world.h"
#include "policy/spec.h"
#include "topology/base/check.h"

namespace tranche::bench {
namespace {

// Of a class that says nothing of it.
const int64_t kPatience = GpuClass().patience / std::chrono::seconds(1);

const std::vector<SharingPolicy>& Policies() {
  static const std::vector<SharingPolicy> policies = {
      {.name = "static", .partitioned = true},
      {.name = "shared"},
      {.name = "borrow", .quotas = true},
      {.name = "reclaim-at-once", .quotas = true, .reclaims = true, .lends_fairly = true},
      {.name = "reclaim",
       .quotas = true,
       .reclaims = true,
       .lends_fairly = true,
       .patience = kPatience},
  };
  return policies;
}

enum class What : uint8_t { kEnd, kArrival, kLook };

struct Event {
  int64_t at = 0;
  What what = What::kLook;
  int job = 0;
  int run = 0;  // of an end
  friend auto operator<=>(const Event&, const Event&) = default;
};

class Simulation {
 public:
  Simulation(const Trace& trace, const SharingPolicy& policy, int64_t window)
      : world_(trace), policy_(policy), window_(window) {
    int first = 0;
    for (const Tenant& tenant : trace.tenants) {
      own_nodes_.emplace_back(first, first + tenant.nodes);
      first += tenant.nodes;
    }
    for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
      events_.push({trace.jobs[i].submit, What::kArrival, static_cast<int>(i), 0});
    }
  }

  Outcome Run(const std::function<void(std::size_t)>& progress) {
    while (!events_.empty()) {
      PassTimeTo(events_.top().at);
      bool changed = false;
      while (!events_.empty() && events_.top().at == now_) {
        const Event event = events_.top();
        events_.pop();
        if (Apply(event)) changed = true;
      }
      if (changed) GoThroughQueue();
      progress(ended_);
    }
    TRANCHE_CHECK(queue_.empty() && world_.running().empty());
    for (std::size_t i = 0; i < world_.trace().jobs.size(); ++i) {
      outcome_.ends.push_back(*world_.state(static_cast<int>(i)).end);
    }
    const int gpus = world_.cluster().size() * kGpusPerNode;
    outcome_.utilisation = static_cast<double>(busy_seconds_) / static_cast<double>(gpus * window_);
    return std::move(outcome_);
  }

 private:
  using Sizes = std::set<int>;
  using Waiting = std::pair<int64_t, int>;  // first submission, job

  void PassTimeTo(int64_t at) {
    busy_seconds_ += world_.busy() * (std::min(at, window_) - std::min(now_, window_));
    now_ = at;
  }

  // Did anything change?
  bool Apply(const Event& event) {
    if (event.what == What::kLook) return true;
    if (event.what == What::kArrival) {
      queue_.emplace(now_, event.job);
      return true;
    }
    JobState& state = world_.state(event.job);
    if (!state.running() || state.run != event.run) return false;
    world_.Stop(event.job);
    state.end = now_;
    ++ended_;
    return true;
  }

  void GoThroughQueue() {
    const std::vector<Waiting> waiting(queue_.begin(), queue_.end());
    if (policy_.partitioned) return StartOnOwnNodes(waiting);
    if (policy_.quotas) StartEntitled(waiting);
    if (policy_.lends_fairly) return LendFairly();
    Sizes failed;
    for (const Waiting& next : std::vector<Waiting>(queue_.begin(), queue_.end())) {
      TryStart(next.second, 0, world_.cluster().size(), failed);
    }
  }

  void StartOnOwnNodes(const std::vector<Waiting>& waiting) {
    std::vector<Sizes> failed(own_nodes_.size());
    for (const auto& [submitted, id] : waiting) {
      const auto tenant = static_cast<std::size_t>(world_.job(id).tenant);
      TryStart(id, own_nodes_[tenant].first, own_nodes_[tenant].second, failed[tenant]);
    }
  }

  void StartEntitled(const std::vector<Waiting>& waiting) {
    Sizes failed;
    for (const auto& [submitted, id] : waiting) {
      if (!world_.Entitled(id)) {
        world_.state(id).waits_for_moment.reset();
        continue;
      }
      if (failed.contains(world_.job(id).gpus)) continue;
      if (TryStart(id, 0, world_.cluster().size(), failed) || !policy_.reclaims) continue;
      if (TakeBack(id)) failed.erase(world_.job(id).gpus);
    }
  }

  void LendFairly() {
    const std::vector<Tenant>& tenants = world_.trace().tenants;
    std::vector<std::queue<Waiting>> lines(tenants.size());
    for (const Waiting& next : queue_) {
      lines[static_cast<std::size_t>(world_.job(next.second).tenant)].push(next);
    }
    // Shares of nominal are compared crosswise.
    const auto before = [&](std::size_t left, std::size_t right) {
      const Waiting& of_left = lines[left].front();
      const Waiting& of_right = lines[right].front();
      const int64_t left_share = world_.Borrowed(static_cast<int>(left)) * tenants[right].nodes;
      const int64_t right_share = world_.Borrowed(static_cast<int>(right)) * tenants[left].nodes;
      return std::tie(left_share, of_left) < std::tie(right_share, of_right);
    };
    Sizes failed;
    for (;;) {
      std::optional<std::size_t> first;
      for (std::size_t tenant = 0; tenant < lines.size(); ++tenant) {
        if (!lines[tenant].empty() && (!first || before(tenant, *first))) first = tenant;
      }
      if (!first) return;
      TryStart(lines[*first].front().second, 0, world_.cluster().size(), failed);
      lines[*first].pop();
    }
  }

  bool TryStart(int id, int first, int last, Sizes& failed) {
    const int gpus = world_.job(id).gpus;
    if (failed.contains(gpus)) return false;
    const std::optional<Placement> place = FindPlace(world_.cluster().free(), gpus, first, last);
    if (!place || (policy_.quotas && !world_.Admitted(id))) {
      failed.insert(gpus);
      return false;
    }
    Start(id, *place);
    return true;
  }

  void Start(int id, const Placement& place) {
    world_.Start(id, place, now_);
    const JobState& state = world_.state(id);
    outcome_.restart_gpu_seconds += (state.working - now_) * world_.job(id).gpus;
    queue_.erase({world_.job(id).submit, id});
    const int64_t left = world_.job(id).duration - state.kept;
    events_.push({state.working + left, What::kEnd, id, state.run});
  }

  // Evicts for an entitled job and starts it; false: nobody may be, or the moment is bad.
  bool TakeBack(int id) {
    const int64_t since = world_.state(id).waits_for_moment.value_or(now_);
    const std::optional<Takeback> plan = PlanTakeback(world_, id, now_, since + policy_.patience);
    if (!plan) return false;
    if (plan->better) {
      world_.state(id).waits_for_moment = since;
      events_.push({*plan->better, What::kLook, id, 0});
      return false;
    }
    for (const int victim : plan->victims) {
      outcome_.lost_gpu_seconds += world_.Evict(victim, now_);
      ++outcome_.evictions;
      queue_.emplace(world_.job(victim).submit, victim);
    }
    const int gpus = world_.job(id).gpus;
    const std::optional<Placement> place =
        plan->node ? Placement{{*plan->node, gpus}}
                   : FindPlace(world_.cluster().free(), gpus, 0, world_.cluster().size());
    TRANCHE_CHECK(place && world_.Admitted(id));
    Start(id, *place);
    return true;
  }

  World world_;
  const SharingPolicy& policy_;
  int64_t window_;
  std::vector<std::pair<int, int>> own_nodes_;  // first and past the last, by tenant
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::set<Waiting> queue_;
  int64_t now_ = 0;
  int64_t busy_seconds_ = 0;
  std::size_t ended_ = 0;
  Outcome outcome_;
};

}  // namespace

std::optional<SharingPolicy> PolicyNamed(std::string_view name) {
  for (const SharingPolicy& policy : Policies()) {
    if (policy.name == name) return policy;
  }
  return std::nullopt;
}

std::string PolicyNames() {
  std::string names;
  for (const SharingPolicy& policy : Policies()) {
    names += (names.empty() ? "" : ", ") + policy.name;
  }
  return names;
}

Outcome Simulate(const Trace& trace, const SharingPolicy& policy, int64_t window,
                 const std::function<void(std::size_t)>& progress) {
  return Simulation(trace, policy, window).Run(progress);
}

}  // namespace tranche::bench
