#include "quota/preemption/moment.h"

#include <algorithm>
#include <vector>

#include "topology/base/int128.h"

namespace tranche {
namespace {

constexpr int64_t kWaitingCounts = 10;  // seconds of it as one of lost work
// A checkpoint that is so many gaps late will not come.
constexpr int64_t kMostGaps = 2;
constexpr int kMostAhead = 8;  // checkpoints of one victim that are looked at

// GPU-milliseconds that the victim loses if it goes at `at`.
int64_t LossAt(const WorkInTime& victim, Instant now, Instant at) {
  WorkAtRisk work = victim.work;
  const std::optional<Instant> next = NextCheckpoint(victim, now);
  if (next && *next <= at) work.checkpoint = *next + (at - *next) / victim.gap * victim.gap;
  return LostGpuMillis(work, victim.assumed, at);
}

}  // namespace

std::optional<Instant> NextCheckpoint(const WorkInTime& victim, Instant now) {
  const WorkAtRisk& work = victim.work;
  const bool writes = work.checkpoint && work.running && *work.checkpoint >= *work.running;
  if (!writes || victim.gap <= Millis(0) || work.relocatable) return std::nullopt;
  const Instant last = std::min(*work.checkpoint, now);
  if (now - last >= kMostGaps * victim.gap) return std::nullopt;
  return last + ((now - last) / victim.gap + 1) * victim.gap;
}

std::optional<Instant> BetterMoment(std::span<const WorkInTime> victims, const Charge& waiting,
                                    Instant now, Instant latest) {
  const auto cost_at = [&](Instant at) {
    const Int128 waits = Int128{GpuEquivalents(waiting)} * (at - now).count();
    Int128 cost = waits / (kQuantaPerGpu * kWaitingCounts);
    for (const WorkInTime& victim : victims) cost += LossAt(victim, now, at);
    return cost;
  };
  std::vector<Instant> moments;
  for (const WorkInTime& victim : victims) {
    std::optional<Instant> next = NextCheckpoint(victim, now);
    for (int i = 0; i < kMostAhead && next && *next <= latest; ++i, *next += victim.gap)
      moments.push_back(*next);
  }
  std::ranges::sort(moments);
  std::optional<Instant> best;
  Int128 least = cost_at(now);
  for (const Instant at : moments) {
    const Int128 cost = cost_at(at);
    if (cost >= least) continue;
    least = cost;
    best = at;
  }
  return best;
}

}  // namespace tranche
