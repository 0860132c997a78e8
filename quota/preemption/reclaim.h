// What is asked of the preemption planner, and what it answers: plain values.
//
// A reclaim takes devices and quota back from running work, whole gangs at a time, so that a
// waiting gang (the preemptor) can start. Rules, cost and search are quota-model section 4, settled
// details section 10. Who builds the problem leaves out work no rule may ever touch (R4: class
// Never, the preemptor's own gang, guarded work, pods that cannot be evicted) and counts work that
// is already terminating as gone.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quota/tree/charge.h"
#include "quota/tree/marking.h"
#include "quota/tree/quota_tree.h"
#include "topology/base/units.h"

namespace tranche {

// In the order in which they are tried; the first that yields a plan wins. kR1 with victims of the
// preemptor's own leaf is R1 and R2a combined, which is tried after both; with victims of no team
// it is the rule and R0 combined, tried after all single ones.
enum class ReclaimRule : uint8_t {
  kNone,
  kR0,            // lower rank that nobody is entitled to, where one of the two has no team
  kR1,            // own nominal back from borrowers in other leaves
  kR2a,           // own team's lower rank, for work that would be in quota
  kR2b,           // own team's lower rank and borrowed, for work that would be borrowed
  kR3,            // lower rank and borrowed in another leaf, for borrowed work; off unless enabled
  kR5,            // fair share among borrowers; off unless enabled
  kDrain,         // a budget that drains is used up
  kShrink,        // a quota was lowered, and asks for what is over it
  kGang,          // a gang that runs in part could not be completed
  kMaxRuntime,    // it has run for as long as its class lets it
  kMaintenance,   // maintenance of its node's pool begins
  kUnhealthy,     // its GPU has been unhealthy for a while
  kIdle,          // its GPUs have done nothing for as long as its class allows
  kConsolidate,   // its node is emptied, for others have room for what runs there
  kMigLayout,     // its node is emptied for another MIG layout
  kInterruption,  // its node is about to be taken away by its cloud
};
std::string_view ReclaimRuleName(ReclaimRule rule);  // "R0", "R1", "R2a", ..., "Drain", ...
inline constexpr int kReclaimRules = static_cast<int>(ReclaimRule::kInterruption) + 1;

// The work had what its class gives it: it has lost nothing, and is owed nothing.
constexpr bool HadItsTime(ReclaimRule rule) {
  return rule == ReclaimRule::kMaxRuntime || rule == ReclaimRule::kIdle;
}
// It is an eviction like others: it counts towards what a team may lose in an hour, and its owner
// is left alone for a while. What a cloud takes is nobody's doing.
constexpr bool CountsAsEviction(ReclaimRule rule) {
  return !HadItsTime(rule) && rule != ReclaimRule::kInterruption;
}
// The work is moved, for there is room elsewhere: nobody needs its devices, so everything that
// protects work holds.
constexpr bool MovesWork(ReclaimRule rule) {
  return rule == ReclaimRule::kConsolidate || rule == ReclaimRule::kMigLayout;
}
// Work that has to end, each for itself, whoever waits.
constexpr bool EndsByItself(ReclaimRule rule) {
  return HadItsTime(rule) || MovesWork(rule) || rule == ReclaimRule::kMaintenance ||
         rule == ReclaimRule::kUnhealthy || rule == ReclaimRule::kInterruption;
}

// A charge on one model's line; kNoLine where no quota names the model (then only `any` counts).
struct LineCharge {
  LineId line = kNoLine;
  Charge charge;
  friend bool operator==(const LineCharge&, const LineCharge&) = default;
};

// A running pod of a unit.
struct VictimPod {
  std::optional<std::size_t> region;  // where it holds devices, if it is one of the problem's
  std::vector<int> budgets;           // positions in ReclaimProblem::pdb_allowed, ascending
};

// What is evicted together: a gang, or one pod (a gang of one).
struct VictimUnit {
  std::string key;          // unique; breaks the last ties
  QuotaId leaf = kNoQuota;  // kNoQuota: of no team, and not in quota
  int rank = 0;
  bool own_rank_protected = false;  // class OverQuota: R2a may not touch it
  LineMarks marks;
  std::vector<LineCharge> parts;  // each line once, ascending; sum over its pods
  std::vector<VictimPod> pods;    // at least one
  // Evicting it breaks a gang. False for pods above the size their gang needs, which are units of
  // their own and share `spare_of`.
  bool breaks = true;
  // Positions in spare_left, of a gang that can spare pods: of all units that are `spare_of` it at
  // most so many may be evicted, and none together with the unit that is the `whole_of` it.
  std::optional<std::size_t> spare_of;
  std::optional<std::size_t> whole_of;
  int64_t lost_gpu_ms = 0;  // work that is lost, in GPU-milliseconds (lost_work.h)
  Instant start;
  // Which of ReclaimProblem::held it is, or is part of.
  std::optional<std::size_t> held = std::nullopt;
};

// Work that is marked in its leaf, whether it may go or not.
struct HeldUnit {
  QuotaId leaf = kNoQuota;
  MarkUnit unit;
  // What other plans are still to evict of it: each of the unit's parts, in their order; empty:
  // nothing. It may go or stay, as an eviction may be refused.
  std::vector<Charge> promised = {};
};

// A place for the whole preemptor: one node for a single pod.
struct ReclaimRegion {
  std::vector<LineCharge> parts;  // the preemptor's charge if it is placed here
  LineMarks marks;                // what it would be marked then
  // A lower bound on what must be freed here for its devices; zero: not known.
  Charge short_by;
};

struct ReclaimProblem {
  // As if terminating work were gone, with what is reserved for other preemptors, without the
  // preemptor. Not changed by planning.
  const QuotaTree* tree = nullptr;
  QuotaId leaf = kNoQuota;  // of the preemptor; kNoQuota: it has no team
  int rank = 0;
  std::vector<VictimUnit> units;
  // All that runs in the leaves where R1 may choose anew what is borrowed, and in the preemptor's;
  // empty: it keeps to the marks.
  std::vector<HeldUnit> held;
  std::vector<ReclaimRegion> regions;
  std::vector<int64_t> pdb_allowed;  // evictions each PodDisruptionBudget allows now
  std::vector<int> spare_left;       // see VictimUnit::spare_of
  // By quota. R3 holds between leaves whose lowest common ancestor has a rank here (resolved: the
  // nearest one set from it upwards); likewise R5. Shorter vectors mean: off.
  std::vector<std::optional<int>> cross_leaf_min_rank;
  std::vector<char> fair_share;
  std::vector<int64_t> weights;
  // Pods that R2a, R2b, R3 and R5 may still evict of each leaf; shorter vectors mean: no limit.
  std::vector<Limit> evictions_left;
};

// Would the preemptor's devices fit in the region if the units in `gone` (ascending positions) were
// gone? Must be monotone: more gone never hurts. Called often; answers may be remembered.
class ReclaimGeometry {
 public:
  virtual ~ReclaimGeometry() = default;
  virtual bool Fits(std::size_t region, std::span<const int> gone) = 0;
};

// Compared member by member, smaller is better; a total order for plans of one problem.
struct PlanCost {
  int64_t pdb_violations = 0;   // pods evicted beyond what their budgets allow
  std::optional<int64_t> rank;  // highest of a victim
  int64_t in_quota = 0;         // quanta (GPU-equivalents, unit by unit)
  int64_t gangs = 0;            // broken
  int64_t collateral = 0;       // pods of victims outside the region, of victims with pods in it
  int64_t lost_gpu_ms = 0;
  int64_t pods = 0;
  // Quanta freed beyond the preemptor's charge (GPU-equivalents of sums, >= 0).
  int64_t surplus = 0;
  // Then the newest start, then the key: victims newest first (ties by key); the first difference
  // decides, newer start or smaller key being better.
  std::vector<std::pair<Millis, std::string>> order;  // negated start, key; ascending

  friend auto operator<=>(const PlanCost&, const PlanCost&) = default;
};

struct ReclaimPlan {
  ReclaimRule rule = ReclaimRule::kNone;
  std::size_t region = 0;
  std::vector<int> victims;  // positions in units, ascending; empty: it fits as it is
  PlanCost cost;
  bool optimal = false;  // proven least cost of all plans of the rule that won
};

}  // namespace tranche
