// Schedulers of others on the same nodes: they place pods by what nodes advertise and what they saw
// a while ago, and ask nobody; and people who write spec.nodeName themselves.
//
// Fault: kStrangers.
//
// Source: hazards row 12.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>

#include "test/sim/base/faults.h"
#include "test/sim/base/script.h"
#include "test/sim/cluster/api_server.h"
#include "test/sim/world/pod_shapes.h"
#include "test/sim/world/scheduler_cache.h"

namespace tranche::sim {

inline constexpr const char* kAnotherScheduler = "another-scheduler";

class Strangers {
 public:
  Strangers(Loop& loop, Script& script, const FaultPlan& faults, ApiServer& api, std::string ns,
            ShapeRules rules);

  void Start();
  void Quiet() { quiet_ = true; }

 private:
  void Come();
  void Place(const std::string& name, Draws draws);

  Loop& loop_;
  Script& script_;
  const int rate_;
  ApiServer& api_;
  const std::string ns_;
  const ShapeRules rules_;
  const Actor self_;
  int64_t names_ = 0;
  bool quiet_ = false;
};

}  // namespace tranche::sim
