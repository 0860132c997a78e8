#include "scheduler/controllers/reclaim_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "scheduler/wire/json/json.h"

namespace tranche {
namespace {

constexpr std::size_t kNamed = 5;  // pods named in one note

bool Started(ReclaimPhase phase) {
  return phase != ReclaimPhase::kPlanned && phase != ReclaimPhase::kAborted;
}

// "ns/a, ns/b and 3 more".
template <typename Pods>
std::string NamesOf(const Pods& pods) {
  std::string text;
  for (std::size_t i = 0; i < std::min(pods.size(), kNamed); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", pods[i].pod.str());
  }
  if (pods.size() > kNamed) text += fmt::format(" and {} more", pods.size() - kNamed);
  return text;
}

std::string Counted(std::size_t pods) {
  return fmt::format("{} pod{}", pods, pods == 1 ? "" : "s");
}

std::string RuleWords(ReclaimRule rule) {
  switch (rule) {
    case ReclaimRule::kR0:
      return "R0: work of a lower class that no team is entitled to goes first";
    case ReclaimRule::kR1:
      return "R1: the team takes back what is its own from those who borrowed it";
    case ReclaimRule::kR2a:
      return "R2a: the team's own work of a lower class goes first";
    case ReclaimRule::kR2b:
      return "R2b: the team's own borrowed work of a lower class goes first";
    case ReclaimRule::kR3:
      return "R3: borrowed work of a lower class goes first";
    case ReclaimRule::kR5:
      return "R5: the team that borrows most gives to the one that borrows less";
    case ReclaimRule::kNone:
    case ReclaimRule::kDrain:
    case ReclaimRule::kShrink:
    case ReclaimRule::kGang:
    case ReclaimRule::kMaxRuntime:
    case ReclaimRule::kMaintenance:
    case ReclaimRule::kUnhealthy:
    case ReclaimRule::kIdle:
    case ReclaimRule::kConsolidate:
    case ReclaimRule::kMigLayout:
    case ReclaimRule::kInterruption:
      break;
  }
  return std::string(ReclaimRuleName(rule));
}

// Why a victim has to go.
std::string Cause(const Reclaim& reclaim) {
  if (reclaim.rule == ReclaimRule::kDrain) {
    return fmt::format("GPUBudget {} is used up and drains", reclaim.source);
  }
  if (reclaim.rule == ReclaimRule::kShrink) {
    return fmt::format("GPUQuota {} was lowered and takes back what is over it", reclaim.source);
  }
  if (reclaim.rule == ReclaimRule::kGang) {
    return fmt::format("gang {} runs in part and gives back what it has", reclaim.source);
  }
  if (reclaim.rule == ReclaimRule::kMaxRuntime) {
    return fmt::format("GPUClass {} lets its pods run no longer (maxRuntime)", reclaim.source);
  }
  if (reclaim.rule == ReclaimRule::kIdle) {
    return fmt::format("the GPUs of work of GPUClass {} did nothing for its idleAfter",
                       reclaim.source);
  }
  if (reclaim.rule == ReclaimRule::kMaintenance) {
    return fmt::format("maintenance of GPUPool {} begins", reclaim.source);
  }
  if (reclaim.rule == ReclaimRule::kUnhealthy) {
    return fmt::format("a GPU of Node {} that it or its gang has is unhealthy", reclaim.source);
  }
  if (reclaim.rule == ReclaimRule::kInterruption) {
    return fmt::format("Node {} is about to be taken away", reclaim.source);
  }
  if (reclaim.rule == ReclaimRule::kConsolidate) {
    return fmt::format("Node {} is emptied, as other nodes have room for its work", reclaim.source);
  }
  if (reclaim.rule == ReclaimRule::kMigLayout) {
    return fmt::format("Node {} is emptied for another MIG layout", reclaim.source);
  }
  return fmt::format("room is made for {} by rule {}", NamesOf(reclaim.members),
                     RuleWords(reclaim.rule));
}

// The same event on everybody the reclaim is for.
void Tell(const Reclaim& reclaim, EventWrite event, std::vector<EventWrite>& events) {
  for (const ReclaimMember& member : reclaim.members) {
    event.kind = "Pod";
    event.ns = member.pod.ns;
    event.name = member.pod.name;
    event.uid = member.uid.str();
    events.push_back(event);
  }
  if (!reclaim.members.empty() || reclaim.rule == ReclaimRule::kGang) return;
  event.kind = SourceKind(reclaim.rule);
  event.name = reclaim.source;
  events.push_back(std::move(event));
}

}  // namespace

std::vector<const ReclaimVictim*> NewlyEvicted(const std::optional<Reclaim>& before,
                                               const Reclaim& after) {
  std::vector<const ReclaimVictim*> found;
  std::set<PodUid> known;
  if (before) {
    for (const ReclaimVictim& former : before->victims) {
      if (former.evicted_at) known.insert(known.end(), former.uid);
    }
  }
  for (const ReclaimVictim& victim : after.victims) {
    if (victim.evicted_at && !known.contains(victim.uid)) found.push_back(&victim);
  }
  return found;
}

std::vector<EventWrite> EventsOf(const std::optional<Reclaim>& before, const Reclaim& after,
                                 Instant now) {
  std::vector<EventWrite> events;
  EventWrite event;
  event.when = now;
  if (Started(after.phase) && !(before && Started(before->phase)) && !after.victims.empty()) {
    event.reason = "Preempting";
    event.action = "Preempting";
    event.note =
        after.members.empty()
            ? fmt::format("evicting {}: {}; {}", Counted(after.victims.size()),
                          NamesOf(after.victims), Cause(after))
            : fmt::format("evicting {} to make room: {}; rule {}", Counted(after.victims.size()),
                          NamesOf(after.victims), RuleWords(after.rule));
    Tell(after, event, events);
  }
  for (const ReclaimVictim* victim : NewlyEvicted(before, after)) {
    EventWrite told = event;
    told.kind = "Pod";
    told.ns = victim->pod.ns;
    told.name = victim->pod.name;
    told.uid = victim->uid.str();
    told.reason = after.rule == ReclaimRule::kMaxRuntime     ? "MaxRuntime"
                  : after.rule == ReclaimRule::kMaintenance  ? "Maintenance"
                  : after.rule == ReclaimRule::kUnhealthy    ? "UnhealthyGPU"
                  : after.rule == ReclaimRule::kIdle         ? "Idle"
                  : after.rule == ReclaimRule::kInterruption ? "Interrupted"
                  : MovesWork(after.rule)                    ? "NodeEmptied"
                                                             : "PreemptedByTranche";
    told.action = "Evicted";
    told.note = fmt::format("{}; about {} GPU-seconds of work are lost", Cause(after),
                            victim->lost_gpu_ms / 1000);
    events.push_back(std::move(told));
  }
  if (after.phase == ReclaimPhase::kAborted &&
      !(before && before->phase == ReclaimPhase::kAborted)) {
    event.warning = true;
    event.reason = "PreemptionAborted";
    event.action = "Preempting";
    event.note = fmt::format("{}: given up with {} of {} gone; reclaim {}", after.reason,
                             after.gone(), Counted(after.victims.size()), after.name);
    Tell(after, std::move(event), events);
  }
  return events;
}

EventWrite EventOf(const RunLimitWarning& warning, Instant now) {
  EventWrite event;
  event.kind = "Pod";
  event.ns = warning.pod.ns;
  event.name = warning.pod.name;
  event.uid = warning.uid.str();
  event.warning = true;
  event.action = "Running";
  std::string why;
  switch (warning.rule) {
    case ReclaimRule::kMaintenance:
      event.reason = "MaintenanceSoon";
      why = fmt::format("maintenance of GPUPool {} begins soon", warning.source);
      break;
    case ReclaimRule::kUnhealthy:
      event.reason = "UnhealthyGPU";
      why = fmt::format("a GPU of the pod on node {} is unhealthy", warning.source);
      break;
    case ReclaimRule::kIdle:
      event.reason = "IdleSoon";
      why = fmt::format("the pod's GPUs do nothing, and idleAfter of GPUClass {} ends soon",
                        warning.source);
      break;
    case ReclaimRule::kConsolidate:
    case ReclaimRule::kMigLayout:
      event.reason = "NodeEmptiedSoon";
      why = fmt::format("node {} is emptied {}, and other nodes have room for the pod",
                        warning.source,
                        warning.rule == ReclaimRule::kConsolidate ? "of what little it runs"
                                                                  : "for another MIG layout");
      break;
    case ReclaimRule::kInterruption:
      event.reason = "NodeInterrupted";
      why = fmt::format("node {} is about to be taken away", warning.source);
      break;
    default:
      event.reason = "MaxRuntimeSoon";
      why = fmt::format("maxRuntime of GPUClass {} ends soon", warning.source);
  }
  event.note =
      fmt::format("{}: the pod will be evicted at {}", why, wire::FormatTime(warning.leaves));
  event.when = now;
  return event;
}

}  // namespace tranche
