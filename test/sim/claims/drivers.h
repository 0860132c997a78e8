// NVIDIA's DRA driver on each node that has one: publishes the machine's devices, anew when it was
// restarted, slice by slice, so that a pool is incomplete for a moment. The slices of a node that
// is gone are collected some time later.
//
// Faults (kAgent): a driver is away and so are its slices; a device is away, as if unhealthy.
//
// Source: dra sections 2, 3 and 5; kubelet's plugin manager (slices of a driver that is gone).
//
// Thread rule: one thread.
#pragma once

#include <map>
#include <set>
#include <string>

#include "test/sim/base/faults.h"
#include "test/sim/base/history.h"
#include "test/sim/base/script.h"
#include "test/sim/cluster/api_server.h"
#include "test/sim/world/fleet.h"

namespace tranche::sim {

class Drivers {
 public:
  Drivers(Loop& loop, History& history, Script& script, const FaultPlan& faults, ApiServer& api,
          uint64_t seed);

  void Start();
  void Quiet();
  void Joined(const Machine& machine);
  void Left(const std::string& node);

 private:
  struct Driver {
    Machine machine;
    int slices = 1;
    std::set<std::string> away;  // names of devices
    bool gone = false;           // the driver itself
    int64_t number = 0;          // of the node's life
  };

  void Disturb();
  void Publish(const std::string& node);
  void Withdraw(const std::string& node, int64_t number);
  void Mend(const std::string& node, int64_t number);
  void Tell(const std::string& node, const std::string& text);
  void Send(const Json& slice);

  Loop& loop_;
  History& history_;
  Script& script_;
  const int rate_;
  ApiServer& api_;
  Draws draws_;
  const Actor self_;
  bool quiet_ = false;
  int64_t numbers_ = 0;
  std::map<std::string, Driver> drivers_;       // by node
  std::map<std::string, int64_t> generations_;  // of pools, for good
};

}  // namespace tranche::sim
