#include "test/sim/base/loop.h"

#include <algorithm>
#include <utility>

namespace tranche::sim {

void Loop::After(SimTime delay, Actor actor, std::function<void()> step) {
  const SimTime due = now_ + std::max(delay, SimTime{0});
  queue_.emplace(Key{due, draws_.Next(), ++number_}, Step{actor, std::move(step)});
}

void Loop::End(Actor actor) { states_[actor].ended = true; }

void Loop::Hold(Actor actor, SimTime until) {
  SimTime& held = states_[actor].held_until;
  held = std::max(held, until);
}

bool Loop::RunUntil(SimTime until, int64_t steps) {
  while (!queue_.empty()) {
    const auto first = queue_.begin();
    if (std::get<SimTime>(first->first) > until) break;
    if (steps-- == 0) return false;
    now_ = std::get<SimTime>(first->first);
    Step step = std::move(first->second);
    queue_.erase(first);
    const auto state = states_.find(step.actor);
    if (state != states_.end()) {
      if (state->second.ended) continue;
      if (state->second.held_until > now_) {
        After(state->second.held_until - now_, step.actor, std::move(step.work));
        continue;
      }
    }
    ++done_;
    step.work();
  }
  now_ = until;
  return true;
}

}  // namespace tranche::sim
