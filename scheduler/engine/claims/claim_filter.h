// In which order kube-scheduler should take the nodes on which a pod's claims can be met.
//
// Externally synchronised, as the state is. Cost: a look-up a node, and a trial for each of at most
// kMostTrials nodes that claims of this kind were never tried on, or whose devices have changed
// since. Other such nodes are charged in full and come last, and are tried at the next calls.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/engine/claims/claim_books.h"
#include "scheduler/engine/claims/claim_charges.h"
#include "scheduler/engine/claims/claim_wishes.h"
#include "scheduler/engine/state/answers.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/teams/team_rules.h"

namespace tranche {

class ClaimFilter {
 public:
  static constexpr int kMostTrials = 512;

  ClaimFilter(ClusterState& cluster, ClaimBooks& books, TeamRules& rules, ClaimWishes& wishes,
              ClaimCharges& charges)
      : cluster_(cluster), books_(books), rules_(rules), wishes_(wishes), charges_(charges) {}

  // A pod without any other GPU wish. False: its claims are of no concern here.
  bool Filter(const PodRequest& request, std::span<const std::string_view> candidates, Instant now,
              FilterAnswer& answer);
  // Ranks of the last filter; false: there was none.
  bool Rank(const PodUid& uid, std::span<const std::string_view> candidates,
            std::vector<int>& ranks);

  // ---- extended resources ("nvidia.com/gpu: 1") on nodes where no device plugin but DRA serves
  // them: the pod is judged as any other, kube-scheduler makes a claim for it, and that claim is
  // charged.
  // Of the candidates (`ids`) refused because the device plugin shows no GPU there, those where DRA
  // serves what the pod asks for, go to the end of the chosen ones.
  void AddServed(const RequestContext& context, const std::vector<NodeId>& ids, std::size_t width,
                 Instant now, FilterAnswer& answer);
  // Was the node chosen that way?
  bool IsServed(const PodUid& uid, NodeId id) const;

 private:
  struct Place {
    std::pair<int64_t, uint32_t> order;  // cost, rank of the name
    uint32_t position = 0;
    NodeId node = kNoNode;
  };

  // Quota's answer to parts of the wish; `asked` remembers it by their number.
  Reason AskOnce(const RequestContext& context, const ClaimScores::Wish& scores, int parts,
                 Instant now, ClaimingPod& pod, std::vector<std::optional<Reason>>& asked);
  // The candidates nothing refuses, unordered; `wants` becomes true where some device would do.
  std::vector<Place> PlacesFor(const RequestContext& context, const ClaimWish& wish,
                               ClaimingPod& pod, Instant now, FilterAnswer& answer, bool& wants);
  // Where the scores of such claims are remembered; `own` where they cannot be for long.
  ClaimScores::Wish& ScoresOf(const ClaimWish& wish, ClaimScores::Wish& own);
  // What a call may spend on nodes it knows no score of.
  struct Trials {
    dra::StepBudget steps;
    int nodes = kMostTrials;
  };
  ClaimScores::Score ScoreOn(const ClaimWish& wish, NodeId id, ClaimScores::Wish& scores,
                             Trials& trials);

  ClusterState& cluster_;
  ClaimBooks& books_;
  TeamRules& rules_;
  ClaimWishes& wishes_;
  ClaimCharges& charges_;
  std::vector<NodeId> ids_;  // of the question at hand
};

}  // namespace tranche
