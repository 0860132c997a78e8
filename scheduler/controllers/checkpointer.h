// What the ledger has settled, as the statuses of GPUBudgets and GPUQuotas are to carry it, should
// the ledger be lost (ADR 0027); and what this ledger was told that way.
//
// Taken once a minute. One that says nothing new keeps its mark, so that no status is written for
// it. What was found at start stays until the ledger has taken it over and says so itself.
//
// Thread rule: Take from one thread at a time; the questions from any.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/facts/checkpoint.h"
#include "scheduler/host/host.h"
#include "scheduler/ports/ledger.h"

namespace tranche {

inline constexpr Millis kCheckpointEvery{60'000};

class Checkpointer {
 public:
  // `ledger` may be null (nothing is kept): then only checkpoints found in statuses are written
  // again. It writes `path`.
  Checkpointer(Host& host, Ledger* ledger, std::string path);

  // Takes over what the host found; once it is ready, before the first status is written.
  void TellFound();
  // Takes checkpoints where a minute has passed; reads the file. What cannot be read or is not yet
  // on disk waits for the next time.
  void Take(Instant now);
  // JSON of status.checkpoint; "" where there is none.
  std::string OfBudget(const std::string& uid) const;
  std::string OfLeaf(const std::string& name) const;
  // What HistoryRestored says of objects, as far as it still shows in numbers.
  std::vector<Finding> Findings(const std::vector<BudgetReport>& budgets) const;
  // What was restored or refused when this process began.
  std::vector<Finding> news() const;
  // Of the last one taken; nullopt: none yet.
  std::optional<Instant> taken() const;

 private:
  // A checkpoint and its JSON, which is asked for more often than it changes.
  template <typename Checkpoint>
  struct Kept {
    Checkpoint checkpoint;
    std::string text;
  };
  template <typename Checkpoint>
  static void Renew(std::map<std::string, Kept<Checkpoint>>& known,
                    std::map<std::string, Checkpoint> taken);
  template <typename Checkpoint>
  static std::string TextOf(const std::map<std::string, Kept<Checkpoint>>& known,
                            const std::string& name);
  // By leaf. Also notes what was restored.
  absl::StatusOr<std::map<std::string, LeafCheckpoint>> ReadLeaves(const CheckpointMark& mark);

  Host& host_;
  Ledger* const ledger_;
  const std::string path_;
  Instant tried_ = Instant::min();

  mutable absl::Mutex mutex_;
  bool found_told_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Kept<BudgetCheckpoint>> budgets_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Kept<LeafCheckpoint>> leaves_ ABSL_GUARDED_BY(mutex_);
  std::vector<Finding> news_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Instant> restored_leaves_
      ABSL_GUARDED_BY(mutex_);  // by what checkpoint, the newest
  std::optional<Instant> taken_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tranche
