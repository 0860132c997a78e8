#include "scheduler/engine/preemption/awaited_nodes.h"

#include <fmt/format.h>

#include <algorithm>

#include "policy/spec.h"

namespace tranche {
namespace {

// Quota of a team is not raised with a node.
bool WaitsForRoom(Reason reason) {
  return reason == Reason::kNone || reason == Reason::kGangNoRoom || MoreRoomWouldHelp(reason);
}

}  // namespace

void AwaitedNodes::Note(const PodUid& uid, Instant told, Instant now) {
  // The clock of who said it may be ahead.
  told = std::min(told, now);
  while (!by_time_.empty() && by_time_.begin()->first + kRemembered <= now) {
    Forget(PodUid(by_time_.begin()->second));
  }
  if (told + kRemembered <= now) return;
  heard_ = std::max(heard_.value_or(told), told);
  if (told_.size() >= kMost || !told_.emplace(uid, told).second) return;
  by_time_.emplace(told, uid);
}

void AwaitedNodes::Forget(const PodUid& uid) {
  const auto known = told_.find(uid);
  if (known == told_.end()) return;
  by_time_.erase({known->second, uid});
  told_.erase(known);
}

Millis AwaitedNodes::LongestFor(const Preemptor& preemptor, Instant now) const {
  if (!heard_ || *heard_ + kRemembered <= now) return Millis(0);
  return std::min(preemptor.context.policy->wait_for_nodes, PatienceOf(preemptor));
}

std::optional<PlanBlock> AwaitedNodes::HoldOf(const Preemptor& preemptor, Instant now) const {
  const Millis longest = LongestFor(preemptor, now);
  if (longest == Millis(0)) return std::nullopt;
  std::optional<Instant> told;   // the first word about any of them
  std::optional<Instant> since;  // the last of them began to wait
  for (const auto& member : preemptor.members) {
    const auto known = told_.find(member->uid);
    if (known != told_.end()) told = std::min(told.value_or(known->second), known->second);
    const PodRecord* record = cluster_.Find(member->uid);
    if (record == nullptr) continue;
    if (!WaitsForRoom(record->last_reason)) return std::nullopt;
    since = std::max(since.value_or(record->waits_since), record->waits_since);
  }
  if (told && *told + longest > now) {
    return PlanBlock{Reason::kNodeExpected, "an autoscaler raises a node for it", *told + longest};
  }
  if (!told && since && *since + std::min(longest, kFirstLook) > now) {
    return PlanBlock{Reason::kNodeExpected, "an autoscaler may raise a node for it",
                     *since + std::min(longest, kFirstLook)};
  }
  return std::nullopt;
}

}  // namespace tranche
