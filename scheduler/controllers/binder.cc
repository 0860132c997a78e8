#include "scheduler/controllers/binder.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "scheduler/controllers/binder_core.h"
#include "scheduler/wire/agents/agents.h"
#include "scheduler/wire/json/json.h"
#include "scheduler/wire/records/allocation_json.h"
#include "topology/base/plant.h"

namespace tranche {
namespace {

using metrics::Result;

// Shown by kube-scheduler: fixed, without numbers.
constexpr const char* kNotKnownYet = "the outcome of the bind is not known yet";
constexpr const char* kRefusedByServer = "the API server refused the binding";
constexpr const char* kServerUnreachable = "the API server could not be reached";
constexpr const char* kLookupFailed = "the pod could not be read from the API server";
constexpr const char* kForeignBinding = "the pod was bound to the node by somebody else";
constexpr const char* kUnderWay = "a bind of the pod is under way";

BindAnswer No(Reason reason) { return {Result::kNo, std::string(Describe(reason).text)}; }
BindAnswer Bound() { return {Result::kYes, ""}; }

enum class LookupFinding : uint8_t {
  kOurs,
  kOursEarlier,  // bound here with devices that an earlier life of this process chose
  kForeign,      // bound here by somebody who wrote no devices
  kElsewhere,
  kGone,
  kUnbound,
  kNothing,  // the lookup failed
};

LookupFinding Judge(const BindAttempt& attempt, const PodLookup& lookup) {
  if (lookup.kind == PodLookup::Kind::kMissing) return LookupFinding::kGone;
  if (lookup.kind == PodLookup::Kind::kFailed || !lookup.pod) return LookupFinding::kNothing;
  const PodFacts& pod = *lookup.pod;
  if (pod.request.uid != attempt.uid) return LookupFinding::kGone;
  if (pod.node.empty()) return LookupFinding::kUnbound;
  if (pod.node != attempt.node) return LookupFinding::kElsewhere;
  if (!attempt.allocation) return LookupFinding::kOurs;
  if (pod.allocation == attempt.allocation) return LookupFinding::kOurs;
  // Epoch 0 marks devices read from the annotations of another agent.
  return pod.allocation && pod.allocation->epoch > 0 ? LookupFinding::kOursEarlier
                                                     : LookupFinding::kForeign;
}

// The annotations of the Binding, and what they say.
void WriteDown(BindPlan plan, const PodRequest& request, Instant now, BindAttempt& attempt) {
  if (plan.lock) {
    attempt.lock = fmt::format("{},{},{}", wire::FormatTime(now), plan.pod.ns, plan.pod.name);
  }
  attempt.turn = plan.turn;
  const wire::AgentCall call{
      plan.agent, plan.agent_minor, plan.node.str(), plan.memory_unit, std::move(plan.card_memory),
      now,        plan.stamp};
  attempt.annotations = wire::AgentAnnotations(call, request, plan.allocation);
  attempt.follows_placeholder = request.follows_placeholder;
  attempt.SetAllocation(std::move(plan.allocation));
}

}  // namespace

std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
  return text;
}

BindAnswer FailedBind(const char* text) { return {Result::kFailed, text}; }

void Binder::Core::Bind(const PodName& pod, const PodUid& uid, const NodeName& node,
                        const std::shared_ptr<BindWaiter>& waiter) {
  const Readiness readiness = host_.cluster.readiness();
  if (readiness != Readiness::kReady) {
    waiter->Answer({Result::kNotReady, std::string(Describe(readiness))});
    return;
  }
  if (Rests(uid)) return waiter->Answer(FailedBind(kRefusedByServer));
  if (host_.engine.With(EngineCaller::kBind,
                        [&uid](Engine& engine, Instant) { return engine.Knows(uid); })) {
    Begin(pod, uid, node, PodSort::kGpu, waiter);
    return;
  }
  pods_.GetPod(pod, uid, [self = shared_from_this(), pod, uid, node, waiter](PodLookup lookup) {
    if (lookup.kind == PodLookup::Kind::kFailed) {
      spdlog::warn("bind of {} to {}: cannot read the pod: {}", pod.str(), node.str(),
                   OneLine(lookup.message));
      waiter->Answer(FailedBind(kLookupFailed));
    } else if (!lookup.pod || lookup.pod->request.uid != uid) {
      waiter->Answer(No(Reason::kPodGone));
    } else {
      const bool plain = !lookup.pod->request.asks_gpu();
      if (!plain) self->host_.cluster.ReceiveRead(std::move(*lookup.pod));
      self->Begin(pod, uid, node, plain ? PodSort::kPlain : PodSort::kGpu, waiter);
    }
  });
}

void Binder::Core::ArmDeadline(const std::shared_ptr<BindWaiter>& waiter) {
  if (waiter->answered()) return;
  timers_.After(options_.deadline, [waiter] { waiter->Answer(FailedBind(kNotKnownYet)); });
}

int64_t Binder::Core::in_progress() const {
  const absl::MutexLock lock(&mutex_);
  return static_cast<int64_t>(attempts_.size());
}

void Binder::Core::Begin(const PodName& pod, const PodUid& uid, const NodeName& node, PodSort sort,
                         const std::shared_ptr<BindWaiter>& waiter) {
  if (Join(uid, node, waiter)) return;
  BindAnswer answer;
  if (const AttemptPtr attempt = Reserve(pod, uid, node, sort, waiter, answer)) {
    WatchAge(attempt);
    if (attempt->turn) Start(attempt);
  } else if (!Join(uid, node, waiter)) {
    waiter->Answer(std::move(answer));
  }
}

bool Binder::Core::Join(const PodUid& uid, const NodeName& node,
                        const std::shared_ptr<BindWaiter>& waiter) {
  AttemptPtr attempt;
  uint64_t alarm = 0;
  {
    const absl::MutexLock lock(&mutex_);
    const auto found = attempts_.find(uid);
    if (found == attempts_.end() || found->second->node != node) return false;
    attempt = found->second;
    auto& waiters = attempt->waiters;
    waiters.erase(std::remove_if(waiters.begin(), waiters.end(),
                                 [](const auto& earlier) { return earlier->answered(); }),
                  waiters.end());
    waiters.push_back(waiter);
    attempt->deadline = timers_.Now() + options_.deadline;
    if (!attempt->asleep) return true;
    // Somebody waits again: try at once, and not at the pace of the background.
    attempt->delay = options_.retry;
    alarm = attempt->alarm;
  }
  Resume(attempt, alarm);
  return true;
}

AttemptPtr Binder::Core::Reserve(const PodName& pod, const PodUid& uid, const NodeName& node,
                                 PodSort sort, const std::shared_ptr<BindWaiter>& waiter,
                                 BindAnswer& answer) {
  const absl::MutexLock lock(&mutex_);
  if (const auto found = attempts_.find(uid); found != attempts_.end()) {
    const bool here = found->second->node == node;
    if (here || !TRANCHE_PLANTED(bind_elsewhere_while_one_is_under_way)) {
      answer = here ? FailedBind(kUnderWay) : No(Reason::kPodElsewhere);
      return nullptr;
    }
  }
  std::optional<PodRequest> request;
  Instant when;
  BindPlan plan;
  if (sort == PodSort::kPlain) {
    plan.kind = BindPlan::Kind::kWrite;
  } else {
    plan = host_.engine.With(EngineCaller::kBind, [&](Engine& engine, Instant now) {
      BindPlan made = engine.Bind(pod, uid, node, now);
      if (made.asks_gpu && made.request != nullptr) request = *made.request;
      made.request = nullptr;
      when = now;
      return made;
    });
  }
  switch (plan.kind) {
    case BindPlan::Kind::kAlreadyBound:
      answer = Bound();
      break;
    case BindPlan::Kind::kRefused:
      spdlog::info("bind of {} to {} refused: {} ({})", pod.str(), node.str(),
                   tranche::Describe(plan.reason).code, plan.detail);
      answer = No(plan.reason);
      break;
    case BindPlan::Kind::kInFlight:
      answer = FailedBind(kUnderWay);
      return nullptr;
    case BindPlan::Kind::kWrite:
      break;
  }
  const bool yes = plan.kind != BindPlan::Kind::kRefused;
  metrics_.CountDecision(metrics::Verb::kBind, yes ? Reason::kNone : plan.reason);
  if (plan.kind != BindPlan::Kind::kWrite) return nullptr;

  auto attempt = std::make_shared<BindAttempt>();
  attempt->pod = pod;
  attempt->uid = uid;
  attempt->node = node;
  attempt->started = timers_.Now();
  attempt->deadline = attempt->started + options_.deadline;
  attempt->delay = options_.retry;
  attempt->waiters.push_back(waiter);
  if (plan.clears) {
    attempt->annotations[std::string(wire::kAllocationKey)] =
        wire::EncodeAllocation(plan.allocation);
  }
  if (plan.asks_gpu) WriteDown(std::move(plan), *request, when, *attempt);
  attempts_[uid] = attempt;
  return attempt;
}

bool Binder::Core::Rests(const PodUid& uid) const {
  const absl::MutexLock lock(&mutex_);
  const auto found = refused_.find(uid);
  return found != refused_.end() && timers_.Now() < found->second.until;
}

// A Binding that is refused over and over would cost a POST, two entries of the ledger and the
// pod's GPUs each time kube-scheduler asks.
void Binder::Core::NoteRefused(const BindAttempt& attempt) {
  const BindTime now = timers_.Now();
  const absl::MutexLock lock(&mutex_);
  if (refused_.size() >= kMostRefused && !refused_.contains(attempt.uid)) {
    std::erase_if(refused_, [now](const auto& entry) { return entry.second.until <= now; });
    if (refused_.size() >= kMostRefused) return;
  }
  Refused& refused = refused_[attempt.uid];
  if (refused.code != attempt.refusal_code) refused = {attempt.refusal_code, 0, now};
  if (++refused.times < kEqualRefusals) return;
  const int doublings = std::min(refused.times - kEqualRefusals, kMostDoublings);
  refused.until = now + options_.refusal_rest * (1 << doublings);
}

void Binder::Core::Post(const AttemptPtr& attempt) {
  // Identity and content of an attempt change no more: no lock is needed to read them.
  BindingWrite write{attempt->pod, attempt->uid, attempt->node, attempt->annotations};
  pods_.Bind(std::move(write), [self = shared_from_this(), attempt](WriteResult result) {
    self->Posted(attempt, result);
  });
}

void Binder::Core::Posted(const AttemptPtr& attempt, const WriteResult& result) {
  if (result.kind != WriteResult::Kind::kDone) {
    spdlog::warn("binding {} to {}: code {}: {}", attempt->pod.str(), attempt->node.str(),
                 result.http_code, OneLine(result.message));
  }
  switch (result.kind) {
    case WriteResult::Kind::kDone:
      Settle(attempt, BindOutcome::kBound, Bound());
      return;
    case WriteResult::Kind::kRejected:
      attempt->refusal_code = result.http_code;
      Look(attempt, BindDoubt::kRejected);
      return;
    case WriteResult::Kind::kNotSent: {
      bool earlier_lost = false;
      {
        const absl::MutexLock lock(&mutex_);
        earlier_lost = attempt->last_lost.has_value();
      }
      if (earlier_lost) {
        Pause(attempt);
      } else {
        Settle(attempt, BindOutcome::kNotBound, FailedBind(kServerUnreachable));
      }
      return;
    }
    case WriteResult::Kind::kUnknown: {
      if (TRANCHE_PLANTED(lost_bind_is_no_bind)) {
        Settle(attempt, BindOutcome::kNotBound, FailedBind(kServerUnreachable));
        return;
      }
      const absl::MutexLock lock(&mutex_);
      attempt->last_lost = timers_.Now();
    }
      Look(attempt, BindDoubt::kLost);
      return;
  }
}

void Binder::Core::Look(const AttemptPtr& attempt, BindDoubt doubt) {
  pods_.GetPod(attempt->pod, attempt->uid,
               [self = shared_from_this(), attempt, doubt](const PodLookup& lookup) {
                 self->Looked(attempt, doubt, lookup);
               });
}

void Binder::Core::Looked(const AttemptPtr& attempt, BindDoubt doubt, const PodLookup& lookup) {
  switch (Judge(*attempt, lookup)) {
    case LookupFinding::kOurs:
      Settle(attempt, BindOutcome::kBound, Bound());
      return;
    case LookupFinding::kOursEarlier:
      Settle(attempt, BindOutcome::kNotBound, Bound(), lookup.pod);
      return;
    case LookupFinding::kForeign:
      Settle(attempt, BindOutcome::kNotBound, FailedBind(kForeignBinding), lookup.pod);
      return;
    case LookupFinding::kElsewhere:
      Settle(attempt, BindOutcome::kNotBound, No(Reason::kPodElsewhere), lookup.pod);
      return;
    case LookupFinding::kGone:
      Settle(attempt, BindOutcome::kNotBound, No(Reason::kPodGone));
      // A UID never comes back, and the watch may have shown this end before we knew the pod.
      host_.cluster.Receive(PodGone{attempt->uid});
      return;
    case LookupFinding::kUnbound:
      Unbound(attempt, doubt);
      return;
    case LookupFinding::kNothing:
      Pause(attempt);
      return;
  }
}

void Binder::Core::Unbound(const AttemptPtr& attempt, BindDoubt doubt) {
  if (doubt == BindDoubt::kResumed) {
    Post(attempt);
  } else if (doubt == BindDoubt::kRejected && !MayArriveLate(*attempt)) {
    NoteRefused(*attempt);
    Settle(attempt, BindOutcome::kNotBound, FailedBind(kRefusedByServer));
  } else {
    Pause(attempt);
  }
}

bool Binder::Core::MayArriveLate(const BindAttempt& attempt) const {
  const absl::MutexLock lock(&mutex_);
  return attempt.last_lost && timers_.Now() - *attempt.last_lost <= options_.late_arrival &&
         !TRANCHE_PLANTED(nothing_arrives_late);
}

void Binder::Core::Pause(const AttemptPtr& attempt) {
  std::chrono::milliseconds delay{0};
  uint64_t alarm = 0;
  {
    const absl::MutexLock lock(&mutex_);
    if (attempt->settled) return;
    const BindTime now = timers_.Now();
    if (now < attempt->deadline) {
      delay = std::min(attempt->delay,
                       std::chrono::ceil<std::chrono::milliseconds>(attempt->deadline - now));
    } else {
      if (!attempt->in_background) {
        attempt->in_background = true;
        host_.engine.With(EngineCaller::kBind, [&attempt](Engine& engine, Instant when) {
          engine.SettleBind(attempt->uid, attempt->node, BindOutcome::kUnknown, when);
        });
      }
      delay = std::max(attempt->delay, options_.pursue_first);
    }
    attempt->delay = std::min(delay * 2, options_.pursue_last);
    attempt->asleep = true;
    alarm = ++attempt->alarm;
  }
  timers_.After(delay,
                [self = shared_from_this(), attempt, alarm] { self->Resume(attempt, alarm); });
}

void Binder::Core::Resume(const AttemptPtr& attempt, uint64_t alarm) {
  {
    const absl::MutexLock lock(&mutex_);
    if (attempt->settled || !attempt->asleep || attempt->alarm != alarm) return;
    attempt->asleep = false;
  }
  Look(attempt, BindDoubt::kResumed);
}

void Binder::Core::Settle(const AttemptPtr& attempt, BindOutcome outcome, BindAnswer answer,
                          const std::optional<PodFacts>& seen) {
  std::vector<std::shared_ptr<BindWaiter>> waiters;
  {
    const absl::MutexLock lock(&mutex_);
    if (attempt->settled) return;
    attempt->settled = true;
    host_.engine.With(EngineCaller::kBind, [&](Engine& engine, Instant now) {
      engine.SettleBind(attempt->uid, attempt->node, outcome, now);
      if (seen && (!host_.cluster.IsGone(attempt->uid) || TRANCHE_PLANTED(read_pod_may_be_gone)))
        engine.UpsertPod(*seen, now);
    });
    attempts_.erase(attempt->uid);
    if (outcome == BindOutcome::kBound) refused_.erase(attempt->uid);
    waiters.swap(attempt->waiters);
  }
  // The lock of a pod that is bound its agent gives up, when it has served it.
  const bool needless =
      outcome == BindOutcome::kNotBound || TRANCHE_PLANTED(agents_serve_two_at_once);
  if (needless && attempt->locked) Unlock(attempt);
  spdlog::info("bind of {} to {}: {}", attempt->pod.str(), attempt->node.str(),
               answer.error.empty() ? "bound" : answer.error);
  for (const auto& waiter : waiters) waiter->Answer(answer);
}

Binder::Binder(Host& host, PodWrites& pods, NodeWrites& nodes, Timers& timers,
               metrics::Metrics& metrics, BinderOptions options)
    : core_(std::make_shared<Core>(host, pods, nodes, timers, metrics, options)) {}

Binder::~Binder() = default;

void Binder::Bind(const PodName& pod, const PodUid& uid, const NodeName& node, Reply reply) {
  const auto waiter = std::make_shared<BindWaiter>(std::move(reply));
  core_->Bind(pod, uid, node, waiter);
  core_->ArmDeadline(waiter);
}

std::function<void(const AgentWork& work)> Binder::AgentSink() { return core_->AgentSink(); }

int64_t Binder::in_progress() const { return core_->in_progress(); }

}  // namespace tranche
