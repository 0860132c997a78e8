// One question to the planner, made from the books: the problem, the geometry behind it, and the
// way back from units to pods. Made for one question; changes nothing but scratch of the selection.
//
// The world it shows is the one after everything under way: terminating pods and victims of running
// reclaims are gone, their preemptors have come.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "quota/preemption/lost_work.h"
#include "quota/preemption/reclaim_search.h"
#include "scheduler/engine/claims/claim_holders.h"
#include "scheduler/engine/preemption/eviction_guards.h"
#include "scheduler/engine/preemption/plan_walk.h"
#include "scheduler/engine/preemption/preemptor_queue.h"
#include "scheduler/engine/selection/selection.h"
#include "scheduler/engine/state/cluster_state.h"
#include "scheduler/engine/state/preemption_state.h"

namespace tranche {

// The parts a plan is made from.
struct PlanParts {
  ClusterState& cluster;
  const ClaimHolders& claims;
  const PreemptionState& reclaims;
  EvictionGuards& guards;
  Selection& selection;
};

class ReclaimCase : public ReclaimGeometry {
 public:
  struct Options {
    bool ignore_guards = false;  // guarded work counts as victims, limits of evictions do not
    const std::vector<NodeId>* only = nullptr;  // nodes to look at; null: all that suit
    // Tell what marks are made from, where R1 may choose anew what is borrowed, and whom it may
    // take then.
    bool choose = false;
    bool one_node_units = false;  // leave out gangs with pods elsewhere (the preempt verb)
    // Pods that are on their way out by an earlier what-if, beside those under way.
    const std::set<PodUid>* gone = nullptr;
  };

  ReclaimCase(const PlanParts& parts, const Preemptor& preemptor, Instant now, Options options);

  bool Fits(std::size_t region, std::span<const int> gone) override;

  const ReclaimProblem& problem() const { return problem_; }
  const std::vector<PodUid>& pods_of(int unit) const {
    return unit_pods_[static_cast<std::size_t>(unit)];
  }
  const GuardVerdict& guard_of(int unit) const { return verdicts_[static_cast<std::size_t>(unit)]; }
  const std::vector<NodeId>& nodes_of(std::size_t region) const { return regions_[region]; }
  // Work was left out, or limits apply, that will not for ever.
  bool any_guarded() const { return any_guarded_; }
  // Somebody is on the way out, and counts as gone.
  bool any_leaving() const { return !leaving_.empty(); }
  // The units that these pods are, ascending; nullopt: not all of them may be taken now.
  std::optional<std::vector<int>> UnitsOf(std::span<const PodUid> pods) const;
  // The region that has all these nodes; nullopt: none.
  std::optional<std::size_t> RegionOf(const NodeName& node) const;
  // Where every member goes once `gone` are gone. Requires: Fits(region, gone).
  struct Seat {
    NodeId node = kNoNode;
    Picks picks;
  };
  std::vector<Seat> Seats(std::size_t region, std::span<const int> gone);
  // Of one pod of a unit.
  int64_t LostOf(const PodUid& uid) const;
  // What the pods of the units would lose, and how that goes on; by unit, then as in pods_of.
  std::vector<WorkInTime> RisksOf(std::span<const int> units) const;
  // Pods by team that plans under way are still to evict.
  std::map<std::string, int64_t> Promised() const;

 private:
  struct KindOfRegion {
    ReclaimRegion region;
    bool usable = false;
  };
  struct Site {
    NodeId id = kNoNode;
    // Parallel to the node's holdings: the victim's number, kStays or kGone.
    std::vector<int> holders;
  };
  static constexpr int kStays = -1;
  static constexpr int kGone = -2;

  void LeaveOutTentative();
  void NoteShapes();
  bool Leaves(const PodUid& uid, const PodRecord& record) const;
  // Everything that is on its way out counts as gone: in the tree, and on its node.
  void NoteLeaving();
  void NoteCheckpoints();
  void GatherUnits();
  // ---- who holds what (reclaim_holders.cc)
  struct Holder {
    PodUid uid;
    const HeldWork* work = nullptr;
    const PodRecord* record = nullptr;
  };
  // Pods that leave together: a gang's, or those that use the same claims. `whole`: every one of
  // them could be a victim; `tied`: none can be spared, as what it holds would not come free.
  struct GangHolders {
    std::vector<Holder> pods;
    bool whole = true;
    bool tied = false;
  };
  // Pods and gangs that leave together as they use the same claims, each with the one all of its
  // kind are known by.
  class Ties {
   public:
    const std::string& RootOf(const std::string& one) const;
    bool Has(const std::string& one) const { return up_.contains(one); }
    void Add(const std::string& one, const std::string& other);

   private:
    std::map<std::string, std::string> up_;
  };
  // What a pod leaves as: its gang, or it alone.
  static std::string KeyOf(const PodUid& uid, const PodRequest& request);
  // Makes claims the work of the pods that use them.
  Ties GatherClaims();
  // Running work that might go, and all of gangs and of those who use claims, by uid.
  std::vector<Holder> FindHolders(QuotaId root);
  void CountAsGone(const HeldWork& work);
  // Leaves that borrow, and the preemptor's own.
  void GatherHeld(QuotaId root);
  // Pods that other plans are still to evict: they are on their way out, and may yet stay.
  std::set<PodUid> PromisedByOthers() const;
  // Which of the problem's held work the pods are; nullopt: it is not told.
  std::optional<std::size_t> HeldOf(std::span<const Holder> pods) const;
  // Nobody's victim by any rule, whatever the region.
  bool IsHopeless(const HeldWork& work, QuotaId root) const;
  // Of no team, in a namespace that no quota owns.
  bool HasNoTeam(const HeldWork& work) const;
  enum class Spares : uint8_t { kAsItsSize, kNone };
  void AddUnit(const std::string& key, std::span<const Holder> pods, Spares spares);
  void AddGang(const std::string& key, const GangHolders& gang);
  // Fills the unit from what its pods hold, and adds it unless a guard keeps it.
  void MakeUnit(VictimUnit unit, std::span<const Holder> pods);
  void GatherRegions();
  void AddRegion(std::vector<NodeId> nodes);
  void GatherRules();
  void GatherShortages();
  void NoteBudgets(const PodRecord& record, VictimPod& pod);
  // Evictions that a budget allows beyond those that plans under way are still to ask of it.
  int64_t LeftOf(const DisruptionBudget& budget) const;
  const Site& SiteOf(NodeId id);
  void LoadOf(const Site& site, Load& load) const;
  // Puts every member somewhere, with the units marked in gone_ gone.
  bool Place(std::size_t region, std::vector<Seat>* seats);
  template <typename Work>
  bool WithGone(std::span<const int> gone, Work work) {
    Mark(gone, 1);
    const bool result = work();
    Mark(gone, 0);
    return result;
  }
  void Mark(std::span<const int> units, char gone);

  ClusterState& cluster_;
  const ClaimHolders& claims_;
  const PreemptionState& reclaims_;
  EvictionGuards& guards_;
  Selection& selection_;
  const Preemptor& preemptor_;
  const Instant now_;
  const Options options_;
  ReclaimProblem problem_;
  QuotaTree tree_;
  std::vector<std::vector<NodeId>> regions_;
  std::map<ChargeKind, KindOfRegion> kinds_;
  std::unordered_map<NodeId, int> region_of_;
  std::vector<std::vector<PodUid>> unit_pods_;
  std::vector<GuardVerdict> verdicts_;          // of units
  std::vector<std::vector<int>> unit_numbers_;  // parallel to unit_pods_
  std::unordered_map<PodUid, int> numbers_;     // of pods that are in a unit
  std::unordered_map<NodeId, Site> sites_;
  std::unordered_set<PodUid> leaving_;
  std::unordered_set<PodUid> leaving_uncounted_;  // likewise, of which no quota knows
  std::set<NodeId> left_nodes_;                   // where somebody leaves, or a member has room
  std::map<PodUid, std::size_t> held_;            // of pods, in ReclaimProblem::held
  std::set<QuotaId> chosen_from_;                 // leaves that borrow
  std::map<std::pair<std::string, std::string>, int> budget_positions_;
  std::vector<int64_t> lost_;  // by number
  std::vector<char> gone_;     // by number
  std::vector<char> changes_;  // by member: it has another shape than the one before
  CheckpointAges ages_;
  std::map<PodUid, HeldWork> by_claims_;  // what pods hold with the claims they use
  bool any_guarded_ = false;
  Placer placer_;
  Picks picks_;
  std::vector<Load> loads_;
};

// The planner's answer to a question, and the case it was found in.
struct AskedPlan {
  PlanQuestion question = PlanQuestion::kByMarks;
  std::shared_ptr<ReclaimCase> reclaim_case;
  ReclaimAnswer answer;

  // Nothing protects the victims, and PodDisruptionBudgets allow all of them together.
  bool MayBegin() const {
    return answer.plan && !IgnoresGuards(question) && answer.plan->cost.pdb_violations == 0;
  }
};
// Puts the next question to the books as they are.
AskedPlan AskNext(PlanQuestions& questions, const PlanParts& parts, const Preemptor& preemptor,
                  Instant now, ReclaimCase::Options options);

}  // namespace tranche
