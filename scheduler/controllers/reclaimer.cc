#include "scheduler/controllers/reclaimer.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/controllers/reclaim_events.h"
#include "scheduler/wire/records/reclaim_json.h"
#include "topology/base/plant.h"

namespace tranche {
namespace {

using Steady = std::chrono::steady_clock;

constexpr const char* kKind = "GPUReclaim";
constexpr int kMostDeletions = 50;  // a round
constexpr std::chrono::seconds kLogGap{10};

bool IsDone(const WriteResult& result) { return result.kind == WriteResult::Kind::kDone; }

EvictionOutcome OutcomeOf(const WriteResult& result) {
  if (IsDone(result)) return EvictionOutcome::kAccepted;
  if (result.kind != WriteResult::Kind::kRejected) return EvictionOutcome::kFailed;
  switch (result.http_code) {
    case 404:
      return EvictionOutcome::kGone;
    case 409:
      // A namesake with another uid, or a conflict of versions: whether the pod is there the watch
      // tells, and until then it is asked again.
      return EvictionOutcome::kFailed;
    case 429:
      if (TRANCHE_PLANTED(refused_eviction_means_gone)) return EvictionOutcome::kGone;
      return EvictionOutcome::kBlocked;
    case 403:
      return EvictionOutcome::kForbidden;
    default:
      return EvictionOutcome::kFailed;
  }
}

bool SameNodes(const std::vector<ReclaimMember>& left, const std::vector<ReclaimMember>& right) {
  return std::ranges::equal(left, right, {}, &ReclaimMember::node, &ReclaimMember::node);
}

// A reclaim and its object.
struct Record {
  std::optional<Reclaim> newest;
  std::vector<ReclaimMember> members;  // as the object's spec was last written
  bool unwritten = false;              // the object does not say what `newest` says
  bool exists = false;                 // the object is there, as far as we know
  bool writing = false;
  bool failed = false;             // the last write, and it may be tried again
  bool tried = false;              // written once, or tried: evictions may go
  std::deque<EvictionOrder> held;  // until then
  std::set<std::string> counted;   // leaves it took from
};

}  // namespace

class Reclaimer::Core : public std::enable_shared_from_this<Reclaimer::Core> {
 public:
  Core(Evictions& evictions, ObjectWrites& objects, metrics::Metrics& metrics, Hooks hooks)
      : evictions_(evictions), objects_(objects), metrics_(metrics), hooks_(std::move(hooks)) {}

  void Restored(const std::vector<Reclaim>& reclaims);
  void Queue(ReclaimWork work, Instant now);
  void Carry();
  void Tick(Instant now);
  int64_t running() const;
  int64_t failures() const {
    const absl::MutexLock lock(&mutex_);
    return failures_;
  }

 private:
  // What is to be done is put behind what is queued.
  void Take(Reclaim reclaim, Instant now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell(EventWrite event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginWrite(const std::string& name, Record& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Nominate(Nomination nomination) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Evict(EvictionOrder order) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(Record& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginDeletion(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountFailure(const std::string& what, const WriteResult& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Without it.
  void Write(const std::string& name);
  void Written(const std::string& name, bool status, const WriteResult& result);
  void Evicted(const EvictionOrder& order, const EvictionResult& result);

  Evictions& evictions_;
  ObjectWrites& objects_;
  metrics::Metrics& metrics_;
  const Hooks hooks_;
  mutable absl::Mutex mutex_;
  // In order; each takes the lock itself.
  std::deque<std::function<void()>> calls_ ABSL_GUARDED_BY(mutex_);
  bool carrying_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Record> records_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<Instant, std::string>> finished_ ABSL_GUARDED_BY(mutex_);  // oldest first
  std::set<std::string> deletions_ ABSL_GUARDED_BY(mutex_);  // asked for and not yet proven
  std::optional<Instant> retried_ ABSL_GUARDED_BY(mutex_);   // when failures were last tried again
  int64_t failures_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<Steady::time_point> logged_ ABSL_GUARDED_BY(mutex_);
  int64_t unlogged_ ABSL_GUARDED_BY(mutex_) = 0;
};

void Reclaimer::Core::Restored(const std::vector<Reclaim>& reclaims) {
  const absl::MutexLock lock(&mutex_);
  for (const Reclaim& reclaim : reclaims) {
    Record& record = records_[reclaim.name];
    record.newest = reclaim;
    record.members = reclaim.members;
    record.exists = true;
    record.tried = true;
    for (const ReclaimVictim& victim : reclaim.victims) {
      if (victim.evicted_at) record.counted.insert(victim.leaf);
    }
    if (reclaim.finished()) {
      finished_.emplace(reclaim.finished_at.value_or(reclaim.planned_at), reclaim.name);
    }
  }
}

void Reclaimer::Core::Queue(ReclaimWork work, Instant now) {
  const absl::MutexLock lock(&mutex_);
  for (Reclaim& reclaim : work.changed) Take(std::move(reclaim), now);
  for (Nomination& nomination : work.nominations) Nominate(std::move(nomination));
  for (EvictionOrder& order : work.evictions) {
    const auto record = records_.find(order.reclaim);
    if (record == records_.end() || record->second.tried) {
      Evict(std::move(order));
    } else {
      record->second.held.push_back(std::move(order));
    }
  }
  for (const RunLimitWarning& warning : work.warnings) Tell(EventOf(warning, now));
  for (const StartedWork& start : work.starts) metrics_.CountStart(start);
}

void Reclaimer::Core::Take(Reclaim reclaim, Instant now) {
  const std::string name = reclaim.name;
  Record& record = records_[name];
  for (const ReclaimVictim* victim : NewlyEvicted(record.newest, reclaim)) {
    if (record.counted.insert(victim->leaf).second) {
      metrics_.CountReclaimedFrom(reclaim, victim->leaf);
    }
    metrics_.CountEvicted(reclaim, *victim);
  }
  for (EventWrite& event : EventsOf(record.newest, reclaim, now)) Tell(std::move(event));
  const bool ended = reclaim.finished() && !(record.newest && record.newest->finished());
  if (ended) finished_.emplace(reclaim.finished_at.value_or(now), name);
  record.newest = std::move(reclaim);
  record.unwritten = true;
  BeginWrite(name, record);
}

void Reclaimer::Core::Tell(EventWrite event) {
  calls_.push_back([self = shared_from_this(), event = std::move(event)]() mutable {
    if (event.uid.empty()) event.uid = self->hooks_.uid_of(event.kind, event.name);
    self->objects_.Emit(std::move(event), [](const WriteResult& result) {
      if (IsDone(result)) return;
      spdlog::debug("an event about a reclaim could not be written: code {}: {}", result.http_code,
                    result.message);
    });
  });
}

void Reclaimer::Core::BeginWrite(const std::string& name, Record& record) {
  if (record.writing || !record.unwritten) return;
  record.writing = true;
  calls_.push_back([self = shared_from_this(), name] { self->Write(name); });
}

// The version that is newest now: those between were never to be seen.
void Reclaimer::Core::Write(const std::string& name) {
  Reclaim reclaim;
  bool status = false;
  {
    const absl::MutexLock lock(&mutex_);
    Record& record = records_.at(name);
    reclaim = *record.newest;
    // A member's room may have moved to another node.
    status = record.exists && SameNodes(record.members, reclaim.members);
    if (status) record.unwritten = false;
    if (!status) record.members = reclaim.members;
  }
  ObjectWrite write{kKind, "", name, status,
                    status ? wire::EncodeReclaimStatus(reclaim) : wire::EncodeReclaimSpec(reclaim)};
  objects_.Write(std::move(write),
                 [self = shared_from_this(), name, status](const WriteResult& result) {
                   self->Written(name, status, result);
                 });
}

void Reclaimer::Core::Written(const std::string& name, bool status, const WriteResult& result) {
  {
    const absl::MutexLock lock(&mutex_);
    Record& record = records_.at(name);
    record.writing = false;
    record.failed = false;
    if (IsDone(result)) {
      record.exists = true;
    } else {
      record.unwritten = true;
      if (!status) record.members.clear();
      // Without the definition in the cluster there is no sense in more; a status without its
      // object has one made first.
      record.failed = status || result.http_code != 404;
      if (result.http_code == 404) record.exists = false;
      CountFailure(fmt::format("{} {} could not be written", kKind, name), result);
    }
    if (status || !IsDone(result)) Release(record);
    if (IsDone(result)) BeginWrite(name, record);
  }
  Carry();
}

void Reclaimer::Core::Release(Record& record) {
  record.tried = true;
  for (EvictionOrder& order : record.held) Evict(std::move(order));
  record.held.clear();
}

void Reclaimer::Core::Nominate(Nomination nomination) {
  calls_.push_back([self = shared_from_this(), nomination = std::move(nomination)] {
    self->evictions_.Nominate(nomination.pod, nomination.uid, nomination.node,
                              [pod = nomination.pod](const WriteResult& result) {
                                if (IsDone(result)) return;
                                spdlog::debug("{} could not be nominated: code {}: {}", pod.str(),
                                              result.http_code, result.message);
                              });
  });
}

void Reclaimer::Core::Evict(EvictionOrder order) {
  calls_.push_back([self = shared_from_this(), order = std::move(order)] {
    self->evictions_.Evict(
        {order.pod, order.uid, order.grace},
        [self, order](const EvictionResult& result) { self->Evicted(order, result); });
  });
}

void Reclaimer::Core::Evicted(const EvictionOrder& order, const EvictionResult& result) {
  const EvictionOutcome outcome = OutcomeOf(result.write);
  metrics_.CountEvictionFailure(outcome);
  if (outcome == EvictionOutcome::kFailed || outcome == EvictionOutcome::kForbidden) {
    spdlog::warn("{} could not be evicted: code {}: {}", order.pod.str(), result.write.http_code,
                 result.write.message);
  }
  hooks_.settle(order.reclaim, order.uid, outcome, result.retry_after);
}

void Reclaimer::Core::Carry() {
  mutex_.Lock();
  // Another call, possibly a caller of this one, is already draining the queue and will take this
  // item.
  if (carrying_) {
    mutex_.Unlock();
    return;
  }
  carrying_ = true;
  while (!calls_.empty()) {
    const std::function<void()> call = std::move(calls_.front());
    calls_.pop_front();
    mutex_.Unlock();
    call();
    mutex_.Lock();
  }
  carrying_ = false;
  mutex_.Unlock();
}

void Reclaimer::Core::Tick(Instant now) {
  {
    const absl::MutexLock lock(&mutex_);
    int deletions = 0;
    while (!finished_.empty() && deletions < kMostDeletions) {
      const auto& [at, name] = *finished_.begin();
      if (finished_.size() <= kMostFinished && now - at < kKeepFinished) break;
      const auto record = records_.find(name);
      if (record->second.writing) break;
      records_.erase(record);
      deletions_.insert(name);
      BeginDeletion(name);
      finished_.erase(finished_.begin());
      ++deletions;
    }
    if (!retried_ || now - *retried_ >= kRetryGap) {
      retried_ = now;
      for (auto& [name, record] : records_) {
        if (record.failed) BeginWrite(name, record);
      }
      if (deletions == 0) {
        for (const std::string& name : deletions_) BeginDeletion(name);
      }
    }
  }
  Carry();
}

void Reclaimer::Core::BeginDeletion(const std::string& name) {
  calls_.push_back([self = shared_from_this(), name] {
    self->objects_.DeleteReclaim(name, [self, name](const WriteResult& result) {
      const absl::MutexLock lock(&self->mutex_);
      if (IsDone(result) || result.http_code == 404) {
        self->deletions_.erase(name);
      } else {
        self->CountFailure(fmt::format("{} {} could not be deleted", kKind, name), result);
      }
    });
  });
}

void Reclaimer::Core::CountFailure(const std::string& what, const WriteResult& result) {
  ++failures_;
  const Steady::time_point now = Steady::now();
  if (logged_ && now - *logged_ < kLogGap) {
    ++unlogged_;
    return;
  }
  spdlog::warn(
      "{}: code {}: {}{}", what, result.http_code, result.message,
      unlogged_ == 0 ? "" : fmt::format(" (and {} failures since the last line)", unlogged_));
  logged_ = now;
  unlogged_ = 0;
}

int64_t Reclaimer::Core::running() const {
  const absl::MutexLock lock(&mutex_);
  return std::ranges::count_if(records_,
                               [](const auto& entry) { return !entry.second.newest->finished(); });
}

Reclaimer::Reclaimer(Evictions& evictions, ObjectWrites& objects, metrics::Metrics& metrics,
                     Hooks hooks)
    : core_(std::make_shared<Core>(evictions, objects, metrics, std::move(hooks))) {}

Reclaimer::~Reclaimer() = default;

void Reclaimer::Restored(const std::vector<Reclaim>& reclaims) { core_->Restored(reclaims); }
void Reclaimer::Queue(ReclaimWork work, Instant now) { core_->Queue(std::move(work), now); }
void Reclaimer::Carry() { core_->Carry(); }
void Reclaimer::Tick(Instant now) { core_->Tick(now); }
int64_t Reclaimer::running() const { return core_->running(); }
int64_t Reclaimer::failures() const { return core_->failures(); }

}  // namespace tranche
