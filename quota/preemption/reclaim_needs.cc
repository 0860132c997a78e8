// What the search wants to know of the rules, to leave out what cannot matter.
#include <algorithm>

#include "quota/preemption/reclaim_rules.h"

namespace tranche {
namespace {

Charge* AmountOn(std::vector<LineCharge>& amounts, LineId line) {
  const auto at = std::ranges::find(amounts, line, &LineCharge::line);
  return at == amounts.end() ? nullptr : &at->charge;
}

}  // namespace

std::vector<LineCharge> ReclaimRules::Needs(const Step& step, std::size_t region) {
  if (path_.empty() || step.rule == ReclaimRule::kR0) return {};
  Start(step, region);
  FindLacking();
  std::vector<LineCharge> needs = lacking_;
  if (step.rule != ReclaimRule::kR1) return needs;
  for (const QuotaId id : path_) {
    for (const LineCharge& asked : asked_) {
      Charge borrowed = trial_.Borrowed(id, asked.line);
      if (asked.charge.compute == 0) borrowed.compute = 0;
      if (asked.charge.memory == 0) borrowed.memory = 0;
      if (borrowed == Charge{}) continue;
      if (AmountOn(needs, asked.line) == nullptr) needs.push_back({asked.line, {}});
      Charge& need = *AmountOn(needs, asked.line);
      need = {std::max(need.compute, borrowed.compute), std::max(need.memory, borrowed.memory)};
    }
  }
  return needs;
}

bool ReclaimRules::HelpsFromOutside(const Step& step, std::size_t region, int unit) {
  const VictimUnit& victim = UnitAt(unit);
  if (step.rule == ReclaimRule::kR0 || victim.leaf == kNoQuota) return false;
  if (step.rule != ReclaimRule::kR1 || victim.leaf == problem_.leaf) return true;
  Start(step, region);
  FindLacking();
  devices_lacking_ = false;
  entitlement_ = step.with_own ? Entitlement::kFull : FindEntitlement();
  return entitlement_ != Entitlement::kNone && IsBorrowedForR1(victim) && GivesWhatIsLacked(victim);
}

}  // namespace tranche
