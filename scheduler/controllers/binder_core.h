// The inside of the binder, shared by its source files; nobody else includes this.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/controllers/binder.h"

namespace tranche {

using BindTime = Timers::Clock::time_point;

// One caller. The first answer counts, be it the outcome or the deadline.
class BindWaiter {
 public:
  explicit BindWaiter(Binder::Reply reply) : reply_(std::move(reply)) {}
  void Answer(BindAnswer answer) {
    if (!answered_.exchange(true)) reply_(std::move(answer));
  }
  bool answered() const { return answered_; }

 private:
  Binder::Reply reply_;
  std::atomic<bool> answered_ = false;
};

// One bind on its way to proof.
struct BindAttempt {
  PodName pod;
  PodUid uid;
  NodeName node;
  std::map<std::string, std::string> annotations;
  std::optional<Allocation> allocation;  // nullopt: the pod asks no GPU
  std::string lock;                      // the agent's lock on the node, as ours; empty: none
  bool follows_placeholder = false;      // its container sees the devices that the Binding names
  // The devices, and the annotations that say them. Before the POST.
  void SetAllocation(Allocation devices);

  BindTime started;
  BindTime deadline;                  // of the caller who came last
  std::optional<BindTime> last_lost;  // when a POST was last sent without an answer
  std::chrono::milliseconds delay{0};
  bool in_background = false;  // the engine was told that the outcome is unknown
  uint64_t alarm = 0;          // the timer that counts; others have been overtaken
  bool asleep = false;
  bool settled = false;
  bool turn = true;      // false: the node's agent has another pod to serve first
  bool waited = false;   // for its turn or for the lock
  bool metered = false;  // the ledger has it, or cannot have it now
  int refusal_code = 0;  // with which the server refused it last
  bool locked = false;   // the lock was asked for, and may be there
  std::chrono::milliseconds lock_delay{0};
  std::vector<std::shared_ptr<BindWaiter>> waiters;
};
using AttemptPtr = std::shared_ptr<BindAttempt>;

// What the pod's lookup is to clear up.
enum class BindDoubt : uint8_t {
  kRejected,  // the server said no: perhaps because it is done already
  kLost,      // no answer
  kResumed,   // after a pause: has the bind arrived meanwhile?
};

class Binder::Core : public std::enable_shared_from_this<Binder::Core> {
 public:
  Core(Host& host, PodWrites& pods, NodeWrites& nodes, Timers& timers, metrics::Metrics& metrics,
       BinderOptions options)
      : host_(host),
        pods_(pods),
        nodes_(nodes),
        timers_(timers),
        metrics_(metrics),
        options_(options) {}

  void Bind(const PodName& pod, const PodUid& uid, const NodeName& node,
            const std::shared_ptr<BindWaiter>& waiter);
  void ArmDeadline(const std::shared_ptr<BindWaiter>& waiter);
  int64_t in_progress() const;
  std::function<void(const AgentWork& work)> AgentSink();

 private:
  void TurnCame(const AgentTurn& turn);
  // What is reserved for it can still be given to it.
  bool StillStands(const BindAttempt& attempt);
  // Of one that waited for the agent, which may have taken minutes, only where that is so.
  void PostWhereItStands(const AttemptPtr& attempt);
  void Disown(const AgentOrphan& orphan);
  void MakePlaceholder(const PlaceholderOrder& order);
  void EndPlaceholder(const PlaceholderEnd& end);
  // An alarm as often as the attempt grows older by alarm_after, whatever it waits for.
  void WatchAge(const std::weak_ptr<BindAttempt>& watched);
  // Everything before the POST: the ledger, then the agent's lock.
  void Start(const AttemptPtr& attempt);
  void Lock(const AttemptPtr& attempt, Millis stale_after);
  // nullopt: no lock there can be as old, whatever the time written in it says.
  std::optional<Millis> StaleAfter(const NodeName& node, Millis wanted) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteLocked(const NodeName& node);
  void Locked(const AttemptPtr& attempt, const NodeLockResult& result);
  // Somebody else has the lock. Its pod may be past needing it.
  void AskForHolder(const AttemptPtr& attempt, const std::string& lock);
  void Unlock(const AttemptPtr& attempt);
  // Plain: read from the API server just now, asks no GPU; the engine keeps no such pods.
  enum class PodSort : uint8_t { kGpu, kPlain };
  void Begin(const PodName& pod, const PodUid& uid, const NodeName& node, PodSort sort,
             const std::shared_ptr<BindWaiter>& waiter);
  // Joins the attempt for this pod and node. False: there is none.
  bool Join(const PodUid& uid, const NodeName& node, const std::shared_ptr<BindWaiter>& waiter);
  // Makes a new attempt, or says in `answer` why there is none.
  AttemptPtr Reserve(const PodName& pod, const PodUid& uid, const NodeName& node, PodSort sort,
                     const std::shared_ptr<BindWaiter>& waiter, BindAnswer& answer);
  void Post(const AttemptPtr& attempt);
  void Posted(const AttemptPtr& attempt, const WriteResult& result);
  void Look(const AttemptPtr& attempt, BindDoubt doubt);
  void Looked(const AttemptPtr& attempt, BindDoubt doubt, const PodLookup& lookup);
  void Unbound(const AttemptPtr& attempt, BindDoubt doubt);
  void Pause(const AttemptPtr& attempt);
  void Resume(const AttemptPtr& attempt, uint64_t alarm);
  bool MayArriveLate(const BindAttempt& attempt) const;
  // Was the pod's Binding refused so often that it is not tried for a while?
  bool Rests(const PodUid& uid) const;
  void NoteRefused(const BindAttempt& attempt);
  // Tells the engine, forgets the attempt, answers everybody. `seen`: the pod as found, where that
  // differs from what this attempt wrote.
  void Settle(const AttemptPtr& attempt, BindOutcome outcome, BindAnswer answer,
              const std::optional<PodFacts>& seen = std::nullopt);

  Host& host_;
  PodWrites& pods_;
  NodeWrites& nodes_;
  Timers& timers_;
  metrics::Metrics& metrics_;
  const BinderOptions options_;
  // Taken before the host's lock. Guards attempts_ and what changes of every attempt in it; never
  // held across a call of the cluster or of a reply.
  mutable absl::Mutex mutex_;
  std::map<PodUid, AttemptPtr> attempts_ ABSL_GUARDED_BY(mutex_);
  // When we locked each node last, by a clock that nobody sets: what is there now came later.
  static constexpr std::size_t kManyLocked = 1'000;
  std::map<NodeName, BindTime> locked_ ABSL_GUARDED_BY(mutex_);

  // Bindings that the server refused, the same way each time.
  struct Refused {
    int code = 0;
    int times = 0;
    BindTime until;
  };
  static constexpr int kEqualRefusals = 3;
  static constexpr int kMostDoublings = 5;
  static constexpr std::size_t kMostRefused = 1'000;
  std::map<PodUid, Refused> refused_ ABSL_GUARDED_BY(mutex_);
};

// The server's words as part of one log line.
std::string OneLine(std::string text);
BindAnswer FailedBind(const char* text);

}  // namespace tranche
