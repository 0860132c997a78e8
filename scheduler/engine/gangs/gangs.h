// Gangs: pods placed all or none (gang_seats.h describes their states).
//
// kube-scheduler brings pods one by one, so a member is refused until its whole gang is there and
// fits; then devices are kept for every member at once, each is nominated to its node, and those
// that were refused are brought back. Nothing of that is written down: after a restart the members
// that are bound show what was planned, and the rest is seated again before anybody else is asked.
// Externally synchronised, as the state is. Cost: O(1) for news of a member and to count; questions
// about all members O(members), seating O(nodes) besides.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/engine/gangs/gang_members.h"
#include "scheduler/engine/gangs/gang_seats.h"
#include "scheduler/engine/gangs/gang_sites.h"
#include "scheduler/engine/requeue/nominations.h"
#include "scheduler/engine/requeue/requeuer.h"
#include "scheduler/engine/state/earmarks.h"
#include "scheduler/engine/state/preemption_state.h"
#include "scheduler/engine/state/views.h"

namespace tranche {

struct GangCount {
  int size = 0;     // 0: nobody says
  int placed = 0;   // bound, or being bound
  int bound = 0;    // of these, seen bound
  int waiting = 0;  // could be placed
  int gated = 0;    // could be, but for gates of ours
  int plain = 0;
  bool gathered() const { return size > 0 && placed + waiting + gated + plain >= size; }
  bool complete() const { return size > 0 && placed + waiting + plain >= size; }
};

// A gang that is to be seated, in its order.
struct SeatingTurn {
  int rank = 0;
  Instant since;
  std::string key;
};

class Gangs {
 public:
  Gangs(const GangParts& parts, HeldNodes& held_nodes, Earmarks& earmarks,
        const PreemptionState& reclaims, Requeuer& requeue, Nominations& nominations)
      : parts_(parts),
        cluster_(parts.cluster),
        rules_(parts.rules),
        held_nodes_(held_nodes),
        earmarks_(earmarks),
        reclaims_(reclaims),
        requeue_(requeue),
        nominations_(nominations) {}

  // ---- members
  void Join(const PodUid& uid, PodRecord& record, Instant now);
  void Leave(const PodUid& uid, PodRecord& record, Instant now);
  // One that asks for no GPU; it is counted, not placed by us.
  void NotePlainMember(const PodRequest& request);
  void ForgetPlainMember(const PodUid& uid);
  // Something about the member that counts may have changed.
  void Recount(const PodUid& uid, const PodRecord& record);
  // A member has come to its place, or is about to.
  void NoteProgress(const PodRecord& record, Instant now);
  // As an object of its controller says; 0: none does.
  void SetSize(const std::string& key, int size);

  // ---- questions
  const GangBooks& books() const { return books_; }
  GangCount CountOf(const std::string& key, const Gang& gang) const;
  bool IsSeated(const PodUid& uid, const PodRecord& record) const;
  std::string Describe(const PodRecord& record) const;
  // `key`: one of books().all. O(members).
  GangView ViewOf(const std::string& key) const;
  std::optional<Instant> Due(Instant now) const;

  // ---- seats
  GangTurn TakeTurn(const PodUid& uid, const PodRecord& record, Instant now);
  // The time of a gang under way is over: whoever has not come will not. True: its seats were given
  // back, and the members that did bind are to be evicted.
  bool LapseIfOver(const std::string& key, Instant now);
  // The devices that are kept for a member are no more: all of its gang are seated anew. Requires:
  // IsSeated.
  void NoteSeatLost(const PodRecord& record, Instant now);
  // Adds the gang's turn if it can be seated now.
  void NoteTurn(const std::string& key, Instant now, std::vector<SeatingTurn>& turns);
  void SeatInTurn(std::vector<SeatingTurn> turns, Instant now);
  // The first complete set of pods is in.
  void Restore(Instant now);
  // Facts for preemption, in order: pods that were seated, or could not be; so many at most, the
  // rest is left for the next call.
  std::vector<PodUid> TakeJudged(std::size_t most);

 private:
  int SizeOf(const std::string& key, const Gang& gang) const;
  int DeclaredSizeOf(const std::string& key) const;
  // Its pods have their turn one by one: it runs, one of it starts alone, or nobody says how many
  // start together.
  bool IsLoose(const std::string& key, const Gang& gang, const GangCount& count) const;
  // A reclaim takes more of its pods than it can spare.
  bool IsVictim(const Gang& gang, const GangCount& count) const;
  static void Discount(Gang& gang, const PodUid& uid);
  // Something about its members has changed: where does it stand?
  void Note(const std::string& key);
  // Keeps places for all who wait; false: there are none.
  bool Seat(const std::string& key, Gang& gang, Instant now);
  bool TrySeats(Gang& gang, std::span<PodEntry* const> waiting, Instant now);
  void Unseat(Gang& gang, Instant now);

  GangParts parts_;
  ClusterState& cluster_;
  TeamRules& rules_;
  HeldNodes& held_nodes_;
  Earmarks& earmarks_;
  const PreemptionState& reclaims_;
  Requeuer& requeue_;
  Nominations& nominations_;
  GangBooks books_;
  std::deque<PodUid> judged_;
};

}  // namespace tranche
