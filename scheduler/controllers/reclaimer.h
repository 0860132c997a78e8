// Carries out what reclaims want: evicts, nominates, keeps the GPUReclaim objects and tells people.
//
// A reclaim is written down before its first eviction, so that a restart between two evictions can
// go on with it: object, then status, then the evictions. One try is enough: a cluster that does
// not take the record only costs the record. Later changes are written as they come, the newest
// version next, never two writes of one object at once. Objects of reclaims that ended stay a day,
// at most kMostFinished of them.
//
// What is to be done is queued under the engine's lock (ReclaimSink) and done by one thread at a
// time without any lock; answers may come before a call returns and only queue further work, so
// that nothing nests.
//
// Thread rule: any thread. Answers may come after this is gone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/host/engine_host.h"
#include "scheduler/metrics/metrics.h"
#include "scheduler/ports/evictions.h"
#include "scheduler/ports/object_writes.h"

namespace tranche {

class Reclaimer : public ReclaimSink {
 public:
  static constexpr std::size_t kMostFinished = 1'000;
  static constexpr Millis kKeepFinished = std::chrono::hours(24);
  static constexpr Millis kRetryGap{10'000};

  // What it needs of the rest; both are called without locks.
  struct Hooks {
    // How an eviction ended: Engine::SettleEviction.
    std::function<void(const std::string& reclaim, const PodUid& uid, EvictionOutcome outcome,
                       std::optional<Millis> retry_after)>
        settle;
    // The uid of an object of ours, for events about it; empty: none.
    std::function<std::string(const std::string& kind, const std::string& name)> uid_of;
  };

  // All must outlive the cluster's last answer.
  Reclaimer(Evictions& evictions, ObjectWrites& objects, metrics::Metrics& metrics, Hooks hooks);
  ~Reclaimer() override;
  Reclaimer(const Reclaimer&) = delete;
  Reclaimer& operator=(const Reclaimer&) = delete;

  void Restored(const std::vector<Reclaim>& reclaims) override;
  void Queue(ReclaimWork work, Instant now) override;
  void Carry() override;
  // Deletes objects whose time is over, and writes again what could not be written.
  void Tick(Instant now);

  int64_t running() const;   // reclaims that have not ended
  int64_t failures() const;  // writes of records the API server did not take

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace tranche
