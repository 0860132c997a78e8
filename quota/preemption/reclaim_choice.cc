// What a set of victims leaves behind: their due to teams that R1 chooses from, fair shares.
#include <algorithm>
#include <compare>
#include <set>
#include <vector>

#include "quota/preemption/reclaim_rules.h"
#include "topology/base/int128.h"

namespace tranche {
// ---- R1 by choice -----------------------------------------------------------------------------

int64_t ReclaimRules::EffortOf(int unit) const {
  constexpr std::size_t kPiecesOfOne = 16;
  const VictimUnit& victim = UnitAt(unit);
  if (!step_.by_choice || !victim.held) return 1;
  return 1 + static_cast<int64_t>(marks_->SizeOf(victim.leaf) / kPiecesOfOne);
}

// Asked with the latest victim gone. Who is marked as borrowed may always go.
bool ReclaimRules::LeavesTheirDue() const {
  std::set<QuotaId> chosen;
  std::set<QuotaId> without_model;
  for (const int unit : pushed_) {
    const VictimUnit& victim = UnitAt(unit);
    if (GoesFirst(victim)) continue;
    if (!IsBorrowedForR1(victim)) chosen.insert(victim.leaf);
    const bool has_model = std::ranges::any_of(victim.parts, [&](const LineCharge& part) {
      return trial_.Limits(victim.leaf, part.line);
    });
    if (!has_model) without_model.insert(victim.leaf);
  }
  if (chosen.empty()) return true;
  return std::ranges::all_of(marks_->all_promises(), [&](Promises promises) {
    return std::ranges::all_of(chosen,
                               [&](QuotaId leaf) {
                                 const bool also_any = entitlement_ == Entitlement::kAnyOnly ||
                                                       without_model.contains(leaf);
                                 return KeepsItsDue(leaf, also_any, promises);
                               }) &&
           RaisesWhatIsInQuota(promises);
  });
}

bool ReclaimRules::KeepsItsDue(QuotaId leaf, bool also_any, Promises promises) const {
  const std::vector<Charge>& before = marks_->Before(leaf, promises).by_line;
  const std::vector<Charge>& now = marks_->Now(leaf, promises).by_line;
  for (std::size_t line = also_any ? 0 : 1; line < before.size(); ++line) {
    if (now[line].compute < before[line].compute || now[line].memory < before[line].memory) {
      return false;
    }
  }
  return true;
}

bool ReclaimRules::RaisesWhatIsInQuota(Promises promises) const {
  std::vector<int64_t> risen(2 * marks_->ranks(), 0);
  std::set<QuotaId> leaves;
  for (const int unit : pushed_) {
    if (UnitAt(unit).held) leaves.insert(UnitAt(unit).leaf);
  }
  for (const QuotaId leaf : leaves) {
    const std::vector<int64_t>& before = marks_->Before(leaf, promises).by_rank;
    const std::vector<int64_t>& now = marks_->Now(leaf, promises).by_rank;
    for (std::size_t i = 0; i < risen.size(); ++i) risen[i] += now[i] - before[i];
  }
  for (const LineCharge& asked : asked_) {
    if (!trial_.Limits(problem_.leaf, asked.line)) continue;
    const int64_t quanta = asked.charge.compute + asked.charge.memory;
    if (asked.line == kAnyLine) risen[marks_->PlaceOnAny()] += quanta;
    if (asked.line != kAnyLine && entitlement_ == Entitlement::kFull) {
      risen[marks_->PlaceOnModels()] += quanta;
    }
  }
  const auto first = std::ranges::find_if(risen, [](int64_t amount) { return amount != 0; });
  return first != risen.end() && *first > 0;
}

// ---- R5 ---------------------------------------------------------------------------------------

// The largest over lines of what the leaf borrows, in GPU-equivalents.
int64_t ReclaimRules::BorrowedShare(QuotaId leaf) const {
  int64_t share = 0;
  for (const LineId line : lines_) {
    share = std::max(share, GpuEquivalents(trial_.Borrowed(leaf, line)));
  }
  for (const LineCharge& asked : asked_) {
    share = std::max(share, GpuEquivalents(trial_.Borrowed(leaf, asked.line)));
  }
  return share;
}

// The gap of a tenth keeps the reverse from being allowed next.
bool ReclaimRules::StaysFair(QuotaId victims) const {
  const auto weight = [&](QuotaId leaf) {
    return leaf < problem_.weights.size() ? problem_.weights[leaf] : 1;
  };
  const int64_t theirs = BorrowedShare(victims);
  return theirs > 0 && Int128{11} * BorrowedShare(problem_.leaf) * weight(victims) <=
                           Int128{10} * theirs * weight(problem_.leaf);
}

}  // namespace tranche
