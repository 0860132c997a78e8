// Resource claims in words: who uses which devices, and why a pod with claims waits.
//
// Externally synchronised, as the state is. Cost: Explain tries an allocation on every node.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/engine/claims/claim_books.h"
#include "scheduler/engine/claims/claim_charges.h"
#include "scheduler/engine/claims/claim_wishes.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/views.h"
#include "scheduler/engine/teams/metering.h"
#include "scheduler/engine/teams/team_rules.h"

namespace tranche {

class ClaimViews {
 public:
  ClaimViews(ClusterState& cluster, const ClaimBooks& books, const Metering& metering,
             TeamRules& rules, ClaimWishes& wishes, const ClaimCharges& charges)
      : cluster_(cluster),
        books_(books),
        metering_(metering),
        rules_(rules),
        wishes_(wishes),
        charges_(charges) {}

  std::optional<Explanation> Explain(const PodName& pod, Instant now);
  PodView ViewPod(const PodUid& uid, const ClaimingPod& pod);
  // The cards of a node that only DRA serves.
  void ViewGpus(NodeId id, NodeView& view);
  std::vector<std::pair<PodUid, const ClaimingPod*>> WaitingPods() const;
  // What is charged or kept and should not be, a sentence each.
  void Audit(std::vector<std::string>& faults) const;

 private:
  struct CardViews;

  ResourceClaimView ViewClaim(const dra::Claim& claim);
  std::optional<Allocation> AllocationOf(const ClaimingPod& pod);
  NodeVerdict VerdictOn(const RequestContext& context, const ClaimWish& wish, bool pending,
                        NodeId id, ClaimOutlook& outlook, Instant now);
  void ViewDevice(const dra::DeviceBook& book, CardViews& cards);
  void ViewHolder(const dra::Claim& claim, CardViews& cards);

  ClusterState& cluster_;
  const ClaimBooks& books_;
  const Metering& metering_;
  TeamRules& rules_;
  ClaimWishes& wishes_;
  const ClaimCharges& charges_;
};

}  // namespace tranche
