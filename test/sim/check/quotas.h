// Nobody is admitted beyond what its team may have: at each Binding of ours every quota on the
// path had room for it, in both lines and dimensions.
//
// The rule. Used is what pods hold by their Bindings, charged to the leaf their record names, and
// what claims have devices for, charged to the leaf of their namespace when they got them. The room
// is counted as it is now, and as it was at any moment since the pod was filtered last (and for two
// seconds before), since its admission was then: one of these must have had room. Not judged:
// leaves that do not enforce, budgets that suspend a nominal where lending is limited, and amounts
// in slices or memory.
#pragma once

#include "test/sim/check/checker.h"
#include "test/sim/check/quota_model.h"

namespace tranche::sim::check {

class QuotaChecker : public Checker {
 public:
  using Checker::Checker;
  void Hear(const Happening& happening) override;

 private:
  void Bound(const PodLife& pod, SimTime now);
};

// What pods and claims held in the time from `since` to `now`, without `but`, put into the model.
// `all_of_it`: what anybody held then at any moment; else what was held in all of it.
enum class Held : uint8_t { kThroughout, kAtAnyMoment };
void UseHoldings(QuotaModel& model, const Truth& truth, SimTime since, SimTime now, Held which,
                 const PodLife* but);

}  // namespace tranche::sim::check
