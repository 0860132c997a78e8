// Everybody but Tranche: the API server, kube-schedulers, kubelets and agents, controllers, users,
// autoscalers. Each model names the source of its rules.
//
// The world begins when Start is called. Pods arrive until as many were made as asked for; Quiet
// ends arrivals, deliberate acts and faults, and mends what is broken (nodes come back, cordons go,
// watches are fresh), so that whoever is entitled and fits must run soon.
//
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <memory>

#include "test/sim/base/faults.h"
#include "test/sim/base/history.h"
#include "test/sim/base/loop.h"
#include "test/sim/base/net.h"
#include "test/sim/base/script.h"
#include "test/sim/cluster/store.h"

namespace tranche::sim {

// 0: drawn from the seed.
struct WorldOptions {
  uint64_t seed = 1;
  int64_t lives = 100;  // pods that users and owners make
  int nodes = 0;        // with GPUs: 3 to 12
  int schedulers = 0;   // kube-scheduler processes: 1 to 3
  // Pods run that an earlier installation placed, of which nothing else is left.
  bool has_remains = false;
};

class World {
 public:
  World(Loop& loop, History& history, Script& script, const FaultPlan& faults,
        WorldOptions options);
  ~World();

  ApiEndpoint& api();
  // `tranche` must outlive the world.
  void Start(TrancheEndpoint& tranche);
  // All pods that are to come have come.
  bool arrived() const;
  void Quiet();
  int64_t lives() const;  // pods made so far
  const Store& store() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tranche::sim
