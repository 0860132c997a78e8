// One life of one process of the product: its steps, the clocks they read, and what stands in for
// its threads.
//
// Whatever was put off is gone with the process: no step of a dead one ever runs.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "scheduler/host/timers.h"
#include "test/sim/base/draws.h"
#include "test/sim/base/loop.h"
#include "test/sim/product/clocks.h"

namespace tranche::sim {

class Process {
 public:
  // `name`: as in the history, "tranche-0/3". All references outlive it.
  Process(Loop& loop, std::string name, const MachineClocks& clocks, Draws draws);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const std::string& name() const { return name_; }
  Actor actor() const { return actor_; }
  bool dead() const { return *dead_; }
  Draws& draws() { return draws_; }
  Loop& loop() { return loop_; }
  const MachineClocks& clocks() const { return clocks_; }

  // A step, in so much time.
  void After(SimTime delay, std::function<void()> step);
  // A step, when the machine's boot clock says so.
  void At(int64_t boot, std::function<void()> step);
  // A step as soon as a thread gets to run.
  void Soon(std::function<void()> step) { After(Turn(), std::move(step)); }
  // How long a thread that may run waits for its turn: some 0.1 ms.
  SimTime Turn() { return SimTime{draws_.Between(1, 200)}; }
  // `call` as a part of the step that runs, by the clocks of this process; not if it is dead.
  template <typename... Arguments>
  auto Wrap(std::function<void(Arguments...)> call) {
    return [this, dead = dead_, call = std::move(call)](Arguments... arguments) {
      if (*dead) return;
      const ClockScope scope(clocks_);
      call(std::forward<Arguments>(arguments)...);
      if (!*dead && steps_left_ > 0 && --steps_left_ == 0) end_();
    };
  }
  // `end` comes right after so many more steps; 0: not at all. It must not destroy this.
  void EndAfter(int64_t steps, std::function<void()> end) {
    steps_left_ = steps;
    end_ = std::move(end);
  }
  // No step runs from now on.
  void Kill();

 private:
  Loop& loop_;
  const std::string name_;
  const Actor actor_;
  const MachineClocks& clocks_;
  Draws draws_;
  int64_t steps_left_ = 0;
  std::function<void()> end_;
  const std::shared_ptr<bool> dead_ = std::make_shared<bool>(false);
};

// A thread that is woken, or comes by itself at moments of the boot clock. May end before the
// process.
class Turns {
 public:
  Turns(Process& process, std::function<void()> turn) : process_(process), turn_(std::move(turn)) {}

  void At(int64_t boot);
  void In(std::chrono::nanoseconds time) { At(process_.clocks().Boot() + time.count()); }

 private:
  void Arm();
  void Come(int64_t boot);

  Process& process_;
  const std::function<void()> turn_;
  std::set<int64_t> wanted_;
  int64_t armed_ = INT64_MAX;  // the earliest step that is under way
  const std::shared_ptr<int> here_ = std::make_shared<int>();
};

// The thread of ThreadTimers: one call a step, in the order in which they are due.
class ProcessTimers : public Timers {
 public:
  explicit ProcessTimers(Process& process) : turns_(process, [this] { CallFirst(); }) {}
  Clock::time_point Now() const override { return Clock::now(); }
  void After(std::chrono::milliseconds delay, std::function<void()> call) override;

 private:
  void CallFirst();

  std::multimap<Clock::time_point, std::function<void()>> calls_;
  Turns turns_;
};

// A thread that does what it is given, one after another.
class Chores {
 public:
  explicit Chores(Process& process) : process_(process) {}
  void Do(std::function<void()> work);

 private:
  void DoFirst();

  Process& process_;
  std::deque<std::function<void()>> works_;
};

}  // namespace tranche::sim
