// Whether a pod may be evicted at this moment, and what it would lose (quota-model section 4,
// "Against thrash").
//
// Reads the policies in force and what is kept of evictions; changes nothing. Externally
// synchronised, as the engine is. Cost: one look-up a pod, and one a PodDisruptionBudget of its
// namespace.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "policy/policy_set.h"
#include "quota/preemption/moment.h"
#include "quota/quota_book.h"
#include "scheduler/engine/state/preemption_state.h"
#include "scheduler/engine/state/records.h"
#include "scheduler/facts/reclaim.h"

namespace tranche {

enum class Guard : uint8_t {
  kNone,
  kDisruptionBudget,
  kMinRuntime,
  kImmunity,    // its owner was evicted, and has started it since
  kDailyLimit,  // of its class
  kSettled,     // came by a reclaim itself
};
struct GuardVerdict {
  bool touchable = true;  // false: no rule ever takes it (R4), whatever the time
  Guard guard = Guard::kNone;
  std::optional<Instant> until;
};

// "by its minimum runtime": completes "is protected".
std::string_view GuardName(Guard guard);

class EvictionGuards {
 public:
  // Both must outlive it; the set may be replaced by another.
  EvictionGuards(const std::shared_ptr<const PolicySet>& set, const PreemptionState& state)
      : set_(set), state_(state) {}

  GuardVerdict Of(const PodUid& uid, const PodRecord& record, const HeldWork& work,
                  Instant now) const;
  // The same without what PodDisruptionBudgets say. Cost: a few look-ups.
  GuardVerdict OfTime(const PodUid& uid, const PodRecord& record, const HeldWork& work,
                      Instant now) const;
  // May the pod be stopped for a reason of its own, whoever waits? Classes that are never preempted
  // may; work under a quota that only observes may not.
  bool MayStop(const PodRecord& record, const HeldWork& work) const;
  // Its class is never preempted, so no rule takes it for others' sake.
  bool IsNeverEvicted(const HeldWork& work) const;
  // Its class is evicted only beyond its team's nominal, and it is within: as if it were never
  // preempted.
  bool IsWithinNominal(const HeldWork& work) const;
  // Does a PodDisruptionBudget that allows nothing cover the pod?
  bool IsProtected(const PodRecord& record) const;
  // Do all PodDisruptionBudgets allow these pods, which hold something, to go together?
  bool BudgetsAllow(std::span<const PodRecord* const> pods, Instant now) const;
  // What the pod would lose, and how that goes on; `ages` speaks for the silent.
  WorkInTime RiskOf(const PodRecord& record, const HeldWork& work, const CheckpointAges& ages,
                    Instant now) const;
  // GPU-milliseconds the pod would lose if it went now.
  int64_t LossOf(const PodRecord& record, const HeldWork& work, const CheckpointAges& ages,
                 Instant now) const;
  // From here on `plan` is being looked at again, and an owner's day that it has filled itself
  // guards nobody from it; nullptr: no plan is.
  void LookAgainAt(const Reclaim* plan) { own_ = plan; }

 private:
  template <typename See>
  void ForBudgetsOf(const PodRecord& record, const See& see) const;
  bool EvictedItself(const std::string& owner) const;

  const std::shared_ptr<const PolicySet>& set_;
  const PreemptionState& state_;
  const Reclaim* own_ = nullptr;
};

}  // namespace tranche
