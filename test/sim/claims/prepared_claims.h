// What the driver on one node has prepared of resource claims for running pods: a claim's devices
// are given when its first pod here starts and taken back when its last one has ended.
//
// It tells the history kGranted and kReleased with the claim's key, as resource "resourceclaims".
//
// Source: dra section 4 (NodePrepareResources: a failure is tried again).
//
// Thread rule: one thread.
#pragma once

#include <map>
#include <set>
#include <string>

#include "test/sim/base/history.h"
#include "test/sim/cluster/store.h"
#include "test/sim/world/fleet.h"

namespace tranche::sim {

class PreparedClaims {
 public:
  // All outlive this.
  PreparedClaims(History& history, const Store& store, const Machine& machine)
      : history_(history), store_(store), machine_(machine) {}

  // False: one of the pod's claims is not allocated here, not reserved for it, or its devices are
  // not there.
  bool Prepare(const Stored& pod);
  void Unprepare(const std::string& pod_uid);

 private:
  struct Claim {
    std::string key;
    std::set<std::string> pods;  // uids
  };

  History& history_;
  const Store& store_;
  const Machine& machine_;
  std::map<std::string, Claim> claims_;  // by uid
};

}  // namespace tranche::sim
