// What the ledger charges a pod is when it held its devices, to the second.
//
// The rule. A pod that we bound held its devices from the write of its node (B) until it was
// Succeeded, Failed or gone (E). Its intervals in the ledger that are not void, taken together,
//  - begin at B, or at the reservation before it, which is no earlier than the last answer of the
//    filter verb before B, or than the pod where callers end or answers are lost; one second is
//    allowed on either side, as it is everywhere below;
//  - end at E or when its containers had finished, whichever is earlier, one second allowed before
//    and after; and so much later as nobody led at E, until ten seconds after somebody led again.
//    An end that the ledger calls estimated may lie anywhere in the time in which nobody led, but
//    not after the last leader was lost: whether it ran on nobody knows.
// A pod that was never bound is charged nothing. If a bind of it was under way when the leader was
// lost, and it was gone when somebody led again, nobody can tell whether it had run: it is charged
// until the leader was lost, and the ledger calls that estimated. Where the clocks of replicas are
// wrong, times are labels: then the lengths of what one process metered from begin to end are
// compared, with the same allowances and a thousandth for clocks that run fast. Not judged:
// pods on nodes that were lost meanwhile (use is given back), ledgers whose disk failed, and what a
// leader without its ledger placed and had ended before one with its ledger led; nor what was there
// before all of us and was gone before the first to lead had its lists.
#pragma once

#include "test/sim/check/checker.h"
#include "test/sim/check/ledger.h"
#include "test/sim/check/terms.h"

namespace tranche::sim::check {

class ChargeChecker : public Checker {
 public:
  using Checker::Checker;
  void Hear(const Happening& happening) override { terms_.Hear(happening); }
  void AtEnd(const Ending& ending) override;

 private:
  bool IsCharged(const PodLife& pod) const;
  bool WasGoneAtOnce(const PodLife& pod) const;
  void Judge(const PodLife& pod, const Charged& charged, SimTime now);
  void JudgeLength(const PodLife& pod, const Charged& charged);
  SimTime Reserved(const PodLife& pod) const;

  Terms terms_;
};

}  // namespace tranche::sim::check
