// Pods that use claims: as the cluster shows them, and those that quota keeps waiting.
//
// Externally synchronised, as the state is. Cost: a round of Tend asks quota for at most 64 pods.
#pragma once

#include <optional>
#include <vector>

#include "scheduler/engine/claims/claim_books.h"
#include "scheduler/engine/claims/claim_charges.h"
#include "scheduler/engine/claims/claim_wishes.h"
#include "scheduler/engine/state/answers.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/teams/team_rules.h"
#include "scheduler/facts/pod_facts.h"

namespace tranche {

class ClaimPods {
 public:
  ClaimPods(ClusterState& cluster, ClaimBooks& books, TeamRules& rules, ClaimWishes& wishes,
            ClaimCharges& charges)
      : cluster_(cluster), books_(books), rules_(rules), wishes_(wishes), charges_(charges) {}

  void Note(const PodFacts& pod, bool ended, Instant now);
  void Forget(const PodUid& uid);
  // A pod that may have used claims has gone from its node.
  void NoteGone(const PodUid& uid, Instant now);
  // Lets pods in for which there is quota now, and ends what is kept too long.
  void Tend(Instant now);
  std::optional<Instant> Due() const;
  // What it would cost, and whether quota lets it in, before there is a pod.
  ClaimForecast Forecast(const PodRequest& request, const dra::PodClaims& claims, Instant now);

 private:
  // The first answer of quota on any node; kNone: one lets it in.
  Reason AskAnywhere(const RequestContext& context, const ClaimWish& wish, Instant now,
                     std::vector<ModelCharge>& parts, std::optional<Instant>& eligible_at);
  void LetIn(Instant now);

  ClusterState& cluster_;
  ClaimBooks& books_;
  TeamRules& rules_;
  ClaimWishes& wishes_;
  ClaimCharges& charges_;
};

}  // namespace tranche
