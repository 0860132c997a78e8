// Consistent copies of a ledger beside its running writer.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "scheduler/ledger/sqlite/sqlite.h"
#include "topology/base/units.h"

namespace tranche::ledger {

// Copies `path` as it is now to `path`.backup-<UTC time>, which it returns. The copy gets its name
// only after integrity_check. Of all backups the newest `keep` stay. Reads through a connection of
// its own, in steps of 4 MiB, from one snapshot.
// Errors: DataLoss (the copy does not check), ResourceExhausted (disk full), Unavailable.
absl::StatusOr<std::string> BackupLedger(const std::string& path, Instant now, int keep);

// Copies what the connection sees, also of a file that has no name any more, to `name`, which is
// checked before it gets its name. Errors: as BackupLedger.
absl::Status CopyLedger(Database& source, const std::string& name);

// The time in the name of the newest finished copy; nullopt: there is none.
std::optional<Instant> NewestBackup(const std::string& path);

}  // namespace tranche::ledger
