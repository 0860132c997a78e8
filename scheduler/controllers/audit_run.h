// One look at all of the books, a slice under the engine's lock at a time: against themselves, and
// against what the watch shows, each way.
//
// Thread rule: one thread at a time; `host` outlives it.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "scheduler/engine/audit_walk.h"
#include "scheduler/host/host.h"
#include "scheduler/ports/pod_writes.h"

namespace tranche {

// A bind is pursued for five minutes; what is reserved for twice as long has nobody behind it.
inline constexpr Millis kReservationIsStuck{600'000};

class AuditRun {
 public:
  // Pods of one look that the API server is asked for.
  static constexpr std::size_t kMostLookups = 50;
  // Nobody reads more.
  static constexpr std::size_t kMostNotes = 1'000;

  explicit AuditRun(Host& host) : host_(host) {}

  // The next slice. Cost: under two milliseconds of the lock.
  void Step();
  bool done() const { return done_; }
  // What the slices so far have found; when done, all of it, stuck reservations last.
  const AuditFindings& found() const { return found_; }
  AuditFindings& found() { return found_; }
  int64_t stuck_reservations() const { return stuck_; }
  // Beyond kMostNotes.
  int64_t left_out() const { return left_out_; }
  // Pods that hold or wait for something and that the watch does not show. Requires: done().
  std::vector<std::pair<PodUid, PodName>> Unshown();

 private:
  void StepBooks(Engine& engine);
  void StepShown(Engine& engine);
  void Finish(Engine& engine, Instant now);
  void Trim(std::vector<AuditNote>& notes);

  Host& host_;
  AuditWalk walk_;
  ClusterIntake::ShownWalk shown_;
  AuditFindings found_;
  std::vector<PodUid> unshown_;  // known to the engine, but not by the watch
  int64_t stuck_ = 0;
  int64_t left_out_ = 0;
  bool done_ = false;
};

// What the API server says of a pod that somebody holds for alive.
enum class PodPresence : uint8_t {
  kThere,
  kMissing,
  kUnknown,  // no answer, or an error
};

// Asks the API server for each of the pods; `answered` is called once for each, on whatever thread
// the answer comes.
void AskForPods(PodWrites& pods, const std::vector<std::pair<PodUid, PodName>>& asked,
                const std::function<void(const PodUid&, const PodName&, PodPresence)>& answered);

}  // namespace tranche
