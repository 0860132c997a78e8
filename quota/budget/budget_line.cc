#include "quota/budget/budget_line.h"

#include <algorithm>

namespace tranche {
namespace {

// The whole milliseconds from `value` down (up) to `limit`, the rate pointing there.
Int128 TimeTo(Int128 value, Int128 rate, Int128 limit) {
  const Int128 way = limit > value ? limit - value : value - limit;
  const Int128 speed = rate > 0 ? rate : -rate;
  return (way + speed - 1) / speed;
}

// When one dimension is first at most `limit`, in ms from the start of a straight piece.
std::optional<Int128> FallsTo(Int128 value, Int128 rate, Int128 limit) {
  if (value <= limit) return 0;
  if (rate >= 0) return std::nullopt;
  return TimeTo(value, rate, limit);
}

std::optional<Int128> RisesTo(Int128 value, Int128 rate, Int128 limit) {
  if (value >= limit) return 0;
  if (rate <= 0) return std::nullopt;
  return TimeTo(value, rate, limit);
}

// Both answer for one straight piece, `length` ms long, after which it stands at `end`; nullopt:
// not within it.
//
// A dimension that rises past the limit before the other has fallen to it stays above, so the later
// of the two moments is the only candidate.
std::optional<Millis> BothAtMost(const GpuTime& value, const GpuTime& rate, const GpuTime& end,
                                 Int128 limit, Millis length) {
  // Most pieces end above it, which shows without a division.
  if (std::min(value.compute, end.compute) > limit || std::min(value.memory, end.memory) > limit) {
    return std::nullopt;
  }
  const auto compute = FallsTo(value.compute, rate.compute, limit);
  const auto memory = FallsTo(value.memory, rate.memory, limit);
  if (!compute || !memory) return std::nullopt;
  const Int128 later = std::max(*compute, *memory);
  if (later >= length.count()) return std::nullopt;
  const Millis wait(static_cast<int64_t>(later));
  return Larger(value + rate * wait) <= limit ? std::optional(wait) : std::nullopt;
}

std::optional<Millis> EitherAtLeast(const GpuTime& value, const GpuTime& rate, const GpuTime& end,
                                    Int128 limit, Millis length) {
  if (Larger(value) < limit && Larger(end) < limit) return std::nullopt;
  const Int128 never = length.count();
  const Int128 sooner = std::min(RisesTo(value.compute, rate.compute, limit).value_or(never),
                                 RisesTo(value.memory, rate.memory, limit).value_or(never));
  if (sooner >= never) return std::nullopt;
  return Millis(static_cast<int64_t>(sooner));
}

template <typename First>
std::optional<Instant> Walk(const BudgetLine& line, Int128 limit, Instant until, First first) {
  std::vector<Bend> bends = line.bends;
  std::stable_sort(bends.begin(), bends.end(),
                   [](const Bend& left, const Bend& right) { return left.at < right.at; });
  auto own = bends.begin();
  std::size_t fading = line.fading_from;
  const std::size_t fading_end = line.fading == nullptr ? fading : line.fading->size();
  Instant from = line.from;
  GpuTime value = line.value;
  GpuTime rate = line.rate;
  while (from < until) {
    const Bend oldest = fading < fading_end ? (*line.fading)[fading] : Bend{};
    const bool fades =
        fading < fading_end && (own == bends.end() || oldest.at + line.fades_after < own->at);
    const bool last = !fades && own == bends.end();
    const Instant bend = fades ? oldest.at + line.fades_after : last ? until : own->at;
    const Instant to = std::min(bend, until);
    const GpuTime end = value + rate * (to - from);
    if (const auto wait = first(value, rate, end, limit, to - from)) return from + *wait;
    if (last) break;
    value = end;
    if (fades) {
      rate -= oldest.change;
      ++fading;
    } else {
      rate += (own++)->change;
    }
    from = to;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Instant> FirstAtMost(const BudgetLine& line, Int128 limit, Instant until) {
  return Walk(line, limit, until, BothAtMost);
}

std::optional<Instant> FirstAtLeast(const BudgetLine& line, Int128 limit, Instant until) {
  return Walk(line, limit, until, EitherAtLeast);
}

}  // namespace tranche
