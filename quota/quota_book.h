// Everything quota decides by: the tree, the budgets, who holds what of them, and what of it is in
// quota or borrowed.
//
// quota-model sections 2 to 5. Work keeps the leaf it was admitted to: relabelling a namespace or
// changing the tree moves no running charge. A leaf that is no longer declared keeps its holdings,
// which then count nowhere but in the ledger, and takes them up again when it comes back.
//
// A plain value: externally synchronised, deterministic; times come in and never go back, except
// where a parameter says that news may be late. Cost: Admit O(depth + declared ends of budgets on
// the path) without allocation when it admits; Hold, Release O(depth + log holdings); SetPolicies
// O(holdings + quotas x lines).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "policy/policy_set.h"
#include "quota/book_fault.h"
#include "quota/budget/budget.h"
#include "quota/held_sums.h"
#include "quota/past_uses.h"
#include "quota/tree/fair_share.h"
#include "quota/tree/marking.h"
#include "quota/tree/model_charge.h"
#include "quota/tree/quota_tree.h"
#include "topology/base/ids.h"
#include "topology/base/int128.h"

namespace tranche {

// Where a pod belongs.
struct QuotaMembership {
  enum class Leaf : uint8_t { kFound, kNone, kConflict };
  Leaf leaf_found = Leaf::kNone;
  QuotaId leaf = kNoQuota;
  QuotaMode mode = QuotaMode::kOff;      // of the leaf
  const GpuClass* gpu_class = nullptr;   // valid until the next SetPolicies
  std::span<const std::size_t> budgets;  // positions of those that meter the pod; likewise
};

enum class AdmissionCode : uint8_t {
  kAdmitted,
  kBudgetExhausted,
  kExceedsMaxQuota,
  kBorrowLimit,
  kLenderLimit,
  kWaitingForQuota,
};

struct Admission {
  AdmissionCode code = AdmissionCode::kAdmitted;
  bool borrows = false;                // admitted, and takes more than free nominal
  bool demoted = false;                // admitted although a budget that demotes is used up
  QuotaVerdict quota;                  // the tree's word, where it refuses
  std::size_t part = 0;                // which part it refuses
  std::optional<std::size_t> budget;   // the budget that refuses or demotes
  std::optional<Instant> eligible_at;  // kBudgetExhausted
};

// A piece of running work.
struct HeldWork {
  PodName pod;
  std::string leaf;            // empty: none
  std::string workload_class;  // empty: none
  std::string gang;            // within its namespace; empty: a gang of one
  std::vector<ModelCharge> parts;
  Instant since;                   // bound
  std::optional<Instant> running;  // containers started
  std::optional<Millis> runtime;   // declared
  // uid of the budget in whose shortness it was let in without a right to nominal, until that
  // budget changes, begins anew or is no longer used up; empty: none
  std::string demoted_by;
  bool released = false;  // its quota was given back before its devices (releasePolicy)
  // Kept for a moment only: it counts where quota is asked, and makes nobody else's work borrowed.
  bool tentative = false;

  // Kept by the book: the leaf in the tree (kNoQuota: not declared), and how the work was marked
  // when that was last asked (RefreshMarks).
  QuotaId quota = kNoQuota;
  LineMarks marks = {};
  // In quota by what its leaf runs, whatever room is kept there for others; known when marks are.
  bool within_nominal = false;
};

struct QuotaLineReport {
  QuotaLineView line;
  Charge marked_borrowed;  // of a leaf: what its borrowed and scavenging work holds
};

struct QuotaReport {
  std::string name;
  std::string parent;
  QuotaMode mode = QuotaMode::kEnforce;
  bool leaf = false;
  bool suspended = false;               // by an exhausted budget
  std::vector<std::string> namespaces;  // known ones a leaf owns; left to who shows it
  std::vector<QuotaLineReport> lines;   // `any` last
  Charge non_preemptible;               // held by work that is never preempted
  int64_t workloads = 0;                // of a leaf
  int64_t workloads_borrowed = 0;       // at risk
  int64_t decayed_milli_gpu_hours = 0;  // of a leaf
  int64_t fair_share = 0;               // quanta, of a leaf that has or wants GPUs
};

// By what leaves that borrow are ordered (quota-model section 5): the lower `borrowed` over
// `entitled` comes first, and among those that borrow nothing the higher `entitled`.
struct ShareTerms {
  int64_t borrowed = 0;     // quanta: the most that it borrows in one line
  int64_t weight = 0;       // its own,
  int64_t weights = 0;      // that of all leaves which hold something or did lately
  int64_t used = 0;         // thousandths of GPU-hours that have not faded,
  int64_t used_by_all = 0;  // those of all leaves
  // Twice the part that the weights give it less the part it has used, in millionths; not below 0.
  int64_t entitled = 0;
};

struct BudgetReport {
  GpuBudget spec;
  BudgetView view;
  // Of the checkpoint that stands for what came before, as long as that counts.
  std::optional<Instant> restored = std::nullopt;
};

class QuotaBook {
 public:
  QuotaBook();

  // ---- what administrators declare
  void SetPolicies(std::shared_ptr<const PolicySet> set, Instant now);
  // A set that differs in namespaces alone; `moved`: those whose leaf is another one now, of which
  // nothing is held. O(moved).
  void SetNamespaces(std::shared_ptr<const PolicySet> set, std::span<const std::string> moved);
  const PolicySet& set() const { return *set_; }
  const QuotaTree& tree() const { return tree_; }

  // ---- the past, before any holding
  void Restore(const std::vector<WindowClosing>& closings,
               const std::vector<std::pair<std::string, DecayedUsage::State>>& decay);
  // What a budget has counted until stand.at, where no events tell it (BudgetMeter::Resume); also
  // after it was declared.
  void Resume(const std::string& budget_uid, BudgetStand stand, Instant now);
  // Use that ended: what budgets that are declared later count as well.
  struct PastUse {
    std::string leaf;
    std::string ns;
    std::string workload_class;
    std::vector<ModelCharge> parts;
    Instant since;
    std::optional<Instant> running;
    Instant until;
    int sign = 1;  // -1: a refund
  };
  void AddPast(const PastUse& use);
  // Many of one kind.
  void AddPast(const PastKind& kind, std::span<const PastLife> lives) { past_.Add(kind, lives); }

  // ---- questions of one pod
  QuotaMembership MembershipOf(const std::string& ns, const std::string& priority_class) const;
  // May the parts be held in addition? Enforced or not is the caller's to ask of `membership.mode`.
  Admission Admit(const QuotaMembership& membership, std::span<const ModelCharge> parts,
                  std::optional<Millis> runtime, Instant now);
  // Work that is never preempted has to fit nominal beside all other such work of its leaf, which
  // no eviction changes. True for all other work.
  bool FitsNever(const QuotaMembership& membership, std::span<const ModelCharge> parts) const;
  // An explanation with numbers, for people.
  std::string Explain(const QuotaMembership& membership, const Admission& admission,
                      std::span<const ModelCharge> parts, Instant now) const;
  // Could the first leaf take its parts and the second one its own besides?
  bool FitsBeside(QuotaId first, std::span<const ModelCharge> taken, QuotaId second,
                  std::span<const ModelCharge> wanted);
  // The order among leaves that borrow, at one moment. What all leaves come to is summed up once,
  // and each leaf that is compared looked at once; good until the book changes.
  class Shares {
   public:
    Shares(const QuotaBook& book, Instant now) : book_(book), now_(now) {}
    // Negative when `left` has the lower share of borrowed capacity, weighted and corrected for
    // past use; 0 when they are equal.
    int Compare(QuotaId left, QuotaId right);
    // What the leaf is compared by, for people.
    ShareTerms TermsOf(QuotaId leaf);

   private:
    struct Side {
      Int128 borrowed = 0;
      Int128 weight = 0;
    };
    const Side& Of(QuotaId leaf);
    void SumUp();

    const QuotaBook& book_;
    const Instant now_;
    Int128 weights_ = 0;
    Int128 usage_ = 0;
    std::map<QuotaId, Side> sides_;
  };
  // Of two leaves alone.
  int CompareShares(QuotaId left, QuotaId right, Instant now) const {
    return Shares(*this, now).Compare(left, right);
  }

  // Forgets what earlier questions looked up where it has grown large. No QuotaMembership survives
  // it.
  void TrimRoutes();

  // ---- holdings
  // From work.since on. Of work that is held already the first charge stays (kHeldTwice).
  void Hold(const PodUid& uid, HeldWork work);
  void Running(const PodUid& uid, Instant at);
  // Of work taken up from the ledger, which does not keep it.
  void DeclareRuntime(const PodUid& uid, Millis runtime, Instant now);
  void DeclareGang(const PodUid& uid, const std::string& gang);
  // Its quota is free although its devices are not; metering goes on.
  void ReleaseQuota(const PodUid& uid);
  // Ends the holding; `at` may be late news. Nothing happens when there is none.
  void Release(const PodUid& uid, Instant at);
  // Metering of [span) is given back.
  void Refund(const PodUid& uid, const TimeSpan& span);
  // The clock was set forward: nobody used anything between.
  void Step(Instant from, Instant to);
  const HeldWork* Find(const PodUid& uid) const;
  const std::map<PodUid, HeldWork>& holdings() const { return holdings_; }
  // What all of them hold together, as long as nothing saturates.
  const Charge& held() const { return held_; }
  // Of them what the leaf holds; null: nobody ever held anything of it.
  const std::map<PodUid, HeldWork*>* WorkOf(const std::string& leaf) const {
    const auto found = leaves_.find(leaf);
    return found == leaves_.end() ? nullptr : &found->second.work;
  }
  // Sums what every quota uses again, from what is held and kept. No QuotaMembership survives it.
  void Recount() { RebuildTree(); }
  // What they were and are, by who holds them.
  HeldSums& sums() { return sums_; }
  const HeldSums& sums() const { return sums_; }
  // How many of them each class has; "" for none.
  const std::map<std::string, int64_t>& work_by_class() const { return work_by_class_; }
  // In quota, borrowed or scavenging; nullopt: of no leaf that is declared.
  std::optional<QuotaState> StateOf(const PodUid& uid);
  // Brings HeldWork::marks up to date, of all work.
  void RefreshMarks();
  // The same, going on from `leaf` ("" is the first) and ending behind the one with which `work`
  // pieces have been marked. The next leaf; nullopt: there is none.
  std::optional<std::string> RefreshMarks(const std::string& leaf, std::size_t work);
  // The gangs of the leaf that run, as its marks are made from them, as if the pods that `gone`
  // names held nothing. `place`: which of the units each of its pods is in.
  std::vector<MarkUnit> RunningUnitsOf(const std::string& leaf,
                                       const std::unordered_set<PodUid>& gone,
                                       std::map<PodUid, std::size_t>& place) const;
  // What work of the leaf would be marked if it started now.
  LineMarks MarksIfAdded(const QuotaMembership& membership, std::span<const ModelCharge> parts,
                         Instant now);

  // ---- room kept for work that is to start (quota-model section 4)
  // Counts in the tree and, unless it is tentative, in marks like work that runs, in no meter and
  // in no ledger. Nothing more is counted for work that runs or has some (kKeptTwice).
  void Earmark(const PodUid& uid, HeldWork work);
  void Unearmark(const PodUid& uid);  // nothing happens when there is none
  const std::map<PodUid, HeldWork>& earmarks() const { return earmarks_; }
  // What did not go together since the last call.
  std::vector<BookFault> TakeFaults() { return std::exchange(faults_, {}); }

  // Budgets that are used up and are to be drained, ascending position.
  std::vector<std::size_t> BudgetsToDrain() const;
  bool Meters(std::size_t budget, const HeldWork& work) const {
    return MetersOf(work, meters_[budget].meter.spec());
  }

  // ---- time
  // Windows that ended, budgets that ran out or came back. True: what waits should be asked again.
  bool Advance(Instant now, std::vector<WindowClosing>& closings);
  std::optional<Instant> NextChange(Instant now) const;

  // ---- for people
  std::vector<QuotaReport> Quotas(Instant now);
  std::vector<BudgetReport> Budgets(Instant now) const;
  // By uid.
  std::map<std::string, BudgetStand> BudgetStands(Instant now) const;
  std::vector<std::pair<std::string, DecayedUsage::State>> Decay() const;
  int64_t DecayedMilliGpuHours(const std::string& leaf, Instant now) const;
  int64_t WeightOf(const std::string& leaf) const;
  // Declared, and owns namespaces.
  bool IsLeaf(const std::string& name) const;

 private:
  struct Meter {
    BudgetMeter meter;
    bool exhausted = false;
  };
  // What a leaf's marks come to.
  struct Marked {
    int64_t borrowed_workloads = 0;
    Charge non_preemptible;
    std::map<std::string, Charge> borrowed;  // by model and, in sum, for `any`
  };
  struct LeafUse {
    Charge held;
    DecayedUsage decayed;
    bool marks_stale = true;
    std::map<PodUid, HeldWork*> work;
    Marked marked = {};  // stale with the marks
  };

  void RebuildTree();
  void AddToTree(const HeldWork& work, int sign);
  bool MetersOf(const HeldWork& work, const GpuBudget& budget) const;
  int64_t WeightFor(const GpuBudget& budget, const std::string& model,
                    const std::string& workload_class) const;
  void StartMeter(Meter& meter, const PodUid& uid, const HeldWork& work, Instant at);
  void StopMeter(Meter& meter, const PodUid& uid, const HeldWork& work, Instant at);
  Meter MakeMeter(const GpuBudget& budget, Instant now) const;
  void LoadPast(Meter& meter);
  void AdvanceMeters(Instant now);
  bool RefreshExhausted(Instant now);
  // Work that was let in while this budget was short has its right again.
  void LiftDemotions(const std::string& budget_uid);
  void AskBudgets(const QuotaMembership& membership, std::span<const ModelCharge> parts,
                  std::optional<Millis> runtime, Instant now, Admission& admission) const;
  QuotaVerdict AskNominal(QuotaId leaf, LineId line, const Charge& charge) const;
  Charge NeverHeld(const std::string& leaf, LineId line) const;
  void Remark(const std::string& leaf, LeafUse& use);
  void NoteWithinNominal(const std::string& leaf, LeafUse& use, const std::vector<LineMarks>& marks,
                         const std::vector<std::size_t>& unit_of) const;
  std::vector<LineMarks> MarksOf(QuotaId id, const std::vector<MarkUnit>& units) const;
  // The leaf's gangs: running ones, then earmarks if they count. `unit_of`: which of them each of
  // its work is in, in the order of LeafUse::work; nothing of those that `gone` names.
  enum class Kept : uint8_t { kCounted, kLeftOut };
  std::vector<MarkUnit> UnitsOf(const std::string& leaf, const LeafUse* use,
                                std::vector<std::size_t>& unit_of, Kept kept = Kept::kCounted,
                                const std::unordered_set<PodUid>& gone = {}) const;

  std::shared_ptr<const PolicySet> set_;
  QuotaTree tree_;
  std::vector<Meter> meters_;  // parallel to set_->budgets
  std::map<PodUid, HeldWork> holdings_;
  std::map<std::string, int64_t> work_by_class_;
  Charge held_;
  HeldSums sums_;
  std::map<std::string, LeafUse> leaves_;
  std::map<PodUid, HeldWork> earmarks_;
  std::map<std::pair<std::string, LineId>, Charge> never_held_;
  std::vector<BookFault> faults_;
  PastUses past_;  // within kMeterHorizon of the newest time
  std::vector<WindowClosing> closings_;
  std::map<std::string, BudgetStand> stands_;  // by uid of the budget
  std::vector<WindowClosing> untold_;          // those of them the next Advance returns
  // Looked up by namespace or priority class, filled as they are asked for.
  struct Route {
    QuotaMembership membership;
    std::vector<std::size_t> budgets;
  };
  mutable std::unordered_map<std::string, Route> routes_;
  mutable std::unordered_map<std::string, const GpuClass*> classes_;
  std::set<QuotaId> suspended_;
};

}  // namespace tranche
