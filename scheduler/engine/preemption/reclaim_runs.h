// Reclaims under way: evictions one by one, each after another look at the plan; what is freed
// stays with the preemptor until it comes, is gone, or has had its time.
//
// Externally synchronised, as the state is. Cost: a look at a plan costs what planning costs on its
// own nodes; the rest O(victims).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "scheduler/engine/preemption/reclaim_case.h"
#include "scheduler/engine/requeue/nominations.h"
#include "scheduler/engine/requeue/requeuer.h"
#include "scheduler/engine/state/earmarks.h"
#include "scheduler/engine/state/kept_room.h"

namespace tranche {

// The victim was evicted, or holds nothing any more.
inline bool IsTaken(const ReclaimVictim& victim) {
  return victim.evicted_at.has_value() || victim.gone_at.has_value();
}

class ReclaimRuns {
 public:
  ReclaimRuns(const PlanParts& parts, PreemptionState& reclaims, Earmarks& earmarks,
              const KeptRoom& kept, TeamRules& rules, Requeuer& requeue, Nominations& nominations,
              const Gangs& gangs, PreemptorQueue& preemptors)
      : parts_(parts),
        cluster_(parts.cluster),
        guards_(parts.guards),
        selection_(parts.selection),
        reclaims_(reclaims),
        earmarks_(earmarks),
        kept_(kept),
        rules_(rules),
        requeue_(requeue),
        nominations_(nominations),
        gangs_(gangs),
        preemptors_(preemptors) {}

  // Unique and a DNS label: time tells apart what a restart has forgotten.
  std::string NameOf(const std::string& stem, Instant now);
  // Takes the plan up and asks the first victim to leave.
  void Begin(Reclaim reclaim, Instant now);
  ReclaimVictim VictimOf(const PodUid& uid, int64_t lost, Instant now) const;
  // How an eviction ended.
  void Settle(const std::string& name, const PodUid& uid, EvictionOutcome outcome,
              std::optional<Millis> retry_after, Instant now);
  void Tend(Instant now);
  std::optional<Instant> Due(Instant now) const;

  // ---- news about pods
  void NoteVictimLeaving(const PodUid& uid, Instant now);
  // A pod holds nothing any more, or is no more.
  void NoteVictimGone(const PodUid& uid, Instant now);
  void NoteMemberGone(const PodUid& uid, Instant now);
  void NoteMemberPlaced(const PodUid& uid, const NodeName& node, Instant now);
  // The devices that are kept for it are no more.
  void NoteRoomLost(const PodUid& uid, Instant now);
  // The pod's reservation has ended without a bind: what was made for it stays its own.
  void NoteMemberReturned(const PodUid& uid, Instant now);

  // ---- restarts
  // What GPUReclaim objects told at start.
  void Restore(std::vector<Reclaim> list);
  // Unfinished ones go on.
  void Continue(Instant now);

 private:
  // Tells how long it had waited, once it is bound.
  void NoteStart(const PodUid& uid, PodRecord& record, Instant now);
  std::optional<Instant> MostPatience(const ReclaimVictim& victim) const;
  void NextEviction(const std::string& name, Instant now);
  // The eviction of that victim was taken: reclaims that waited for the answer go on.
  void WakeRivals(const std::string& name, const PodUid& uid, Instant now);
  // Does the plan of a reclaim still hold? Drops victims that are no longer needed.
  bool Revalidate(Reclaim& reclaim, Instant now);
  bool LookAgain(Reclaim& reclaim, Instant now);
  // What a look at a plan found: what the members get now, and which victims may stay.
  struct Outlook {
    // Of the members that wait; empty: the plan does not hold.
    std::vector<ReclaimCase::Seat> seats;
    bool needs_nobody = false;
  };
  Outlook Judge(const Reclaim& reclaim, const Preemptor& preemptor, const std::vector<PodUid>& left,
                Instant now);
  // Keeps for the members that wait what they would get now.
  void MoveRoom(Reclaim& reclaim, const std::vector<ReclaimCase::Seat>& seats,
                const QuotaMembership& membership, Instant now);
  bool StillReleases(Reclaim& reclaim, const std::vector<PodUid>& left, Instant now);
  bool StillEnds(const Reclaim& reclaim, const std::vector<PodUid>& left, Instant now) const;
  bool GangIsToGo(const Reclaim& reclaim, const std::vector<PodUid>& left) const;

  // ---- victims that are gangs (reclaim_gangs.cc)
  // What tells us that a member was evicted. kUs: this process had it evicted. kRecord: a record
  // that was read at a start says so, and anybody may have written that. A gang whose size is not
  // known counts as broken by a record only where one of its pods is seen leaving.
  enum class Witness : uint8_t { kUs, kRecord };
  Witness WitnessOf(const std::string& reclaim) const;
  // Keys of gangs of which members were evicted and fewer than they need stay: the rest goes too.
  std::set<std::string> BrokenGangs(const Reclaim& reclaim, Witness witness) const;
  // More of the gang have gone, or are going, than it can spare.
  bool IsShort(const std::string& gang, Witness witness) const;
  // The reclaim has ended: what it has broken is evicted whole.
  void EvictRests(const Reclaim& reclaim, const std::set<std::string>& broken, Instant now);
  // A restart may have come between the end of a reclaim and the record of what is left to do.
  void EvictRestsOfEnded(Instant now);
  // A victim's budget refused, or evicting is forbidden: is it asked again rather than given up?
  bool AsksAgain(const Reclaim& reclaim, ReclaimRun& run, const PodUid& uid, Millis pause,
                 Instant now) const;

  void Changed(Reclaim& reclaim);
  void Finish(Reclaim& reclaim, ReclaimPhase phase, std::string reason, Instant now);
  // Keeps devices for the members that wait, as the record says; false: that cannot be done.
  bool Reearmark(Reclaim& reclaim, Instant now);
  void SeeIfReserved(Reclaim& reclaim, Instant now);
  // Would the pod be taken where its room is kept?
  bool FitsItsEarmark(const ReclaimMember& member, Instant now);
  // Tells kube-scheduler where the members that wait are to go: once all that makes their room is
  // on its way out, since it counts them there from then on. While somebody's room is ready on a
  // node, nobody else is nominated to it.
  void TellNominations();
  // Takes back what was told of the pod.
  void Unnominate(const ReclaimMember& member);
  // The API server took it: history, and what the owner is due.
  void NoteEvicted(const std::string& name, const PodUid& uid, Instant now);

  PlanParts parts_;
  ClusterState& cluster_;
  EvictionGuards& guards_;
  Selection& selection_;
  PreemptionState& reclaims_;
  Earmarks& earmarks_;
  const KeptRoom& kept_;
  TeamRules& rules_;
  Requeuer& requeue_;
  Nominations& nominations_;
  const Gangs& gangs_;
  PreemptorQueue& preemptors_;
  std::map<PodUid, NodeName> told_;  // members of plans under way: where they are nominated
  Picks picks_;
};

}  // namespace tranche
