// Before the POST: the turn at the node's agent, the ledger, the agent's lock.
#include <spdlog/spdlog.h>

#include "scheduler/controllers/binder_core.h"
#include "scheduler/wire/agents/agents.h"
#include "scheduler/wire/agents/node_lock.h"

namespace tranche {
namespace {

// Shown by kube-scheduler: fixed, without numbers.
constexpr const char* kNoTurn = "the node's agent is gone";
constexpr const char* kNodeChanged = "the node changed while the pod waited for the node's agent";
constexpr const char* kNoPlaceholder = "no GPU of the node could be held for the pod";
constexpr const char* kLockFailed = "the node could not be locked for its agent";

}  // namespace

std::function<void(const AgentWork& work)> Binder::Core::AgentSink() {
  // The engine calls while its caller holds locks, ours perhaps among them.
  return [weak = weak_from_this()](const AgentWork& work) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->timers_.After(std::chrono::milliseconds(0), [weak, work] {
      const auto core = weak.lock();
      if (core == nullptr) return;
      for (const AgentTurn& turn : work.turns) core->TurnCame(turn);
      for (const AgentOrphan& orphan : work.orphans) core->Disown(orphan);
      for (const PlaceholderOrder& order : work.placeholders) core->MakePlaceholder(order);
      for (const PlaceholderEnd& end : work.placeholder_ends) core->EndPlaceholder(end);
    });
  };
}

// Best effort: where it fails the others wait until the engine's patience ends.
void Binder::Core::Disown(const AgentOrphan& orphan) {
  pods_.AnnotatePod({orphan.pod, orphan.uid, wire::ServedAnnotations(orphan.agent)},
                    [orphan](const WriteResult& result) {
                      if (result.kind == WriteResult::Kind::kDone) return;
                      spdlog::warn("marking {} as served for its agent: code {}: {}",
                                   orphan.pod.str(), result.http_code, OneLine(result.message));
                    });
}

void Binder::Core::TurnCame(const AgentTurn& turn) {
  AttemptPtr attempt;
  {
    const absl::MutexLock lock(&mutex_);
    const auto found = attempts_.find(turn.uid);
    if (found == attempts_.end() || found->second->turn) return;
    attempt = found->second;
    attempt->turn = true;
    attempt->waited = !attempt->follows_placeholder;
    if (turn.allocation) attempt->SetAllocation(*turn.allocation);
  }
  if (!turn.granted) {
    return Settle(attempt, BindOutcome::kNotBound,
                  FailedBind(attempt->follows_placeholder ? kNoPlaceholder : kNoTurn));
  }
  Start(attempt);
}

bool Binder::Core::StillStands(const BindAttempt& attempt) {
  const Reason reason =
      host_.engine.With(EngineCaller::kBind, [&attempt](Engine& engine, Instant now) {
        return engine.RecheckReserved(attempt.uid, attempt.node, now);
      });
  if (reason == Reason::kNone) return true;
  spdlog::info("bind of {} to {}: not written, as the node changed meanwhile ({})",
               attempt.pod.str(), attempt.node.str(), Describe(reason).code);
  return false;
}

void Binder::Core::PostWhereItStands(const AttemptPtr& attempt) {
  bool waited = false;
  {
    const absl::MutexLock lock(&mutex_);
    waited = attempt->waited;
  }
  if (!waited || StillStands(*attempt)) return Post(attempt);
  Settle(attempt, BindOutcome::kNotBound, FailedBind(kNodeChanged));
}

void Binder::Core::WatchAge(const std::weak_ptr<BindAttempt>& watched) {
  timers_.After(options_.alarm_after, [weak = weak_from_this(), watched] {
    const auto self = weak.lock();
    const AttemptPtr attempt = watched.lock();
    if (self == nullptr || attempt == nullptr) return;
    const char* waits_for = "the API server tells what became of it";
    {
      const absl::MutexLock lock(&self->mutex_);
      if (attempt->settled) return;
      if (!attempt->turn) {
        waits_for = "its turn at the node's agent comes";
      } else if (!attempt->metered) {
        waits_for = "the ledger answers";
      }
    }
    self->metrics_.CountBindAlarm();
    const auto age = self->timers_.Now() - attempt->started;
    spdlog::error("bind of {} to {} is unsettled for {} s: its GPUs stay reserved until {}",
                  attempt->pod.str(), attempt->node.str(),
                  std::chrono::duration_cast<std::chrono::seconds>(age).count(), waits_for);
    self->WatchAge(attempt);
  });
}

void Binder::Core::Start(const AttemptPtr& attempt) {
  // The ledger first: a crash from here on finds an entry that the pod's absence corrects, never
  // a pod that nobody charged.
  host_.engine.WhenMetered([self = shared_from_this(), attempt] {
    {
      const absl::MutexLock lock(&self->mutex_);
      attempt->metered = true;
    }
    if (attempt->lock.empty()) {
      self->PostWhereItStands(attempt);
    } else {
      self->Lock(attempt, self->options_.lock_stale);
    }
  });
}

std::optional<Millis> Binder::Core::StaleAfter(const NodeName& node, Millis wanted) const {
  const auto last = locked_.find(node);
  const bool young = last != locked_.end() && timers_.Now() - last->second < wanted;
  if (young) return std::nullopt;
  return wanted;
}

void Binder::Core::NoteLocked(const NodeName& node) {
  const absl::MutexLock lock(&mutex_);
  const BindTime now = timers_.Now();
  if (locked_.size() >= kManyLocked) {
    std::erase_if(locked_,
                  [&](const auto& entry) { return now - entry.second >= options_.lock_stale; });
  }
  locked_[node] = now;
}

void Binder::Core::Lock(const AttemptPtr& attempt, Millis wanted) {
  std::optional<Millis> stale_after;
  {
    const absl::MutexLock lock(&mutex_);
    if (attempt->settled) return;
    attempt->locked = true;
    stale_after = StaleAfter(attempt->node, wanted);
  }
  const Instant now =
      host_.engine.With(EngineCaller::kBind, [](Engine&, Instant when) { return when; });
  NodeLockWrite write{attempt->node, std::string(wire::kNodeLockKey), attempt->lock, stale_after,
                      now};
  nodes_.LockNode(std::move(write), [self = shared_from_this(), attempt](
                                        const NodeLockResult& got) { self->Locked(attempt, got); });
}

void Binder::Core::Locked(const AttemptPtr& attempt, const NodeLockResult& result) {
  switch (result.kind) {
    case NodeLockResult::Kind::kDone:
      NoteLocked(attempt->node);
      PostWhereItStands(attempt);
      return;
    case NodeLockResult::Kind::kHeld:
      AskForHolder(attempt, result.value);
      return;
    case NodeLockResult::Kind::kFailed:
      spdlog::warn("locking {} for {}: {}", attempt->node.str(), attempt->pod.str(),
                   OneLine(result.message));
      Settle(attempt, BindOutcome::kNotBound, FailedBind(kLockFailed));
      return;
  }
}

void Binder::Core::AskForHolder(const AttemptPtr& attempt, const std::string& lock) {
  std::chrono::milliseconds delay{0};
  {
    const absl::MutexLock guard(&mutex_);
    attempt->lock_delay =
        std::clamp(attempt->lock_delay * 2, options_.lock_retry, options_.lock_retry_last);
    delay = attempt->lock_delay;
    attempt->waited = true;
  }
  const auto again = [self = shared_from_this(), attempt, delay](Millis stale_after) {
    self->timers_.After(delay, [self, attempt, stale_after] { self->Lock(attempt, stale_after); });
  };
  const std::optional<wire::NodeLock> held = wire::ParseNodeLock(lock);
  if (!held || !held->names_a_pod()) return again(options_.lock_stale);
  const PodName holder{std::string(held->ns), std::string(held->pod)};
  pods_.GetPod(holder, PodUid(), [self = shared_from_this(), attempt, again](PodLookup lookup) {
    // Only a pod that its node has yet to take up is waiting for the agent.
    const bool gone = lookup.kind == PodLookup::Kind::kMissing;
    const bool past = lookup.pod && (lookup.pod->phase != PodPhase::kPending ||
                                     lookup.pod->progress == AgentProgress::kServed ||
                                     lookup.pod->progress == AgentProgress::kFailed);
    if (gone || past) {
      self->Lock(attempt, Millis(0));
    } else {
      // The holder of a lock binds its pod at once. If the pod still has no node, the lock was left
      // behind, perhaps by an earlier life of ours, and the pod may even wait for this one.
      const bool unbound = lookup.pod && lookup.pod->node.empty();
      again(unbound ? self->options_.lock_unbound : self->options_.lock_stale);
    }
  });
}

void Binder::Core::Unlock(const AttemptPtr& attempt) {
  const Instant now =
      host_.engine.With(EngineCaller::kBind, [](Engine&, Instant when) { return when; });
  nodes_.UnlockNode(
      {attempt->node, std::string(wire::kNodeLockKey), attempt->lock, std::nullopt, now},
      [](const NodeLockResult&) {});
}

}  // namespace tranche
