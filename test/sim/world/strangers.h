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
#include <functional>
#include <string>
#include <vector>

#include "test/sim/base/faults.h"
#include "test/sim/base/script.h"
#include "test/sim/cluster/api_server.h"
#include "test/sim/world/fleet.h"
#include "test/sim/world/pod_shapes.h"
#include "test/sim/world/scheduler_cache.h"
#include "test/sim/world/tenants.h"

namespace tranche::sim {

// Pods that an earlier installation of Tranche placed, which was removed together with its ledger:
// they run on, with records of its epochs. Some have a field of a form that only later versions of
// Kubernetes know: alpha fields may change in any way (kubernetes.io/docs/reference/using-api/
// deprecation-policy, rule 4). On nodes of HAMi, whose cards are told apart.
//
// Source: hazards section E (a volume that is lost with its claim).
using Adopt = std::function<void(const Machine& machine, const Stored& pod, Json devices)>;
void PutRemains(ApiServer& api, const std::vector<Machine>& machines, const Tenants& tenants,
                const Adopt& adopt, Draws draws);
// What is of no form that we can read; nobody knows what such a pod asked for.
inline constexpr const char* kLaterField = "schedulingGroup";

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
