// From holdings to quota and the ledger's journal.
//
// A pod is charged from its reservation (or from when the cluster says it was bound) until it has
// ended. What the ledger had open before a restart is taken up again, never charged twice.
// Externally synchronised, as the state is. Cost: a look-up a call; Adopt, Restore and StepClock
// O(what is held).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/teams/earlier_numbers.h"
#include "scheduler/facts/metering.h"
#include "scheduler/facts/pod_facts.h"

namespace tranche {

// A use that is being charged, by its number among those of its pod or claim.
struct MeteredClaim {
  int interval = 0;
  NodeName node;
};

class Metering {
 public:
  explicit Metering(ClusterState& cluster) : cluster_(cluster) {}

  struct Start {
    Instant at;
    std::string demoted_by = {};  // as HeldWork::demoted_by
    bool estimated = false;       // nobody says when it began
    // What the same devices are charged already; empty: what their node says of them.
    std::vector<ModelCharge> parts = {};
  };
  // The pod's holding on the node is charged from then on, once.
  void Open(const PodUid& uid, PodRecord& record, NodeId id, Start start);
  void Close(const PodUid& uid, PodRecord& record, MeterKind kind, Instant at);
  // Gives quota back where a team's rule is not to wait for the end; true: it did.
  bool ReleaseEarly(const PodUid& uid, const PodFacts& pod);
  // Its containers run.
  void NoteRunning(const PodUid& uid, const PodFacts& pod);
  // The kubelet is heard of again: what was metered while nobody heard of it goes back.
  void EndOutage(NodeId id, Instant now);
  // Pods on the node whose devices nobody had told of before.
  void OpenUncharged(NodeId id, Instant now);
  // Work that no quota owned when it began, or whose quota is gone, comes under the one that owns
  // its namespace now, from now on: teams that get a quota while they run GPUs have used it, and
  // another name for a quota makes nobody's room twice as large.
  void Adopt(Instant now);
  // Of no leaf, or of one that is not declared.
  bool IsUnowned(const HeldWork& work) const;
  // A quota admitted it that is gone, and none owns its namespace.
  bool IsAbandoned(const HeldWork& work) const;
  // Such work, as far as it was told; ascending.
  std::vector<const HeldWork*> Abandoned() const;
  MeterEvent Event(MeterKind kind, const PodUid& uid, int interval, const NodeName& node,
                   const HeldWork& work, Instant at) const;

  // What the ledger remembers, before the first pod.
  void Restore(MeterHistory history);
  // The first complete set of pods is in: what the ledger had open and nobody holds has ended.
  void CloseUnclaimed(Instant now);
  // Every pod and claim there is was seen: of others nothing more will be metered.
  // `all_claims`: those there are, charged or not, by their keys.
  void ForgetGone(const std::set<PodUid>& all_claims);
  // Nothing was used between. A reservation, of which nobody knows whether it will have used
  // anything, moves with the clock as one use.
  void StepClock(Instant from, Instant to);

  std::map<PodUid, OpenInterval> unclaimed;  // held as the ledger says, no pod was seen yet
  EarlierNumbers earlier;                    // of pods metered before, by history
  std::map<PodUid, MeteredClaim> claims;     // by the key they have in the quota's books

 private:
  // What was metered of the pod until `until` while nobody heard of its node goes back.
  void RefundLost(const PodUid& uid, int interval, const NodeName& node, Instant until);
  // In-quota victims, those that publish checkpoints, and everybody whose node was taken away by
  // its cloud get back the hours of the work they lost.
  bool WasInterrupted(const PodRecord& record) const;
  void RefundLostWork(const PodUid& uid, const PodRecord& record, Instant at);
  void AddHistory(std::vector<MeterEvent>& events);
  // Of the uses that the ledger has open the newest of each pod, which goes on; the others end.
  std::vector<OpenInterval> EndOlder(std::vector<OpenInterval> open);
  // Reservations, whose uses are void until they are held again.
  std::vector<std::pair<PodUid, HeldWork>> LiftReservations();
  // Does a quota own the namespace of unowned work now?
  bool HasOwner(const PodUid& uid, const HeldWork& work);

  ClusterState& cluster_;
  std::set<PodUid> unowned_;  // work whose quota is gone, as was told
  Instant heartbeat_;         // of the ledger, at start
};

}  // namespace tranche
