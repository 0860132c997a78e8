// The file itself: tables, settings, versions. Format: scheduler/docs/ledger_format.md.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "scheduler/ledger/sqlite/sqlite.h"

namespace tranche::ledger {

inline constexpr int64_t kApplicationId = 0x54524e43;  // "TRNC"
inline constexpr int64_t kSchemaVersion = 7;

// Sets every setting of a writing connection and reads it back, then writes its log again
// (sqlite/log.h), since whoever wrote before may have ended after a failed sync. Errors: Internal
// naming the setting, what was wanted and what it is; Unavailable.
absl::Status ApplySettings(Database& database);
// The settings of a connection that only reads.
absl::Status ApplyReadSettings(Database& database);

// Is this a ledger this program can use? Changes nothing. An empty file may become one. Errors:
// DataLoss (it is no ledger, or one byte too many has changed), FailedPrecondition (a newer
// version).
enum class IfEmpty { kAccept, kRefuse };
absl::Status CheckIdentity(Database& database, IfEmpty if_empty);

// Takes a file from version `to` - 1 to `to`.
struct MigrationStep {
  int64_t to;
  std::string_view sql;
};
// The steps of this program, ascending, without gap.
std::span<const MigrationStep> MigrationSteps();

// Every step the file lacks, each in one transaction with its version number. `backup` is called
// once before the first step that changes a file with content; its error stops the migration.
absl::Status Migrate(Database& database, std::span<const MigrationStep> steps,
                     const std::function<absl::Status()>& backup);

}  // namespace tranche::ledger
