#include "test/sim/base/loop.h"

#include <algorithm>
#include <utility>

namespace tranche::sim {

void Loop::After(SimTime delay, Actor actor, std::function<void()> step) {
  const SimTime due = now_ + std::max(delay, SimTime{0});
  const uint64_t place = draws_.Next();
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(works_.size()));
    works_.emplace_back();
  }
  const uint32_t slot = free_.back();
  free_.pop_back();
  works_[slot] = std::move(step);
  queue_.push_back({due, place, ++number_, actor, slot});
  std::ranges::push_heap(queue_, std::greater<>());
}

void Loop::End(Actor actor) { states_[actor].ended = true; }

void Loop::Hold(Actor actor, SimTime until) {
  SimTime& held = states_[actor].held_until;
  held = std::max(held, until);
}

bool Loop::RunUntil(SimTime until, int64_t steps) {
  while (!queue_.empty()) {
    if (queue_.front().due > until) break;
    if (steps-- == 0) return false;
    std::ranges::pop_heap(queue_, std::greater<>());
    const Step step = queue_.back();
    queue_.pop_back();
    std::function<void()> work = std::exchange(works_[step.slot], nullptr);
    free_.push_back(step.slot);
    now_ = step.due;
    const auto state = states_.find(step.actor);
    if (state != states_.end()) {
      if (state->second.ended) continue;
      if (state->second.held_until > now_) {
        After(state->second.held_until - now_, step.actor, std::move(work));
        continue;
      }
    }
    ++done_;
    work();
  }
  now_ = until;
  return true;
}

}  // namespace tranche::sim
