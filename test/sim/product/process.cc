#include "test/sim/product/process.h"

namespace tranche::sim {

Process::Process(Loop& loop, std::string name, const MachineClocks& clocks, Draws draws)
    : loop_(loop),
      name_(std::move(name)),
      actor_(loop.NewActor(name_)),
      clocks_(clocks),
      draws_(draws) {}

Process::~Process() { Kill(); }

void Process::Kill() {
  *dead_ = true;
  loop_.End(actor_);
}

void Process::After(SimTime delay, std::function<void()> step) {
  if (dead()) return;
  loop_.After(delay, actor_, Wrap(std::move(step)));
}

void Process::At(int64_t boot, std::function<void()> step) {
  After(clocks_.Until(boot), [this, boot, step = std::move(step)]() mutable {
    // The clock may have been slower than it was when this was put off.
    if (clocks_.Boot() < boot) return At(boot, std::move(step));
    step();
  });
}

void Turns::At(int64_t boot) {
  wanted_.insert(boot);
  Arm();
}

void Turns::Arm() {
  if (wanted_.empty() || *wanted_.begin() >= armed_) return;
  armed_ = *wanted_.begin();
  // One that is woken now still waits for its turn.
  const bool now = armed_ <= process_.clocks().Boot();
  const auto come = [this, boot = armed_, here = std::weak_ptr<int>(here_)] {
    if (!here.expired()) Come(boot);
  };
  if (now) return process_.Soon(come);
  process_.At(armed_, come);
}

void Turns::Come(int64_t boot) {
  if (boot != armed_) return;  // an earlier one came between
  armed_ = INT64_MAX;
  wanted_.erase(wanted_.begin(), wanted_.upper_bound(process_.clocks().Boot()));
  turn_();
  Arm();
}

void ProcessTimers::After(std::chrono::milliseconds delay, std::function<void()> call) {
  calls_.emplace(Now() + delay, std::move(call));
  turns_.In(delay);
}

void ProcessTimers::CallFirst() {
  if (calls_.empty() || calls_.begin()->first > Now()) return;
  const std::function<void()> call = std::move(calls_.begin()->second);
  calls_.erase(calls_.begin());
  // Several may be due together, and a turn is one of them.
  if (!calls_.empty() && calls_.begin()->first <= Now()) turns_.In({});
  call();
}

void Chores::Do(std::function<void()> work) {
  works_.push_back(std::move(work));
  if (works_.size() == 1) process_.Soon([this] { DoFirst(); });
}

void Chores::DoFirst() {
  const std::function<void()> work = std::move(works_.front());
  work();
  works_.pop_front();
  if (!works_.empty()) process_.Soon([this] { DoFirst(); });
}

}  // namespace tranche::sim
