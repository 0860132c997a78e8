// What resource claims are charged, and what quota is kept for those that were let in.
//
// A claim is charged once, to its own namespace, from its allocation until that ends. Externally
// synchronised, as the state is. Cost: O(devices of the claim).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "scheduler/engine/claims/claim_books.h"
#include "scheduler/engine/claims/claim_wishes.h"
#include "scheduler/engine/requeue/requeuer.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/teams/metering.h"
#include "scheduler/engine/teams/team_rules.h"

namespace tranche {

class ClaimCharges {
 public:
  ClaimCharges(ClusterState& cluster, ClaimBooks& books, TeamRules& rules, Metering& metering,
               Requeuer& requeue, ClaimWishes& wishes)
      : cluster_(cluster),
        books_(books),
        rules_(rules),
        metering_(metering),
        requeue_(requeue),
        wishes_(wishes) {}

  // Device classes, resource slices, claims and their templates.
  void Put(dra::Object object, Instant now);
  void Remove(const dra::ObjectRef& object, Instant now);
  // The first complete set of objects is in.
  void FinishRestore(Instant now);
  // Of every claim there is, its key in the books.
  std::set<PodUid> Keys() const;
  // Claims that no quota owned when they were allocated come under the one that owns them now.
  void Adopt(Instant now);

  // Quota that the wish would take on the node, for a moment.
  void Keep(const PodRequest& request, const ClaimWish& wish, NodeId id, Instant now);
  void Release(const PodUid& pod, const ClaimWish& wish);
  void Unkeep(const PodUid& key);

  // Where the claim's devices are.
  NodeName NodeOf(const dra::Claim& claim) const;

 private:
  void PutClaim(dra::Claim claim, Instant now);
  void Recharge(const dra::Claim& claim, Instant now);
  void RechargePool(const dra::PoolName& pool, Instant now);
  enum class Start { kSeen, kEstimated };
  void Open(const PodUid& key, const dra::Claim& claim, std::vector<ModelCharge> parts, Start start,
            Instant now);
  void Close(const PodUid& key, Instant now);
  const PodRecord* UserOf(const dra::Claim& claim) const;
  std::vector<ModelCharge> ChargeOf(const dra::Claim& claim) const;

  ClusterState& cluster_;
  ClaimBooks& books_;
  TeamRules& rules_;
  Metering& metering_;
  Requeuer& requeue_;
  ClaimWishes& wishes_;
};

}  // namespace tranche
