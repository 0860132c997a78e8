// Which waiting pods to requeue after capacity or quota became free.
//
// kube-scheduler tries a refused pod again when an event might help. It may hear of an event before
// we do, ask at once, and be refused on books that do not know yet; then no further event comes on
// a quiet cluster, and the pod waits for the next flush, minutes away. And a node that opens again
// because time has passed is no event at all.
#include <algorithm>
#include <utility>

#include "scheduler/engine/impl.h"

namespace tranche {
namespace {

// How far the two watches may be apart. Refusals older than this were tried again by themselves.
constexpr Millis kWatchLag{2'000};
// A pod is poked at most this often, and one piece of news brings back at most so many: the first
// of them to be bound is an event for the others.
constexpr Millis kPokeGap{10'000};
constexpr int kMostPokes = 8;

}  // namespace

bool Engine::Impl::Poke(const PodUid& uid, NodeId id, Instant now) {
  PodRecord* record = Find(uid);
  const bool waits = record != nullptr && !record->terminal && record->node.empty() &&
                     record->reserved.empty() && record->last_reason != Reason::kNone &&
                     !record->traits.gated;
  if (!waits || (record->poked && now - *record->poked < kPokeGap)) return false;
  // A pod that waits for the rest of its gang is requeued with all of it (gangs.cc).
  if (gangs.open.contains(record->gang)) return false;
  const RequestContext context = ContextOf(*record->request);
  if (context.whole != Reason::kNone) return false;
  const ScopedRemoval lift(*this, uid, now, SharesWith(uid));
  if (nodes[id] == nullptr) return false;
  if (Fits(context, id) != Reason::kNone) return false;
  if (context.metered && context.standing.mode != QuotaMode::kObserve) {
    ForgetKindAnswers();
    if (AskQuota(context, id, now).reason != Reason::kNone) return false;
  }
  record->poked = now;
  outbox.Requeue(record->request->name, uid);
  return true;
}

void Engine::Impl::NoteRoom(NodeId id, Instant now) {
  while (!refused_lately.empty() && now - refused_lately.front().first > kWatchLag)
    refused_lately.pop_front();
  if (refused_lately.empty() || nodes[id] == nullptr || hot[id].closed != Reason::kNone) return;
  int poked = 0;
  for (const auto& [since, uid] : refused_lately) {
    poked += Poke(uid, id, now);
    if (poked == kMostPokes) return;
  }
}

void Engine::Impl::NoteReopened(NodeId id, Instant now) {
  if (hot[id].closed != Reason::kNone) return;
  int poked = 0;
  for (const auto& [name, uid] : pods_by_name) {
    poked += Poke(uid, id, now);
    if (poked == kMostPokes) return;
  }
}

// Such news is no event to kube-scheduler, and comes seconds after the one it was caused by.
void Engine::Impl::NoteRetold(NodeId id, Instant now) {
  if (nodes[id] == nullptr || hot[id].closed != Reason::kNone) return;
  int poked = 0;
  for (const PodUid& uid : std::vector<PodUid>(pending.begin(), pending.end())) {
    poked += Poke(uid, id, now);
    if (poked == kMostPokes) return;
  }
}

}  // namespace tranche
