#include "quota/tree/marking.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace tranche {
namespace {

// What is left of one leaf's nominal, line by line.
class Remainder {
 public:
  explicit Remainder(const std::function<ChargeLimit(LineId line)>& nominal) : nominal_(nominal) {}

  // Takes the charge from the line if all of it fits.
  bool Take(LineId line, const Charge& charge) {
    auto at = left_.find(line);
    if (at == left_.end()) at = left_.emplace(line, nominal_(line)).first;
    if (!at->second.Allows(charge)) return false;
    at->second = at->second.Minus(charge);
    return true;
  }

 private:
  const std::function<ChargeLimit(LineId line)>& nominal_;
  std::map<LineId, ChargeLimit> left_;
};

LineMarks MarkOne(const MarkUnit& unit, Remainder& remainder) {
  if (unit.rank == 0) return {QuotaState::kScavenging, false, false};
  if (unit.demoted) return {QuotaState::kBorrowed, false, false};
  LineMarks marks;
  Charge whole;
  for (const MarkUnit::Part& part : unit.parts) {
    whole = AddSaturating(whole, part.charge);
    if (part.line != kNoLine && !remainder.Take(part.line, part.charge)) marks.in_model = false;
  }
  marks.in_any = remainder.Take(kAnyLine, whole);
  const bool fits = marks.in_model && marks.in_any;
  marks.state = fits ? QuotaState::kInQuota : QuotaState::kBorrowed;
  return marks;
}

}  // namespace

std::string_view QuotaStateName(QuotaState state) {
  // In the order of QuotaState.
  static constexpr std::string_view kNames[] = {"in-quota", "borrowed", "scavenging"};
  return kNames[static_cast<std::size_t>(state)];
}

bool FillsBefore(const MarkUnit& left, const MarkUnit& right) {
  return std::tie(left.preemptible, right.rank, left.start, left.key) <
         std::tie(right.preemptible, left.rank, right.start, right.key);
}

std::vector<LineMarks> MarkLines(std::span<const MarkUnit> units,
                                 const std::function<ChargeLimit(LineId line)>& nominal) {
  std::vector<std::size_t> order(units.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return FillsBefore(units[left], units[right]);
  });
  std::vector<LineMarks> marks(units.size());
  Remainder remainder(nominal);
  for (const std::size_t i : order) marks[i] = MarkOne(units[i], remainder);
  return marks;
}

std::vector<QuotaState> Mark(std::span<const MarkUnit> units,
                             const std::function<ChargeLimit(LineId line)>& nominal) {
  std::vector<QuotaState> states;
  states.reserve(units.size());
  for (const LineMarks& marks : MarkLines(units, nominal)) states.push_back(marks.state);
  return states;
}

}  // namespace tranche
