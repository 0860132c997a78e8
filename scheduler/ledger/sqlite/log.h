// The write-ahead log of a database after a sync of it failed.
//
// fsync tells a failure once: the bytes may be in the cache alone from then on, where they look
// written, and the next sync says that all is well. While SQLite moves such a log into the database
// the power may go; then the database has a part of it, and the log is not there to tell the rest.
#pragma once

#include "absl/status/status.h"
#include "scheduler/ledger/sqlite/sqlite.h"

namespace tranche::ledger {

// Writes the bytes of the log over themselves, which makes them new to the disk again, and syncs
// them. Readers may read meanwhile; nobody else may write. Cost: the log, twice. Errors:
// Unavailable, and whatever is in the log is not to be moved.
absl::Status WriteLogAgain(Database& database);

// What the connection has of the log stays there when it is closed.
void LeaveLogAlone(Database& database);
// Moves all of the log into the database; where that worked, it goes when the connection is closed.
absl::Status FinishLog(Database& database);

}  // namespace tranche::ledger
