// A cluster with node agents from end to end, in one thread and virtual time: Tranche's host and
// binder, kube-scheduler's loop, a kubelet on every node and the agent they all call.
// Deterministic for a seed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/controllers/binder.h"
#include "scheduler/host/clocks.h"
#include "scheduler/host/host.h"
#include "scheduler/metrics/metrics.h"
#include "scheduler/wire/nodes/agent_registers.h"
#include "test/fakes/agents/fake_cluster.h"
#include "test/fakes/agents/fake_kubelet.h"
#include "test/fakes/agents/node_agent.h"
#include "test/unit/scheduler/controllers/bind_bench.h"
#include "test/unit/scheduler/controllers/scenario_api.h"

namespace tranche {

// One kind of node agent, and pods in the style it serves.
struct Driver {
  std::string name;
  std::function<std::unique_ptr<fakes::NodeAgent>(fakes::FakePods&)> agent;
  // Gives a node with cards what its agent registers and advertises.
  std::function<void(fakes::FakeNode&)> dress;
  std::function<std::vector<fakes::FakeContainer>(int n)> containers;  // of the n-th pod
  int64_t card_mib = 16384;
  bool locks = false;                             // the agent goes by a lock on the node
  std::function<fakes::Text(int n)> annotations;  // of the n-th pod; null: none
  bool any_ids = false;                           // the kubelet takes device ids in no order
  bool placeholders = false;                      // pods of ours hold the cards others share
  // The object the agent keeps beside the Node; null: none.
  std::function<std::string(const fakes::FakeNode&)> device_object;
};
// What gtest shows of a parameter.
inline void PrintTo(const Driver& driver, std::ostream* out) { *out << driver.name; }

struct Troubles {
  bool deletions = false;     // pods are deleted at any moment
  bool restarts = false;      // Tranche is killed and starts anew; kubelets restart
  bool losses = false;        // requests and answers get lost
  bool placeholders = false;  // pods that hold cards are refused, slow, or never start
};

struct ScenarioSize {
  int pods = 200;
  int nodes = 10;
  int cards = 4;
  int64_t most_ms = 1'200'000;  // then what has not ended is stuck
  int64_t least_run_ms = 1'000;
  int64_t most_run_ms = 5'000;
};

// How it went.
struct ScenarioOutcome {
  fakes::KubeletReport kubelets;
  int succeeded = 0;
  int failed = 0;
  int deleted = 0;
  int stuck = 0;         // in none of these states when the time was over
  int double_posts = 0;  // Bindings sent for a pod beyond the first
  int lock_writes = 0;
  int locks_left = 0;
  int placeholders_made = 0;
  int placeholders_left = 0;
  int early_ends = 0;             // of pods that hold a card, while others still used it
  int64_t slots_left = 0;         // pods that wait for an agent, or that one still has to serve
  int64_t passed_over = 0;        // given up on without having been served
  int64_t longest_answer_ms = 0;  // of a bind
  std::map<std::string, int> bind_errors;
  std::vector<std::string> faults;  // of the engine's own check
};

// One run of Tranche's process. A killed one is kept, as its timers would call into it; it hears
// and says nothing more.
struct Life {
  Life(fakes::FakePods& pods, Network& network, ManualClock& clock, bool losses,
       const HostOptions& options)
      : api(pods, network, losses), host(options, clock), binder(host, api, api, timers, metrics) {}
  bool alive = true;
  metrics::Metrics metrics;
  ScenarioApi api;
  ManualTimers timers;
  Host host;
  Binder binder;
};

class AgentsScenario {
 public:
  AgentsScenario(const Driver& driver, Troubles troubles, uint64_t seed, ScenarioSize size = {})
      : driver_(driver), troubles_(troubles), size_(size), network_(seed) {
    for (int i = 0; i < size_.nodes; ++i) AddNode("node-" + std::to_string(i));
    agent_ = driver_.agent(pods_);
    for (const fakes::FakeNode& node : pods_.Nodes()) {
      kubelets_.emplace_back(
          pods_, *agent_, node.name,
          fakes::KubeletOptions{.seed = seed * 100 + kubelets_.size(),
                                .most_notice_ms = 150,
                                .most_start_ms = 300,
                                .least_run_ms = size_.least_run_ms,
                                .most_run_ms = size_.most_run_ms,
                                .any_ids = driver_.any_ids,
                                .lasting_refused_one_in = troubles_.placeholders ? 8 : 0,
                                .lasting_dead_one_in = troubles_.placeholders ? 8 : 0,
                                .lasting_start_ms = troubles_.placeholders ? 8'000 : 500,
                                .restart_one_in = troubles_.restarts ? 500 : 0});
    }
    pods_.Watch([this](const fakes::FakePod& pod, bool gone) {
      network_.SendEvent([this, pod, gone] { Learn(pod, gone); });
    });
    StartLife();
  }

  ScenarioOutcome Run() {
    constexpr int64_t kStep = 10;
    constexpr int64_t kTick = 100;
    while (network_.now() < size_.most_ms && !done_) {
      const int64_t now = network_.now() + kStep;
      clock_.AdvanceBy(Millis(kStep));
      pods_.SetNow(now);
      network_.AdvanceTo(now);
      if (life_) life_->timers.Advance(std::chrono::milliseconds(kStep));
      Create();
      Disturb();
      Schedule();
      for (fakes::FakeKubelet& kubelet : kubelets_) kubelet.Step(now);
      if (now % kTick != 0) continue;
      if (life_) life_->host.engine.Tick();
      done_ = Quiet();
    }
    return Collect();
  }

 private:
  // A pod on its way through kube-scheduler.
  struct Task {
    enum class Step : uint8_t { kQueued, kBinding, kBound };
    fakes::FakePod pod;  // as last heard of
    Step step = Step::kQueued;
    int64_t due = 0;       // when to try; while binding: when to give the answer up
    uint64_t attempt = 0;  // answers to earlier ones do not count
    std::string assumed;   // the node it is being bound to
    int64_t asked = 0;
  };

  void AddNode(const std::string& name) {
    fakes::FakeNode node;
    node.name = name;
    for (int i = 0; i < size_.cards; ++i) {
      fakes::FakeCard card;
      card.uuid = "GPU-" + name + "-" + std::to_string(i);
      card.memory_mib = driver_.card_mib;
      node.cards.push_back(card);
    }
    node.labels = {{"nvidia.com/gpu.product", "Tesla-P100-PCIE-16GB"},
                   {"nvidia.com/gpu.memory", std::to_string(driver_.card_mib)},
                   {"nvidia.com/gpu.count", std::to_string(size_.cards)}};
    driver_.dress(node);
    pods_.AddNode(std::move(node));
  }

  void StartLife() {
    HostOptions options;
    options.engine.epoch = static_cast<int64_t>(lives_.size()) + 1;
    options.engine.placeholders = driver_.placeholders;
    options.engine.placeholder_times.patience = Millis(10'000);
    options.defaults.unenforced_sharing = Permission::kAllow;
    life_ = std::make_shared<Life>(pods_, network_, clock_, troubles_.losses, options);
    lives_.push_back(life_);
    const std::shared_ptr<Life> life = life_;
    life->host.engine.Connect(
        {.requeue = [this](const PodName&, const PodUid& uid,
                           Instant) { network_.Send(0, [this, uid] { Wake(uid.str()); }); },
         .agents = life->binder.AgentSink()});
    pods_.Watch(
        [this, life](const fakes::FakePod& pod, bool gone) {
          if (!life->alive) return;
          network_.SendEvent([life, pod, gone] {
            if (!life->alive) return;
            if (gone) {
              life->host.cluster.Receive(PodGone{PodUid(pod.uid)});
            } else {
              life->host.cluster.Receive(PodChanged{FactsOf(pod)});
            }
          });
        },
        [this, life](const fakes::FakeNode& node) {
          if (!life->alive) return;
          network_.SendEvent([this, life, node] {
            if (life->alive) HearNode(life->host, node);
          });
        });
    // What there was at the start has been told; changes come after it.
    network_.SendEvent([life] {
      if (life->alive) life->host.cluster.Receive(Synced());
    });
  }

  void HearNode(Host& host, const fakes::FakeNode& node) {
    host.cluster.Receive(NodeChanged{FactsOf(node)});
    if (!driver_.device_object) return;
    wire::Parser parser;
    const std::string text = driver_.device_object(node);
    const absl::StatusOr<wire::Element> document = parser.Parse(text);
    ASSERT_TRUE(document.ok()) << text;
    const absl::StatusOr<wire::KoordinatorDevices> devices =
        wire::DecodeKoordinatorDevice(*document);
    ASSERT_TRUE(devices.ok()) << devices.status();
    host.cluster.Receive(NodeAgentChanged{NodeName(node.name), devices->agent});
  }

  // ---- pods come and go -------------------------------------------------------------------------

  void Create() {
    constexpr int kMostAtOnce = 3;
    for (int i = 0; i < kMostAtOnce && created_ < size_.pods; ++i) {
      fakes::FakePod pod;
      // Names in no order, since agents list by name.
      pod.name = "p" + std::to_string(created_ * 7919 % 1000) + "-" + std::to_string(created_);
      pod.uid = "u" + std::to_string(created_);
      pod.containers = driver_.containers(created_);
      if (driver_.annotations) pod.annotations = driver_.annotations(created_);
      ++created_;
      pods_.AddPod(std::move(pod));
    }
  }

  void Disturb() {
    constexpr int64_t kDeleteOneIn = 40;
    constexpr int64_t kKillOneIn = 150;
    constexpr int kMostKills = 20;
    // Longer than a request is on its way: a process does not start faster.
    constexpr int64_t kLeastDownMs = 50;
    constexpr int64_t kDownMs = 300;
    if (troubles_.deletions && network_.Random(kDeleteOneIn - 1) == 0) {
      const std::vector<fakes::FakePod> all = pods_.Pods();
      const auto many = static_cast<int64_t>(all.size());
      if (many > 0) Delete(all[static_cast<std::size_t>(network_.Random(many - 1))]);
    }
    if (life_ && troubles_.restarts && kills_ < kMostKills &&
        network_.Random(kKillOneIn - 1) == 0) {
      ++kills_;
      life_->alive = false;
      life_->api.Kill();
      life_.reset();
      reborn_at_ = network_.now() + kLeastDownMs + network_.Random(kDownMs);
    }
    if (!life_ && network_.now() >= reborn_at_) StartLife();
  }

  // At most a quarter of them.
  void Delete(const fakes::FakePod& pod) {
    if (pod.ended() || pod.deleting || pod.lasts || deleted_ * 4 >= size_.pods) return;
    ++deleted_;
    if (pod.node.empty()) {
      pods_.Delete(pod.uid);
    } else {
      pods_.MarkDeleting(pod.uid);
    }
  }

  // ---- kube-scheduler ---------------------------------------------------------------------------

  void Learn(const fakes::FakePod& pod, bool gone) {
    if (gone) {
      tasks_.erase(pod.uid);
      return;
    }
    Task& task = tasks_[pod.uid];
    if (task.pod.uid.empty() && pod.lasts) ++outcome_.placeholders_made;
    task.pod = pod;
    if (!pod.node.empty()) task.step = Task::Step::kBound;
    if (task.step == Task::Step::kBound) task.assumed = pod.ended() ? "" : pod.node;
  }

  void Wake(const std::string& uid) {
    const auto found = tasks_.find(uid);
    if (found != tasks_.end() && found->second.step == Task::Step::kQueued) {
      found->second.due = network_.now();
    }
  }

  void Schedule() {
    for (auto& [uid, task] : tasks_) {
      if (task.due > network_.now() || task.step == Task::Step::kBound || task.pod.deleting) {
        continue;
      }
      if (task.step == Task::Step::kBinding) Refused(task, "no answer");
      if (task.due <= network_.now() && life_) Try(uid, task);
    }
  }

  void Refused(Task& task, const std::string& why) {
    constexpr int64_t kBackoff = 500;
    ++outcome_.bind_errors[why];
    task.step = Task::Step::kQueued;
    task.assumed.clear();
    task.due = network_.now() + kBackoff;
  }

  // Advertised resources, as NodeResourcesFit counts them.
  std::vector<std::string> Candidates(const fakes::FakePod& pod) const {
    std::map<std::string, std::map<std::string, int64_t>> used;
    for (const auto& [uid, task] : tasks_) {
      if (task.assumed.empty()) continue;
      for (const auto& [resource, amount] : Wanted(task.pod)) {
        used[task.assumed][resource] += amount;
      }
    }
    std::vector<std::string> names;
    for (const fakes::FakeNode& node : pods_.Nodes()) {
      bool fits = true;
      for (const auto& [resource, amount] : Wanted(pod)) {
        const auto capacity = node.capacity.find(resource);
        // What no node advertises is ignored, as managedResources say.
        if (capacity == node.capacity.end()) continue;
        if (used[node.name][resource] + amount > capacity->second) fits = false;
      }
      if (fits) names.push_back(node.name);
    }
    return names;
  }

  static std::map<std::string, int64_t> Wanted(const fakes::FakePod& pod) {
    std::map<std::string, int64_t> sum;
    std::map<std::string, int64_t> most;
    for (const fakes::FakeContainer& container : pod.containers) {
      for (const auto& [resource, text] : container.limits) {
        const int64_t amount = container.Limit(resource);
        int64_t& largest = most[resource];
        if (container.init) {
          largest = std::max(largest, amount);
        } else {
          sum[resource] += amount;
        }
      }
    }
    for (const auto& [resource, amount] : most) sum[resource] = std::max(sum[resource], amount);
    return sum;
  }

  void Try(const std::string& uid, Task& task) {
    constexpr int64_t kBackoff = 500;
    constexpr int64_t kGivesUpAfter = 5'000;
    const std::vector<std::string> names = Candidates(task.pod);
    const std::vector<std::string_view> views(names.begin(), names.end());
    const PodFacts facts = FactsOf(task.pod);
    FilterAnswer answer;
    if (life_->host.cluster.readiness() == Readiness::kReady) {
      life_->host.engine.With(
          [&](Engine& engine, Instant now) { engine.Filter(facts.request, views, now, answer); });
    }
    task.due = network_.now() + kBackoff;
    if (answer.chosen.empty()) return;
    task.step = Task::Step::kBinding;
    task.assumed = names[answer.chosen.front()];
    task.due = network_.now() + kGivesUpAfter;
    task.asked = network_.now();
    const uint64_t attempt = ++task.attempt;
    // Weak: what a killed process never answers must not keep it.
    const std::weak_ptr<Life> asked = life_;
    life_->binder.Bind({task.pod.ns, task.pod.name}, PodUid(uid), NodeName(task.assumed),
                       [this, asked, uid, attempt](const BindAnswer& said) {
                         const std::shared_ptr<Life> life = asked.lock();
                         if (life == nullptr || !life->alive) return;
                         network_.Send(
                             1, [this, uid, attempt, said] { Answered(uid, attempt, said); });
                       });
  }

  void Answered(const std::string& uid, uint64_t attempt, const BindAnswer& said) {
    const auto found = tasks_.find(uid);
    if (found == tasks_.end()) return;
    Task& task = found->second;
    if (task.step != Task::Step::kBinding || task.attempt != attempt) return;
    outcome_.longest_answer_ms = std::max(outcome_.longest_answer_ms, network_.now() - task.asked);
    if (said.error.empty()) {
      task.step = Task::Step::kBound;
    } else {
      Refused(task, said.error);
    }
  }

  // ---- the end ----------------------------------------------------------------------------------

  bool Quiet() {
    constexpr int64_t kSettled = 5'000;  // longer than a bind takes to be given up
    if (created_ < size_.pods || !life_) return false;
    for (const fakes::FakePod& pod : pods_.Pods()) {
      if (!pod.ended()) {
        quiet_since_ = network_.now();
        return false;
      }
    }
    return network_.now() - quiet_since_ > kSettled;
  }

  ScenarioOutcome Collect() {
    for (const fakes::FakeKubelet& kubelet : kubelets_) outcome_.kubelets += kubelet.report();
    outcome_.deleted = deleted_;
    outcome_.early_ends = agent_->early_ends();
    for (const fakes::FakePod& pod : pods_.Pods()) {
      if (pod.lasts) {
        ++outcome_.placeholders_left;
        continue;
      }
      if (pod.phase == fakes::FakePhase::kSucceeded) {
        ++outcome_.succeeded;
      } else if (pod.phase == fakes::FakePhase::kFailed) {
        ++outcome_.failed;
      } else {
        ++outcome_.stuck;
      }
      outcome_.double_posts += std::max(pod.binding_posts - 1, 0);
    }
    constexpr const char* kLock = "hami.io/mutex.lock";
    outcome_.lock_writes = pods_.NodeWrites(kLock);
    for (const fakes::FakeNode& node : pods_.Nodes()) {
      if (!node.Note(kLock).empty()) ++outcome_.locks_left;
    }
    if (life_) {
      life_->host.engine.With([this](Engine& engine, Instant) {
        const EngineTotals totals = engine.Totals();
        outcome_.slots_left =
            totals.agent_waiting + totals.agent_serving + totals.reservations + totals.pods_bound;
        outcome_.passed_over = totals.agent_passed_over;
        outcome_.faults = engine.Audit();
      });
    }
    return outcome_;
  }

  const Driver& driver_;
  const Troubles troubles_;
  const ScenarioSize size_;
  Network network_;
  ManualClock clock_{ScenarioStart()};
  fakes::FakePods pods_;
  std::unique_ptr<fakes::NodeAgent> agent_;
  std::deque<fakes::FakeKubelet> kubelets_;
  std::vector<std::shared_ptr<Life>> lives_;
  std::shared_ptr<Life> life_;  // null: killed and not started again yet
  int64_t reborn_at_ = 0;
  std::map<std::string, Task> tasks_;  // by uid
  int created_ = 0;
  int deleted_ = 0;
  int kills_ = 0;
  bool done_ = false;
  int64_t quiet_since_ = 0;
  ScenarioOutcome outcome_;
};

}  // namespace tranche
