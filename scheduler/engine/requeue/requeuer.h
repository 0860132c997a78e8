// Which waiting pods to requeue after capacity or quota became free.
//
// kube-scheduler tries a refused pod again when an event might help. It may hear of an event before
// we do, ask at once, and be refused on books that do not know yet; then no further event comes on
// a quiet cluster, and the pod waits for the next flush, minutes away. And a node that opens again
// because time has passed is no event at all. Externally synchronised, as the state is. Cost:
// O(pods refused lately) selections at most, eight or sixteen that succeed.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/engine/selection/foreseen_charges.h"
#include "scheduler/engine/selection/selection.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/kept_room.h"
#include "scheduler/engine/teams/namespace_use.h"
#include "scheduler/engine/teams/team_queue.h"
#include "scheduler/engine/teams/team_rules.h"

namespace tranche {

class Requeuer {
 public:
  Requeuer(ClusterState& cluster, NamespaceUse& namespaces, TeamRules& rules,
           const TeamQueue& team_queue, Selection& selection, ForeseenCharges& foreseen,
           const KeptRoom& kept)
      : cluster_(cluster),
        namespaces_(namespaces),
        rules_(rules),
        team_queue_(team_queue),
        selection_(selection),
        foreseen_(foreseen),
        kept_(kept) {}

  // No node fitted the pod.
  void NoteRefused(const PodUid& uid, Instant now);
  // Room may have appeared on the node.
  void NoteRoom(NodeId id, Instant now);
  // The node takes pods again, because of time or of us.
  void NoteReopened(NodeId id, Instant now);
  // Other objects than the node's own say something else of it now.
  void NoteRetold(NodeId id, Instant now);
  // Other classes, policies or pools are in force: pods that were refused by their rules, and that
  // fit now.
  void NoteOtherRules(Instant now);
  // Pods that quota refused and that would be let in now.
  void Admitted(Instant now);
  // The pod, if some node takes it now; true: one does.
  bool IfFits(const PodUid& uid, Instant now);
  // Pods that wait for room in the namespace's ResourceQuotas.
  void Capped(const std::string& ns, Instant now);
  // The pod holds nothing of these any more.
  void NoteCapRelease(const PodUid& uid, Instant now);
  // Those whose news came too soon after they were last brought back, once that is long enough ago.
  void Tend(Instant now);
  std::optional<Instant> Due() const;

 private:
  bool OnNode(const PodUid& uid, NodeId id, Instant now);
  std::string LikenessOf(const PodUid& uid);
  bool RefusedEverywhere(const PodUid& uid, Instant now);

  ClusterState& cluster_;
  NamespaceUse& namespaces_;
  TeamRules& rules_;
  const TeamQueue& team_queue_;
  Selection& selection_;
  ForeseenCharges& foreseen_;
  const KeptRoom& kept_;
  std::deque<std::pair<Instant, PodUid>> refused_lately_;  // by filter, oldest first
  std::set<std::pair<Instant, PodUid>> put_off_;           // no event follows that tells them
  std::vector<NodeId> ids_;                                // scratch
};

}  // namespace tranche
