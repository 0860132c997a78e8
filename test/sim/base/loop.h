// Simulated time and who does what when: every thread and process of the world is cut into steps,
// and the seed decides the order of those that are due together.
//
// A step runs to its end and takes no time. A process is an Actor; it can be ended, so that none of
// its steps ever runs again, or held, so that they run later (a pause longer than a lease).
//
// Thread rule: one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "test/sim/base/draws.h"

namespace tranche::sim {

using SimTime = std::chrono::microseconds;  // since the world began
using Actor = uint32_t;                     // one life of one process; never used again

class Loop {
 public:
  explicit Loop(uint64_t seed) : draws_(seed) {}

  SimTime now() const { return now_; }
  // `name`: who it is in the history, "tranche-0/3" (replica/life).
  Actor NewActor(std::string name = {}) {
    names_.push_back(std::move(name));
    return static_cast<Actor>(names_.size() - 1);
  }
  const std::string& NameOf(Actor actor) const { return names_.at(actor); }
  // Steps that are due at the same microsecond run in an order that the seed draws; what a step
  // gives itself with no delay runs after it.
  void After(SimTime delay, Actor actor, std::function<void()> step);
  void End(Actor actor);
  bool lives(Actor actor) const { return !states_.contains(actor) || !states_.at(actor).ended; }
  void Hold(Actor actor, SimTime until);

  // Does what is due up to `until`, and stands there. `steps`: at most so many; false: more were
  // due (somebody turns in circles).
  bool RunUntil(SimTime until, int64_t steps);
  int64_t steps() const { return done_; }

 private:
  struct State {
    bool ended = false;
    SimTime held_until{0};
  };
  struct Step {
    SimTime due;
    uint64_t place;   // among those of that time, drawn
    uint64_t number;  // makes it unique
    Actor actor;
    uint32_t slot;  // of works_

    bool operator>(const Step& other) const {
      return std::tie(due, place, number) > std::tie(other.due, other.place, other.number);
    }
  };

  Draws draws_;
  SimTime now_{0};
  std::vector<std::string> names_{std::string()};  // by actor; 0 is nobody
  uint64_t number_ = 0;
  int64_t done_ = 0;
  std::vector<Step> queue_;                   // a heap, the first step in front
  std::vector<std::function<void()>> works_;  // what stays where it is while the heap moves
  std::vector<uint32_t> free_;                // slots of works_
  std::map<Actor, State> states_;             // of those ended or held
};

}  // namespace tranche::sim
