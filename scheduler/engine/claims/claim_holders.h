// Pods that hold GPUs by resource claims, as work that may have to leave.
//
// A claim gives its devices back when everybody who uses it is gone: its users are evicted
// together. Reads the state; externally synchronised, as it is. Cost: a look-up; UsersOf O(users of
// the claim), WorkOf of a pod O(its claims and their devices).
#pragma once

#include <optional>
#include <vector>

#include "quota/quota_book.h"
#include "scheduler/engine/claims/claim_books.h"
#include "scheduler/engine/state/cluster_state.h"

namespace tranche {

// The key of a claim in the quota's books.
inline bool IsKeyOfClaim(const PodUid& key) { return key.str().starts_with("claim/"); }

class ClaimHolders {
 public:
  ClaimHolders(ClusterState& cluster, ClaimBooks& books) : cluster_(cluster), books_(books) {}

  // The pod, whatever way it asks for GPUs. Null: it is not known.
  PodRecord* Find(const PodUid& uid) const;
  // What the pod holds: by itself, else by the first of its claims. The class and the name are its
  // own; the charge may be a part of it. nullopt: nothing.
  std::optional<HeldWork> WorkOf(const PodUid& uid) const;
  // What a claim holds, as the work of a pod that uses it.
  HeldWork AsWorkOf(const PodRecord& record, const HeldWork& claim) const;
  // The pods that use the claim with that key, ascending; WorkOf tells what each of them holds.
  // Empty: all who did have gone, and it is about to be deallocated. nullopt: nobody uses it, or
  // one who is said to is not known to.
  std::optional<std::vector<PodUid>> UsersOf(const PodUid& key) const;
  // The charge of a claim becomes one of the work of a pod that uses it.
  static void AddTo(HeldWork& work, const HeldWork& claim);

 private:
  // What the first of its claims that is charged holds; null: none is.
  const HeldWork* FirstClaimOf(const ClaimingPod& pod) const;

  ClusterState& cluster_;
  ClaimBooks& books_;
};

}  // namespace tranche
