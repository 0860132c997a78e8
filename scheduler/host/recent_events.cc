#include "scheduler/host/recent_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace tranche {
namespace {

constexpr std::string_view kKindNames[] = {
    "Placed",        "Running",   "Ended",           "Undone",     "Refunded",  "Reclaim",
    "EvictionAsked", "Nominated", "NominationEnded", "LeavesSoon", "BookFault", "Edited"};
static_assert(std::size(kKindNames) == kRecentKinds);

RecentKind KindOf(MeterKind kind) {
  switch (kind) {
    case MeterKind::kOpen:
      return RecentKind::kPlaced;
    case MeterKind::kRunning:
      return RecentKind::kRunning;
    case MeterKind::kClose:
      return RecentKind::kEnded;
    case MeterKind::kVoid:
      return RecentKind::kUndone;
    case MeterKind::kRefund:
      break;
  }
  return RecentKind::kRefunded;
}

std::string TextOf(const MeterEvent& event) {
  if (event.kind != MeterKind::kRefund) return event.note;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(event.until - event.at);
  return fmt::format("{}: {} s", event.note, seconds.count());
}

std::string TextOf(const Reclaim& reclaim) {
  std::string text =
      fmt::format("{} by rule {}", ReclaimPhaseName(reclaim.phase), ReclaimRuleName(reclaim.rule));
  if (!reclaim.reason.empty()) text += ": " + reclaim.reason;
  return fmt::format("{}, {} of {} victims gone ({})", text, reclaim.gone(), reclaim.victims.size(),
                     reclaim.name);
}

bool Matches(const RecentEvent& event, const RecentQuery& query) {
  return event.id > query.since && (!query.ns || event.pod.ns == *query.ns) &&
         (!query.pod || event.pod.name == *query.pod) &&
         (!query.node || event.node.str() == *query.node) &&
         (!query.leaf || event.leaf == *query.leaf) && (!query.kind || event.kind == *query.kind);
}

}  // namespace

std::string_view RecentKindName(RecentKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

std::optional<RecentKind> FindRecentKind(std::string_view name) {
  const auto* const found = std::ranges::find(kKindNames, name);
  if (found == std::end(kKindNames)) return std::nullopt;
  return static_cast<RecentKind>(found - std::begin(kKindNames));
}

void RecentEvents::Add(RecentEvent event) {
  event.id = ++last_;
  events_.push_back(std::move(event));
  if (events_.size() > most_) events_.pop_front();
}

void RecentEvents::NoteReclaim(const Reclaim& reclaim, Instant now) {
  const auto [at, is_new] = phases_.try_emplace(reclaim.name, reclaim.phase);
  const bool told = !is_new && at->second == reclaim.phase;
  at->second = reclaim.phase;
  if (reclaim.finished()) phases_.erase(at);
  if (told) return;
  RecentEvent event{.at = now, .kind = RecentKind::kReclaim, .leaf = reclaim.leaf};
  if (!reclaim.members.empty()) {
    event.pod = reclaim.members.front().pod;
    event.node = reclaim.members.front().node;
  }
  event.text = TextOf(reclaim);
  Add(std::move(event));
}

void RecentEvents::Note(const Effects& effects, Instant now) {
  const absl::MutexLock lock(&mutex_);
  for (const MeterEvent& event : effects.metering) {
    const Instant at = event.kind == MeterKind::kRefund ? event.until : event.at;
    Add({.at = at,
         .kind = KindOf(event.kind),
         .pod = event.pod,
         .node = event.node,
         .leaf = event.leaf,
         .text = TextOf(event)});
  }
  for (const Reclaim& reclaim : effects.reclaims.changed) NoteReclaim(reclaim, now);
  for (const EvictionOrder& order : effects.reclaims.evictions) {
    Add({.at = now,
         .kind = RecentKind::kEvictionAsked,
         .pod = order.pod,
         .text = "for reclaim " + order.reclaim});
  }
  for (const Nomination& nomination : effects.reclaims.nominations) {
    if (nomination.early) continue;  // by the hundred, and nothing is kept for them
    const bool ended = nomination.node.empty();
    Add({.at = now,
         .kind = ended ? RecentKind::kNominationEnded : RecentKind::kNominated,
         .pod = nomination.pod,
         .node = nomination.node});
  }
  for (const RunLimitWarning& warning : effects.reclaims.warnings) {
    Add({.at = now,
         .kind = RecentKind::kLeavesSoon,
         .pod = warning.pod,
         .text = fmt::format("{} of {} {}", ReclaimRuleName(warning.rule), SourceKind(warning.rule),
                             warning.source)});
  }
  for (const BookFault& fault : effects.faults) {
    Add({.at = now,
         .kind = RecentKind::kBookFault,
         .text = fmt::format("{}: {}", BookFaultName(fault.kind), fault.detail)});
  }
}

void RecentEvents::NoteEdit(std::string leaf, std::string text, Instant now) {
  const absl::MutexLock lock(&mutex_);
  Add({.at = now, .kind = RecentKind::kEdited, .leaf = std::move(leaf), .text = std::move(text)});
}

RecentEvents::Answer RecentEvents::Read(const RecentQuery& query) const {
  const absl::MutexLock lock(&mutex_);
  Answer answer;
  answer.newest = last_;
  const uint64_t before = events_.empty() ? last_ : events_.front().id - 1;
  answer.forgotten = query.since < before;
  for (auto event = events_.rbegin(); event != events_.rend(); ++event) {
    if (event->id <= query.since || answer.events.size() >= query.limit) break;
    if (Matches(*event, query)) answer.events.push_back(*event);
  }
  std::ranges::reverse(answer.events);
  return answer;
}

}  // namespace tranche
