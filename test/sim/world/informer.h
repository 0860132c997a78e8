// What one process knows of one resource: every change some time after it happened, in order.
//
// Source: kube-client-protocol section 6 (order holds within one resource, never across two).
//
// Thread rule: one thread; tells in steps of its actor. Lives as long as the store.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "test/sim/base/draws.h"
#include "test/sim/base/loop.h"
#include "test/sim/cluster/store.h"

namespace tranche::sim {

class Informer {
 public:
  using Hear = std::function<void(const Change&)>;

  // Behind by 1 to `most_lag`.
  Informer(Loop& loop, Store& store, std::string resource, SimTime most_lag, uint64_t seed,
           Hear hear);

  // Begins, or begins anew as a new process: all there is first, as added.
  void Start(Actor actor);
  void Stop();
  // Further behind from now on.
  void set_extra_lag(SimTime lag) { extra_lag_ = lag; }

 private:
  void Take(const Change& change);
  void Wake();
  void Tell(uint64_t life);

  Loop& loop_;
  Store& store_;
  const std::string resource_;
  const SimTime most_lag_;
  Draws draws_;
  const Hear hear_;
  Actor actor_ = 0;
  uint64_t life_ = 0;
  bool started_ = false;
  bool awake_ = false;
  SimTime extra_lag_{0};
  SimTime last_due_{0};
  std::deque<std::pair<SimTime, Change>> queue_;  // due
};

}  // namespace tranche::sim
