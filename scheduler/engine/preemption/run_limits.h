// Work that has to end at some time, and that its owner is told before: its class says how long it
// may run (GPUClass maxRuntime) or do nothing (idleAfter), maintenance of its node that drains
// begins (GPUPool windows), its node is about to be taken away (GPUPolicy onInterruption), its GPU
// is unhealthy and stays so (GPUPolicy onUnhealthy), or its node is emptied (GPUPolicy consolidate,
// mig.window).
//
// Of maxRuntime the time counts from the start of the containers, else from the bind. Maintenance
// asks early enough for the grace of the class. It, notices and unhealthy GPUs never ask classes
// that are never preempted. From a node that is emptied only work goes that may be moved, see
// MayBeMoved. Nobody is asked to leave who was not warned a while before, but where the node is
// about to go: also after an edit, and after a restart of ours, which does not know who was. Pods
// that use claims end as others do, each for itself; whether their GPUs work or are well is not
// known.
//
// Externally synchronised, as the state is. Cost: O(log pods) a note; O(pods that hold devices)
// for Regroup, those of the node for NoteNode.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "scheduler/engine/claims/claim_books.h"
#include "scheduler/engine/claims/claim_holders.h"
#include "scheduler/engine/state/cluster_state.h"

namespace tranche {

// When, why and by whose word work has to end.
struct RunEnd {
  Instant at;
  Millis notice{};                              // so long before, its owner is told
  ReclaimRule rule = ReclaimRule::kMaxRuntime;  // another of which EndsByItself is true
  std::string source;                           // the GPUClass, the GPUPool, or the node
};
// So long before it has to leave a node that is emptied, work is told.
inline constexpr Millis kEmptyingNotice{600'000};
// Work whose checkpoint is no older loses little by being moved.
inline constexpr Millis kFreshCheckpoint{900'000};

// May the pod be moved by the rule: is it made anew by somebody, no member of a gang, of a class
// that is preempted, and borrowed or of no team? To consolidate also what its team is entitled to,
// while its checkpoint is fresh. As the work was marked when marks were last refreshed.
bool MayBeMoved(const ClusterState& cluster, ReclaimRule rule, const PodRecord& record,
                const HeldWork& work);

// The earliest; nullopt: it may run on.
std::optional<RunEnd> RunEndOf(const ClusterState& cluster, const PodRecord& record,
                               const HeldWork& work);

// Notes which GPUs of the node are unhealthy. True: others than before.
bool NoteHealth(ClusterState& cluster, NodeId id, Instant now);

// Notes whether the node, which is known, is about to be taken away. True: otherwise than before.
bool NoteInterruption(ClusterState& cluster, NodeId id, Instant now);

class RunLimits {
 public:
  RunLimits(ClusterState& cluster, const ClaimBooks& books, const ClaimHolders& claims)
      : cluster_(cluster), books_(books), claims_(claims) {}

  // nullopt: it may run on, or holds nothing that anybody knows of.
  std::optional<RunEnd> EndOf(const PodUid& uid) const;

  // The pod holds devices, began to run, or to be idle, or is idle no more.
  void Note(const PodUid& uid);
  void Forget(const PodUid& uid);
  // Other classes are in force, or the clock was set.
  void Regroup();
  // The node has another window now, or other GPUs are unhealthy.
  void NoteNode(NodeId id);
  // Warns whose time is nearly over.
  void Tend(Instant now);
  // A pod whose time is over, the longest over first; nullopt: none.
  std::optional<PodUid> Next(Instant now) const;
  // Nothing can be done about it before then.
  void Postpone(const PodUid& uid, Instant until);
  // When Tend or Next has something to do.
  std::optional<Instant> Due() const;

 private:
  using Dues = std::set<std::pair<Instant, PodUid>>;
  struct Limit {
    Instant end;
    Instant due;  // when it is to be warned, then when it is to leave
    bool warned = false;
  };
  Dues& DuesOf(const Limit& limit) { return limit.warned ? ends_ : warnings_; }
  void Put(const PodUid& uid, Limit& limit, Instant due);

  ClusterState& cluster_;
  const ClaimBooks& books_;
  const ClaimHolders& claims_;
  std::map<PodUid, Limit> limits_;
  Dues warnings_;  // of those that were not warned
  Dues ends_;      // of those that were
};

}  // namespace tranche
