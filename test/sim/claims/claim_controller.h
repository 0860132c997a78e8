// kube-controller-manager's controller of resource claims: makes the claims that pods want of
// templates, and takes away reservations of pods that ended, allocations nobody uses and claims
// whose pods are over. The garbage collector's part in that is done here too.
//
// Source: dra section 4; kubernetes resourceclaim/controller.go. Simplified: the finalizer that
// keeps a claim in use from going is there from its beginning, not from its allocation.
//
// Thread rule: one thread.
#pragma once

#include <map>
#include <set>
#include <string>

#include "test/sim/claims/claim_reads.h"
#include "test/sim/cluster/api_server.h"
#include "test/sim/world/informer.h"

namespace tranche::sim {

class ClaimController {
 public:
  ClaimController(Loop& loop, ApiServer& api, uint64_t seed);
  void Start();

 private:
  void HearPod(const Change& change);
  void HearClaim(const Change& change);
  void Later(const std::string& key);
  // One claim as it is stored now.
  void Sync(const std::string& key);
  void MakeClaims(const std::string& pod_key);
  // A pod that has a node keeps its allocated claims, whoever gave it the node.
  void ReserveFor(const Stored& pod);
  void NoteMade(const std::string& pod_key, const std::string& name, const std::string& claim);
  // Null: it is gone.
  StoredPtr PodOf(const std::string& uid) const;
  // Has the pod of that uid ended, or is it gone?
  bool IsOver(const std::string& uid) const;
  void Put(const Stored& claim, Json object, const char* subresource);

  Loop& loop_;
  ApiServer& api_;
  Draws draws_;
  const Actor self_;
  std::map<std::string, std::set<std::string>> uses_;  // pod's uid -> keys of claims
  std::set<std::string> due_;                          // keys of claims
  std::set<std::string> making_;                       // "pod uid/name"
  std::map<std::string, Json> statuses_;               // of what was made, by the pod's uid
  int64_t names_ = 0;
  Informer pods_;
  Informer claims_;
};

// Keeps a claim that is in use from going.
inline constexpr const char* kClaimFinalizer = "resource.kubernetes.io/delete-protection";

}  // namespace tranche::sim
