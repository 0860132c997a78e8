// SQLite's own checks of a file: pages, indices, constraints, references; and who makes them now
// and then while it is being written.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/ledger/sqlite/sqlite.h"
#include "scheduler/ledger/worker.h"

namespace tranche::ledger {

enum class CheckDepth {
  kQuick,  // quick_check: pages and rows, not indices against tables
  kFull,   // integrity_check and foreign_key_check
};

// What is wrong, a line each, at most 20. `stop` is asked every few milliseconds; true ends the
// check, and what was found until then is returned.
absl::StatusOr<std::vector<std::string>> CheckIntegrity(Database& database, CheckDepth depth,
                                                        const std::function<bool()>& stop);

// All that `tranche ledger verify` checks but the head file, which every commit writes anew:
// SQLite's own checks, and every rule from the first entry. A bit that is flipped in an amount is
// no damage to SQLite. On a thread and a read-only connection of its own; the writer's commits and
// checkpoints come between.
class IntegrityWatch {
 public:
  struct Times {
    bool at_once = false;
    std::chrono::milliseconds every{std::chrono::hours(24)};
  };
  // `report` gets the first fault, or "" for a file that is sound, from the thread.
  IntegrityWatch(std::string path, Times times, const Workers& workers,
                 std::function<void(std::string)> report);
  ~IntegrityWatch();
  // Ends the thread, in the middle of a check if need be. Idempotent.
  void Stop();

 private:
  std::optional<Worker::Rest> Step();
  // What is wrong; ok: nothing. Cancelled: it was stopped before it knew.
  absl::Status Check() const;

  const std::string path_;
  const Times times_;
  const std::function<void(std::string)> report_;
  bool due_;  // at the next step; the work's own
  std::atomic<bool> stop_ = false;
  std::unique_ptr<Worker> work_;
};

}  // namespace tranche::ledger
