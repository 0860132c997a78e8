// Before the POST: the turn at the node's agent, the ledger, the agent's lock.
#include <spdlog/spdlog.h>

#include "scheduler/app/binder_core.h"
#include "scheduler/wire/agents.h"

namespace tranche::app {
namespace {

// Shown by kube-scheduler: fixed, without numbers.
constexpr const char* kNoTurn = "the node's agent is gone";
constexpr const char* kNoKeeper = "no GPU of the node could be held for the pod";
constexpr const char* kLockFailed = "the node could not be locked for its agent";

constexpr std::string_view kLockKey = "hami.io/mutex.lock";

// The pod a lock names, "<time>,<namespace>,<pod>"; nullopt: it names none.
std::optional<PodName> LockHolder(std::string_view lock) {
  const std::size_t first = lock.find(',');
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = lock.find(',', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  return PodName{std::string(lock.substr(first + 1, second - first - 1)),
                 std::string(lock.substr(second + 1))};
}

}  // namespace

void Binder::Core::ExpectTurns() {
  // The engine speaks while whoever called it holds locks, ours perhaps among them.
  host_.OnAgentWork([weak = weak_from_this()](const AgentWork& work) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->timers_.After(std::chrono::milliseconds(0), [weak, work] {
      const auto core = weak.lock();
      if (core == nullptr) return;
      for (const AgentTurn& turn : work.turns) core->TurnCame(turn);
      for (const AgentOrphan& orphan : work.orphans) core->Disown(orphan);
      for (const KeeperOrder& order : work.keepers) core->MakeKeeper(order);
      for (const KeeperEnd& end : work.keeper_ends) core->EndKeeper(end);
    });
  });
}

// Best effort: where it fails the others wait until the engine's patience ends.
void Binder::Core::Disown(const AgentOrphan& orphan) {
  api_.AnnotatePod({orphan.pod, orphan.uid, wire::ServedAnnotations(orphan.agent)},
                   [orphan](const WriteResult& result) {
                     if (result.kind == WriteResult::Kind::kDone) return;
                     spdlog::warn("marking {} as served for its agent: code {}: {}",
                                  orphan.pod.str(), result.http_code, OneLine(result.message));
                   });
}

void Binder::Core::TurnCame(const AgentTurn& turn) {
  AttemptPtr attempt;
  {
    const std::lock_guard lock(mutex_);
    const auto found = attempts_.find(turn.uid);
    if (found == attempts_.end() || found->second->turn) return;
    attempt = found->second;
    attempt->turn = true;
    if (turn.allocation) attempt->SetAllocation(*turn.allocation);
  }
  if (turn.granted) {
    Start(attempt);
  } else {
    Settle(attempt, BindOutcome::kNotBound,
           FailedBind(attempt->follows_keeper ? kNoKeeper : kNoTurn));
  }
}

void Binder::Core::Start(const AttemptPtr& attempt) {
  // The ledger first: a crash from here on finds an entry that the pod's absence corrects, never
  // a pod that nobody charged.
  host_.WhenMetered([self = shared_from_this(), attempt] {
    if (attempt->lock.empty()) {
      self->Post(attempt);
    } else {
      self->Lock(attempt, self->options_.lock_stale);
    }
  });
}

void Binder::Core::Lock(const AttemptPtr& attempt, Millis stale_after) {
  {
    const std::lock_guard lock(mutex_);
    if (attempt->settled) return;
    attempt->locked = true;
  }
  const Instant now = host_.With([](Engine&, Instant when) { return when; });
  NodeLockWrite write{attempt->node, std::string(kLockKey), attempt->lock, stale_after, now};
  api_.LockNode(std::move(write), [self = shared_from_this(), attempt](const NodeLockResult& got) {
    self->Locked(attempt, got);
  });
}

void Binder::Core::Locked(const AttemptPtr& attempt, const NodeLockResult& result) {
  switch (result.kind) {
    case NodeLockResult::Kind::kDone:
      Post(attempt);
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
    const std::lock_guard guard(mutex_);
    attempt->lock_delay =
        std::clamp(attempt->lock_delay * 2, options_.lock_retry, options_.lock_retry_last);
    delay = attempt->lock_delay;
  }
  const auto again = [self = shared_from_this(), attempt, delay](Millis stale_after) {
    self->timers_.After(delay, [self, attempt, stale_after] { self->Lock(attempt, stale_after); });
  };
  const std::optional<PodName> holder = LockHolder(lock);
  if (!holder) return again(options_.lock_stale);
  api_.GetPod(*holder, PodUid(), [self = shared_from_this(), attempt, again](PodLookup lookup) {
    // Only a pod that its node has yet to take up is waiting for the agent.
    const bool gone = lookup.kind == PodLookup::Kind::kMissing;
    const bool past = lookup.pod && (lookup.pod->phase != PodPhase::kPending ||
                                     lookup.pod->progress == AgentProgress::kServed ||
                                     lookup.pod->progress == AgentProgress::kFailed);
    if (gone || past) {
      self->Lock(attempt, Millis(0));
    } else {
      // Whoever locks binds at once. A pod still without a node was left behind, perhaps by an
      // earlier life of ours, and may even wait for this one.
      const bool unbound = lookup.pod && lookup.pod->node.empty();
      again(unbound ? self->options_.lock_unbound : self->options_.lock_stale);
    }
  });
}

void Binder::Core::Unlock(const AttemptPtr& attempt) {
  const Instant now = host_.With([](Engine&, Instant when) { return when; });
  api_.UnlockNode({attempt->node, std::string(kLockKey), attempt->lock, std::nullopt, now},
                  [](const NodeLockResult&) {});
}

}  // namespace tranche::app
