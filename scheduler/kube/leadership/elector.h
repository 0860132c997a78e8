// Takes part in the election by a Lease: asks and writes what LeaseMachine wants, and says when
// this process begins to lead and when it must end.
//
// A thread, an event loop and connections of its own: renewing never waits behind anything else.
// A try has half of the renew deadline.
//
// Thread rule: Start and Stop from one thread; hooks come on the elector's thread, must not block
// and must not call Stop; the rest from any.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "scheduler/kube/leadership/grant.h"
#include "scheduler/kube/leadership/lease.h"
#include "scheduler/kube/transport/options.h"

namespace tranche::kube {

struct ElectorOptions {
  Options client;  // how to reach the API server; its may_write is not asked
  std::string ns;
  std::string name;
  std::string identity;  // of this process and no other, ever
  LeaseTimes times;
};

// Host name (in a pod, the pod's) and a random part, new on every start.
std::string NewIdentity();

class Elector {
 public:
  struct Hooks {
    // Epochs below this were already used, whatever the lease says; `next`: what follows by it.
    std::function<int64_t(int64_t next)> least_epoch;
    // Once: the grant holds, and goes on to hold until `lost`.
    std::function<void(int64_t epoch)> gained;
    // Once, after `gained`: the grant has ended for good.
    std::function<void(const std::string& why)> lost;
  };
  struct Status {
    bool leading = false;
    std::string holder;       // as the lease said last
    int64_t transitions = 0;  // likewise: how often it changed hands
  };

  // `grant` is kept in step with the lease. Both outlive this.
  Elector(ElectorOptions options, Grant& grant, Hooks hooks);
  ~Elector();
  void Start();
  enum class Lease : uint8_t { kKeep, kRelease };
  // Ends without a further word: no hook comes after. With kRelease a leader gives the lease back,
  // so that the next one need not wait for its end; the guarded work must be over. Idempotent.
  void Stop(Lease lease);
  Status status() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tranche::kube
