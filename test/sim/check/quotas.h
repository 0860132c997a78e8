// Nobody is admitted beyond what its team may have: at each Binding of ours every quota on the
// path had room for it, in both lines and dimensions.
//
// The rule. Used is what pods hold by their Bindings, charged to the leaf they count against
// (owners.h), where that is certain, and what claims have devices for, charged to the leaf of their
// namespace when they got them. The room is counted as it is now, and as it was at any moment since
// the pod was filtered last (and for two seconds before), since its admission was then: one of
// these must have had room. What the same process promised in its ledger before this bind it knew
// of: the team is asked once more for each bind. Not judged: leaves that do not
// enforce, budgets that suspend a nominal where lending is limited, and amounts in slices or
// memory.
#pragma once

#include <map>
#include <string>

#include "test/sim/check/checker.h"
#include "test/sim/check/owners.h"
#include "test/sim/check/quota_model.h"

namespace tranche::sim::check {

class QuotaChecker : public Checker {
 public:
  using Checker::Checker;
  void Hear(const Happening& happening) override;

 private:
  void Bound(const PodLife& pod, SimTime now);

  Owners owners_{truth_, options_.lag};
  std::map<std::string, int64_t> promised_;  // as which one the bind of that uid was
  int64_t promises_ = 0;
};

// Of these `who` knew, for it had promised them before: they count as held since.
struct OwnBinds {
  std::string who;
  const std::map<std::string, int64_t>& promised;
  int64_t before = 0;
};

// What pods and claims held in the time from `since` to `now`, without `but`, put into the model:
// what anybody held then at any moment, of every quota that it may count against; or what was held
// in all of it, of one quota for certain.
enum class Held : uint8_t { kThroughout, kAtAnyMoment };
void UseHoldings(QuotaModel& model, const Truth& truth, const Owners& owners, SimTime since,
                 SimTime now, Held which, const PodLife* but, const OwnBinds* own = nullptr);

}  // namespace tranche::sim::check
