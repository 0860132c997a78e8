// Which sets of victims the rules allow: quota-model section 4, settled in section 10.
//
// A question of sets, not of sequences: victims are judged in one canonical order (own leaf first,
// then nearest lowest common ancestor, then smaller charge in GPU-equivalents, then key), each with
// the ones before it gone.
//
//   R0   Victims are of strictly lower rank. The preemptor has no team, and they have none or are
//        borrowed as in R2b; or it has one, and they have none.
//   R1   The preemptor is entitled: with it placed, its leaf borrows nothing in any line and
//        dimension it is charged in. If that holds only for `any`, or no quota of the tree limits
//        its model but one limits `any`, it is entitled through `any` alone: then victims are those
//        marked borrowed on `any` and not in quota on a limited model line, and only `any` counts
//        below. Otherwise victims are those not in quota on their model line, or on `any` where no
//        quota of the tree limits the model. Rank 0 is entitled to nothing. Before victims with a
//        farther common ancestor are judged, the quotas between the preemptor's leaf and that
//        ancestor borrow nothing either where the preemptor lacks quota, nearer victims gone and
//        the preemptor placed. Each victim's branch (the child of the common ancestor on its side)
//        is then over nominal (QuotaTree::Borrowed) in a line and dimension in which the victim is
//        charged and which the preemptor lacks: where Available, of that line alone, was short of
//        its charge with no victim gone; or, when its devices did not fit the region with no victim
//        gone, any line and dimension of a victim that holds devices in the region. Victims of rank
//        0 are always over nominal.
//   R1 by choice  Tried last, where the problem tells of all that leaves hold
//   (ReclaimProblem::held):
//        as R1, but when the devices did not fit, of the units that hold devices in the region any
//        may be a victim, however it is marked, whose leaf and whose rank can spare it. The leaf:
//        on each limited model line, and on `any` where the preemptor is entitled through it alone
//        or a victim of the leaf has no limited model line, what the leaf's work has in quota,
//        marked anew with the victims so far and this one gone, is not less than it was with no
//        victim gone. The rank: what is in quota of the preemptor and of the victims' leaves, by
//        rank on limited model lines, highest first, then by rank on `any`, has risen by then. Both
//        are asked at every victim once one is taken that R1 leaves alone: as if what other plans
//        are still to evict had gone, and as if it stayed.
//   R2a  The preemptor would be marked in quota; victims are of its leaf, of strictly lower rank,
//        not own_rank_protected; none is in quota on a limited model line where no quota limits
//        the preemptor's model.
//   R1 and R2a together  The own victims of R2a are gone first, then R1 as above; what the
//        preemptor lacks is looked at after they are gone.
//   R0 with R1, R2a, R2b or R3  What has no team and is of strictly lower rank is gone first, then
//        the other rule as it stands.
//   R2b  The preemptor would not be marked in quota; victims are of its leaf, of strictly lower
//        rank and borrowed: in quota on no limited line.
//   R3   As R2b with victims of other leaves of the same root, where the lowest common ancestor has
//        a rank in cross_leaf_min_rank that the preemptor's rank reaches.
//   R5   The preemptor would not be marked in quota; victims of other leaves of the same root,
//        borrowed as in R2b, of the preemptor's rank, where fair_share is on at the lowest common
//        ancestor; all of one leaf. Afterwards the preemptor's leaf has at most 10/11 of the share
//        of borrowed capacity (largest over lines of GpuEquivalents(Borrowed), by weight) that the
//        victims' leaf still has, which is more than nothing.
//
// R0, R2a, R2b, R3 and R5 keep within evictions_left. Quota must admit the preemptor afterwards
// (QuotaTree::Check for every part), and every set respects spare_of and whole_of.
//
// Through `any` alone one is entitled only where the tree limits `any`. Work charged to a quota of
// the preemptor's own path (of when it was a leaf) has no branch of its own and is no victim of R1.
//
// A plain value over one problem; not thread-safe. Cost: O(victims x depth x lines) a question,
// Steps and Candidates O(units).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "quota/preemption/reclaim.h"
#include "quota/preemption/team_marks.h"

namespace tranche {

class ReclaimRules {
 public:
  // `problem` and `geometry` must outlive this.
  ReclaimRules(const ReclaimProblem& problem, ReclaimGeometry& geometry);

  // One question of plans: the rule, and how far its victims may be. R1, R3 and R5 go level by
  // level: level 1 takes victims below the parent of the preemptor's leaf, and so on; others have
  // the one level 0.
  struct Step {
    ReclaimRule rule = ReclaimRule::kNone;
    bool with_own = false;  // R1 and R2a together
    int level = 0;
    bool with_teamless = false;  // and R0
    bool by_choice = false;      // R1: what is borrowed is chosen anew
  };
  // In the order in which they are tried; only those with a unit that could be a victim.
  std::vector<Step> Steps() const;
  // The step of the rule that reaches these victims.
  Step StepFor(ReclaimRule rule, std::span<const int> victims) const;
  // Units that could be victims of the step if the preemptor goes to the region; ascending. For R1
  // none that are too far away even with all nearer ones gone.
  void Candidates(const Step& step, std::size_t region, std::vector<int>& units);

  // May all of `victims` (ascending) be taken by the step, for the region?
  bool Permits(const Step& step, std::size_t region, std::span<const int> victims);
  // Would quota admit the preemptor in the region with `gone` gone? Monotone.
  bool Admits(std::size_t region, std::span<const int> gone);

  // The same question one victim after the other, for a search that goes down and up again. The
  // victims of one set are pushed in canonical order. Push returns false, and nothing changes, if
  // the unit may not be taken after those before it.
  void Start(const Step& step, std::size_t region);
  bool Push(int unit);
  void Pop();
  // Would quota admit the preemptor with the pushed gone?
  bool Admitted() const;
  // How much work it is to push the unit, in that of the simplest.
  int64_t EffortOf(int unit) const;
  // The canonical order.
  bool Before(int left, int right) const;

  // Line by line, the most that victims could have to free for quota's sake: what the preemptor is
  // short of and, for R1, what the quotas of its path borrow with it placed.
  std::vector<LineCharge> Needs(const Step& step, std::size_t region);
  // Could a candidate of the step be a victim in a region where it holds no devices?
  bool HelpsFromOutside(const Step& step, std::size_t region, int unit);

 private:
  // How a quota is related to the preemptor's leaf.
  struct Kin {
    std::optional<int> level;   // of the lowest common ancestor in path_, if there is one
    QuotaId branch = kNoQuota;  // child of that ancestor on this quota's side
  };
  // What the preemptor would be marked; in quota on `any` alone where no quota limits its model.
  enum class Standing : uint8_t { kBorrows, kInQuotaByAny, kInQuota };
  // What R1 finds with the own victims gone.
  enum class Entitlement : uint8_t { kNone, kAnyOnly, kFull };

  Kin KinOf(QuotaId id) const;
  const VictimUnit& UnitAt(int unit) const {
    return problem_.units[static_cast<std::size_t>(unit)];
  }
  const ReclaimRegion& Region() const { return problem_.regions[region_]; }
  bool InQuotaOnModel(const VictimUnit& unit) const;
  bool IsBorrowed(const VictimUnit& unit) const;
  bool OwnLowerRank(const VictimUnit& unit) const;
  bool NobodyIsEntitledTo(const VictimUnit& unit) const;
  // The lowest common ancestor; there is one.
  QuotaId AncestorWith(const VictimUnit& unit) const;
  bool CrossLeafAllowed(const VictimUnit& unit) const;
  bool FairShareAllowed(const VictimUnit& unit) const;
  bool CouldReclaim(const VictimUnit& unit) const;
  bool CouldBeChosen(const VictimUnit& unit) const;
  bool AsksLimitedModel(std::size_t region) const;
  Standing StandingIn(std::size_t region) const;
  bool Eligible(const Step& step, Standing standing, const VictimUnit& unit) const;
  bool HasVictims(const Step& step) const;
  // Of R1 and R2a together, or of no team: gone before R1 asks what it lacks.
  bool GoesFirst(const VictimUnit& unit) const;
  void DropOutOfReach(std::vector<int>& units);

  void Place(std::size_t region);
  void Take(const VictimUnit& unit, int sign);
  bool WithinSpare(const VictimUnit& unit) const;
  bool WithinEvictions(const VictimUnit& unit) const;

  void Judge();
  Entitlement FindEntitlement() const;
  void FindLacking();
  bool PathIsClear(int level) const;
  bool BorrowsNothing(QuotaId id, LineId line) const;
  bool MayReclaim(const VictimUnit& unit);
  bool GivesWhatIsLacked(const VictimUnit& unit) const;
  // R1 takes it as it is marked.
  bool IsBorrowedForR1(const VictimUnit& unit) const;
  bool LeavesTheirDue() const;
  bool KeepsItsDue(QuotaId leaf, bool also_any, Promises promises) const;
  bool RaisesWhatIsInQuota(Promises promises) const;
  bool StaysFair(QuotaId victims) const;
  int64_t BorrowedShare(QuotaId leaf) const;

  const ReclaimProblem& problem_;
  ReclaimGeometry& geometry_;
  std::vector<QuotaId> path_;   // the preemptor's leaf, its parent, ... the root
  std::vector<Kin> kin_;        // by quota
  std::vector<int64_t> sizes_;  // of units, GPU-equivalents
  bool keys_ascend_ = true;     // of units
  std::vector<LineId> lines_;   // that anybody of this root may borrow

  // The tree with the preemptor placed in region_ and the pushed gone.
  QuotaTree trial_;
  Step step_;
  std::size_t region_ = 0;
  std::vector<LineCharge> asked_;  // the preemptor's charge by line, `any` with the sum
  bool placed_ = false;
  std::vector<int> pushed_;
  std::size_t first_ = 0;         // of the pushed: those that go first
  std::vector<int64_t> evicted_;  // pods by quota
  std::vector<int> spares_;       // pushed by gang
  std::vector<int> wholes_;

  mutable std::optional<TeamMarks> marks_;  // with the pushed of a step by choice gone

  // What R1 found, and those gone first that it holds for.
  bool judged_ = false;
  std::vector<int> judged_first_;
  Entitlement entitlement_ = Entitlement::kNone;
  bool devices_lacking_ = false;
  std::vector<LineCharge> lacking_;  // how much, dimensions that are not lacking being zero
};

}  // namespace tranche
