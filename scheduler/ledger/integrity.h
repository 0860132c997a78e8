// SQLite's own checks of a file: pages, indices, constraints, references; and who makes them now
// and then while it is being written.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/ledger/sqlite.h"
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

// integrity_check and foreign_key_check of `path`, at once if asked to and then once a day, on a
// thread and a read-only connection of its own.
class IntegrityWatch {
 public:
  // `report` gets the first fault, from the thread; none for a sound file.
  IntegrityWatch(std::string path, bool at_once, const Workers& workers,
                 std::function<void(std::string)> report);
  ~IntegrityWatch();
  // Ends the thread, in the middle of a check if need be. Idempotent.
  void Stop();

 private:
  std::optional<Worker::Rest> Step();
  void Check();

  const std::string path_;
  const std::function<void(std::string)> report_;
  bool due_;  // at the next step; the work's own
  std::atomic<bool> stop_ = false;
  std::unique_ptr<Worker> work_;
};

}  // namespace tranche::ledger
