#include "quota/preemption/team_marks.h"

#include <algorithm>
#include <functional>

namespace tranche {
namespace {

int64_t QuantaOf(const Charge& charge) { return AddSaturating(charge.compute, charge.memory); }

bool TakeFrom(ChargeLimit& rest, const Charge& charge) {
  if (!rest.Allows(charge)) return false;
  rest = rest.Minus(charge);
  return true;
}

}  // namespace

TeamMarks::TeamMarks(const ReclaimProblem& problem)
    : problem_(problem), teams_(problem.tree->size()) {
  ranks_.push_back(problem.rank);
  for (const HeldUnit& held : problem.held) ranks_.push_back(held.unit.rank);
  std::ranges::sort(ranks_, std::greater<>());
  ranks_.erase(std::unique(ranks_.begin(), ranks_.end()), ranks_.end());
  const auto place_of = [&](int rank) {
    return static_cast<std::size_t>(std::ranges::find(ranks_, rank) - ranks_.begin());
  };
  own_rank_ = place_of(problem.rank);
  for (const HeldUnit& held : problem.held) {
    teams_[held.leaf].pieces.push_back(pieces_.size());
    teams_[held.leaf].is_promised |= !held.promised.empty();
    any_promised_ |= !held.promised.empty();
    pieces_.push_back({&held, place_of(held.unit.rank), held.unit.parts});
  }
  for (QuotaId leaf{0}; leaf < problem.tree->size(); ++leaf) {
    Team& team = teams_[leaf];
    std::ranges::sort(team.pieces, [&](std::size_t left, std::size_t right) {
      return FillsBefore(pieces_[left].held->unit, pieces_[right].held->unit);
    });
    for (std::size_t line = 0; line < problem.tree->lines() && !team.pieces.empty(); ++line) {
      team.nominal.push_back(problem.tree->Nominal(leaf, LineId(static_cast<int32_t>(line))));
    }
    if (team.pieces.empty()) continue;
    for (const Promises promises : all_promises()) {
      Count(leaf, team, promises, team.views[ViewOf(leaf, promises)].before);
    }
  }
}

void TeamMarks::Take(const VictimUnit& unit, int sign) {
  Piece& piece = pieces_[*unit.held];
  for (const LineCharge& gone : unit.parts) {
    const auto part = std::ranges::find(piece.left, gone.line, &MarkUnit::Part::line);
    if (part == piece.left.end()) continue;
    part->charge.compute += sign * gone.charge.compute;
    part->charge.memory += sign * gone.charge.memory;
  }
  for (View& view : teams_[unit.leaf].views) view.stale = true;
}

// As MarkLines does it.
void TeamMarks::Count(QuotaId leaf, Team& team, Promises promises, InQuota& in_quota) {
  in_quota.by_line.assign(team.nominal.size(), {});
  in_quota.by_rank.assign(2 * ranks_.size(), 0);
  rest_ = team.nominal;
  const auto note = [&](LineId line, std::size_t place, const Charge& charge) {
    if (!problem_.tree->Limits(leaf, line)) return;
    Charge& sum = in_quota.by_line[static_cast<std::size_t>(line.number())];
    sum = AddSaturating(sum, charge);
    in_quota.by_rank[place] = AddSaturating(in_quota.by_rank[place], QuantaOf(charge));
  };
  for (const std::size_t at : team.pieces) {
    const Piece& piece = pieces_[at];
    if (piece.held->unit.rank == 0 || piece.held->unit.demoted) continue;
    const std::vector<Charge>& promised = piece.held->promised;
    const bool loses = promises == Promises::kKept && !promised.empty();
    if (loses) {
      less_ = piece.left;
      for (std::size_t i = 0; i < promised.size(); ++i) {
        less_[i].charge.compute -= promised[i].compute;
        less_[i].charge.memory -= promised[i].memory;
      }
    }
    const std::vector<MarkUnit::Part>& parts = loses ? less_ : piece.left;
    bool in_model = true;
    Charge whole;
    for (const MarkUnit::Part& part : parts) {
      whole = AddSaturating(whole, part.charge);
      if (part.line == kNoLine) continue;
      in_model &= TakeFrom(rest_[static_cast<std::size_t>(part.line.number())], part.charge);
    }
    for (const MarkUnit::Part& part : parts) {
      if (in_model) note(part.line, piece.rank, part.charge);
    }
    if (TakeFrom(rest_.front(), whole)) note(kAnyLine, ranks_.size() + piece.rank, whole);
  }
}

const TeamMarks::InQuota& TeamMarks::Now(QuotaId leaf, Promises promises) {
  Team& team = teams_[leaf];
  View& view = team.views[ViewOf(leaf, promises)];
  if (view.stale) Count(leaf, team, promises, view.now);
  view.stale = false;
  return view.now;
}

}  // namespace tranche
