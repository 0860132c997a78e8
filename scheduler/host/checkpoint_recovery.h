// What is to be taken over from checkpoints when a ledger begins its work: the checkpoints that
// objects carry are compared with the ledger that is there (ADR 0027).
//
// Pure but for what it was shown; one thread at a time. Cost: a decode per object shown.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "policy/policy_set.h"
#include "policy/spec.h"
#include "scheduler/facts/checkpoint.h"
#include "scheduler/ports/cluster_events.h"

namespace tranche {

// The ledger at hand; id "" where there is none.
struct LedgerFile {
  std::string id;
  int64_t last_entry = 0;
  std::vector<RestoredUse> restored;  // that it has taken over already
};

enum class HistoryVerdict : uint8_t {
  kHas,       // the ledger that wrote the checkpoint, at or after it
  kRestored,  // another one, or an older copy, that has taken it over
  kRestore,   // one that lacks it
  kRefused,   // it cannot be true
};
struct HistoryJudgement {
  HistoryVerdict verdict = HistoryVerdict::kHas;
  std::string problem;  // kRefused: where, expected, found
};

HistoryJudgement JudgeBudget(const BudgetCheckpoint& checkpoint, const GpuBudget& budget,
                             const LedgerFile& ledger, Instant now);
HistoryJudgement JudgeLeaf(const LeafCheckpoint& checkpoint, const std::string& leaf,
                           const LedgerFile& ledger, Instant now);

struct FoundHistory {
  // All that can be believed, by uid of the budget and name of the leaf.
  std::map<std::string, BudgetCheckpoint> budgets;
  std::map<std::string, LeafCheckpoint> leaves;
  std::vector<RestoredUse> uses;  // those to be taken over, budgets first
  // HistoryRestored: true of whatever `uses` are about; false, and why, of what is not believed.
  std::vector<Finding> findings;
};

// HistoryRestored is true of the object since the checkpoint of `at` was taken over.
Finding RestoredFinding(const std::string& kind, const std::string& name, Instant at);

class CheckpointRecovery {
 public:
  // Of other kinds nothing is kept.
  void Upsert(const PolicyObject& object);
  void Remove(const std::string& kind, const std::string& name);
  // `budgets`: those in force. What was shown is forgotten.
  FoundHistory Judge(const std::vector<GpuBudget>& budgets, const LedgerFile& ledger, Instant now);

 private:
  // By name of the object.
  std::map<std::string, absl::StatusOr<std::optional<BudgetCheckpoint>>> budgets_;
  std::map<std::string, absl::StatusOr<std::optional<LeafCheckpoint>>> leaves_;
};

}  // namespace tranche
