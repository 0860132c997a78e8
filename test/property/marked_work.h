// What a leaf has in quota once some of its work is gone, asked of MarkLines. Only tests use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "quota/preemption/reclaim.h"
#include "quota/tree/marking.h"
#include "quota/tree/quota_tree.h"

namespace tranche {

// What the leaf's work has in quota with some of it gone: by line, and by line and rank.
struct MarkedWork {
  std::map<LineId, Charge> by_line;
  std::map<std::pair<bool, int>, int64_t> by_rank;  // models before `any`, ranks negated
};
inline MarkedWork MarkedWithout(const ReclaimProblem& problem, QuotaId leaf,
                                const std::vector<int>& victims) {
  const auto plus = [](const Charge& a, const Charge& b) {
    return Charge{a.compute + b.compute, a.memory + b.memory};
  };
  std::vector<MarkUnit> units;
  for (std::size_t i = 0; i < problem.held.size(); ++i) {
    if (problem.held[i].leaf != leaf) continue;
    MarkUnit unit = problem.held[i].unit;
    for (const int victim : victims) {
      const VictimUnit& gone = problem.units[static_cast<std::size_t>(victim)];
      if (gone.held != i) continue;
      for (const LineCharge& part : gone.parts) {
        for (MarkUnit::Part& left : unit.parts) {
          if (left.line != part.line) continue;
          left.charge = {left.charge.compute - part.charge.compute,
                         left.charge.memory - part.charge.memory};
        }
      }
    }
    units.push_back(std::move(unit));
  }
  const std::vector<LineMarks> marks =
      MarkLines(units, [&](LineId line) { return problem.tree->Nominal(leaf, line); });
  MarkedWork marked;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const auto note = [&](LineId line, const Charge& charge) {
      if (!problem.tree->Limits(leaf, line)) return;
      marked.by_line[line] = plus(marked.by_line[line], charge);
      marked.by_rank[{line == kAnyLine, -units[i].rank}] += charge.compute + charge.memory;
    };
    Charge whole;
    for (const MarkUnit::Part& part : units[i].parts) {
      whole = plus(whole, part.charge);
      if (marks[i].in_model) note(part.line, part.charge);
    }
    if (marks[i].in_any) note(kAnyLine, whole);
  }
  return marked;
}

}  // namespace tranche
