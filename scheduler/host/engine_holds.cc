#include "scheduler/host/engine_holds.h"

#include <algorithm>
#include <string>

namespace tranche {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(EngineCaller::kCount)> kNames = {
    "filter", "prioritize", "preempt", "bind",       "admission", "events", "policies",
    "tick",   "plan",       "learn",   "status",     "metrics",   "pages",  "what-if",
    "advice", "foresight",  "ledger",  "self-check", "start",     "other"};

}  // namespace

std::string_view EngineCallerName(EngineCaller caller) {
  return kNames[static_cast<std::size_t>(caller)];
}

bool EngineHolds::Note(EngineCaller caller, Moment from, Moment until) {
  Sum& sum = sums_[static_cast<std::size_t>(caller)];
  const std::chrono::nanoseconds took = until - from;
  ++sum.holds;
  sum.total += took;
  sum.longest = std::max(sum.longest, took);
  sum.felt_holds += took > kFelt;
  if (took <= kLong) return false;
  ++sum.long_holds;
  if (caller == EngineCaller::kStart) return false;
  if (told_ != Moment::min() && until - told_ < kLogGap) return false;
  told_ = until;
  return true;
}

std::vector<metrics::HoldRow> EngineHolds::Rows() const {
  std::vector<metrics::HoldRow> rows;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const Sum& sum = sums_[i];
    if (sum.holds == 0) continue;
    rows.push_back({std::string(kNames[i]), sum.holds, sum.felt_holds, sum.long_holds,
                    std::chrono::duration<double>(sum.total).count(),
                    std::chrono::duration<double>(sum.longest).count()});
  }
  return rows;
}

}  // namespace tranche
