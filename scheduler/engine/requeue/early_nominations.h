// Nodes that kube-scheduler is told before it asks (ADR 0051).
//
// kube-scheduler tries status.nominatedNodeName on that node alone, with all its filters and us,
// and looks at the whole fleet only where the node does not do. So a pod that waits behind others
// is chosen a node while it waits: what a filter call would answer first, placed tentatively, and
// told. Nothing is kept for it: whoever finds no other room takes that, quota is asked at the bind,
// and a node that no longer holds is taken back, since kube-scheduler counts such a pod there.
//
// Told are pods that were never asked about, in kube-scheduler's own order, and only such that it
// weighs by nothing we cannot see. Externally synchronised, as the state is. Cost: a selection for
// each pod that is told; a look at each of `kMostTold` a second.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "scheduler/engine/selection/selection.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/preemption_state.h"
#include "scheduler/engine/state/views.h"
#include "scheduler/engine/teams/team_rules.h"

namespace tranche {

class EarlyNominations {
 public:
  EarlyNominations(ClusterState& cluster, const PreemptionState& reclaims, TeamRules& rules,
                   Selection& selection)
      : cluster_(cluster), reclaims_(reclaims), rules_(rules), selection_(selection) {}

  // The cluster shows the pod so. One that kube-scheduler could not place without asking us is told
  // nothing more: it lacks what we do not know of, and counts on its node as long as it is
  // nominated.
  void Note(const PodUid& uid, const PodRecord& record, Instant now);
  // kube-scheduler has asked about it and these nodes; `fits`: some of them do.
  void NoteAsked(const PodUid& uid, const std::vector<NodeId>& offered, bool fits, Instant now);
  void Forget(const PodUid& uid);
  // Tells the next pods in line, after looking at `most` of them.
  void TellNext(int most, Instant now);
  // What no longer holds is taken back.
  void Tend(Instant now);
  // When Tend has something to do; nullopt: nobody is told anything.
  std::optional<Instant> Due() const;

  // The pod is nominated there by us, ahead of its turn.
  bool IsTold(const PodUid& uid, const NodeName& node) const {
    const auto found = told_.find(uid);
    return found != told_.end() && found->second.node == node;
  }
  EarlyTotals totals() const;

 private:
  // As kube-scheduler takes them: by priority, then as they came. It hears of them in our order.
  using Place = std::tuple<int64_t, uint64_t, PodUid>;
  struct Told {
    NodeName node;
    Place place;
    Instant since;
    QuotaId leaf = kNoQuota;
    std::vector<ModelCharge> charge;
    std::optional<Instant> asked;  // kube-scheduler has asked about it
  };
  // Nodes with what a spec demands, while no node changes.
  struct Suiting {
    uint64_t inventories = 0;
    uint64_t last_used = 0;
    std::vector<NodeId> nodes;
  };

  bool MayBeTold(const PodUid& uid, const PodRecord& record);
  void LeaveLine(const PodUid& uid);
  const std::vector<NodeId>& NodesFor(const PodRequest& request);
  // The first that is far enough behind; the end: none is.
  std::set<Place>::iterator NextInLine();
  void Choose(const Place& place, PodRecord& record, Instant now);
  // What its team has left is enough for it and those told before it.
  bool QuotaCovers(const RequestContext& context, NodeId id, Told& told, Instant now);
  // It may still go there, and is placed there tentatively.
  bool Renew(const PodUid& uid, const Told& told, Instant now);
  void TakeBack(const PodUid& uid, const Told& told, Instant now);
  void Retract(const PodUid& uid, Instant now);
  void CountAnswer(bool refused, Instant now);

  ClusterState& cluster_;
  const PreemptionState& reclaims_;
  TeamRules& rules_;
  Selection& selection_;

  std::set<Place> line_;
  uint64_t arrivals_ = 0;
  std::size_t head_ = 8;                      // of the line: left to kube-scheduler
  std::unordered_map<PodUid, Place> places_;  // of those in line
  std::map<PodUid, Told> told_;
  std::set<Place> awaited_;  // of those told: kube-scheduler has not asked yet
  std::unordered_map<std::string, Suiting> suiting_;  // by constraints
  uint64_t suiting_clock_ = 0;
  Instant tended_;
  // Of the last answers; where many were refused, nobody is told anything for a while.
  int answers_ = 0;
  int refusals_ = 0;
  std::optional<Instant> paused_until_;
  EarlyTotals totals_;
};

}  // namespace tranche
