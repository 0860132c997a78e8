#include "scheduler/ledger/schema.h"

#include <fmt/format.h>

#include <string>

#include "scheduler/ledger/sqlite/log.h"
#include "topology/base/plant.h"
#include "topology/base/status.h"

namespace tranche::ledger {
namespace {

constexpr std::string_view kVersion1 = R"sql(
CREATE TABLE meta(
  key TEXT PRIMARY KEY,
  value INTEGER NOT NULL,
  seal INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE account(
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('held', 'pool', 'refunded', 'returned')),
  leaf TEXT NOT NULL,
  model TEXT NOT NULL,
  class TEXT NOT NULL,
  UNIQUE (kind, leaf, model, class)
) STRICT;

CREATE TABLE interval(
  id INTEGER PRIMARY KEY,
  uid TEXT NOT NULL CHECK (uid <> ''),
  number INTEGER NOT NULL CHECK (number >= 0),
  namespace TEXT NOT NULL,
  pod TEXT NOT NULL,
  node TEXT NOT NULL,
  leaf TEXT NOT NULL,
  class TEXT NOT NULL,
  devices TEXT NOT NULL,
  UNIQUE (uid, number)
) STRICT;

CREATE TABLE entry(
  id INTEGER PRIMARY KEY CHECK (id > 0),
  interval INTEGER REFERENCES interval,
  kind INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 7),
  at INTEGER NOT NULL,
  written INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  flags INTEGER NOT NULL CHECK (flags BETWEEN 0 AND 3),
  note TEXT NOT NULL,
  hash BLOB NOT NULL CHECK (length(hash) = 32),
  CHECK ((interval IS NULL) = (kind = 7))
) STRICT;
CREATE UNIQUE INDEX entry_once ON entry(interval, kind) WHERE kind <= 4;
CREATE UNIQUE INDEX refund_once ON entry(interval, at, note) WHERE kind = 5;
CREATE INDEX entry_at ON entry(at);

CREATE TABLE posting(
  entry INTEGER NOT NULL REFERENCES entry,
  account INTEGER NOT NULL REFERENCES account,
  compute INTEGER NOT NULL,
  memory INTEGER NOT NULL,
  PRIMARY KEY (entry, account)
) STRICT, WITHOUT ROWID;

CREATE TABLE window_closing(
  entry INTEGER PRIMARY KEY REFERENCES entry,
  budget TEXT NOT NULL,
  start INTEGER NOT NULL,
  until INTEGER NOT NULL CHECK (until > start),
  amounts TEXT NOT NULL
) STRICT;
CREATE INDEX closing_window ON window_closing(budget, start);

CREATE TABLE balance(
  account INTEGER PRIMARY KEY,
  compute INTEGER NOT NULL,
  memory INTEGER NOT NULL
) STRICT;

CREATE TABLE checked_balance(
  account INTEGER PRIMARY KEY,
  compute INTEGER NOT NULL,
  memory INTEGER NOT NULL
) STRICT;

CREATE TABLE open_interval(
  interval INTEGER PRIMARY KEY,
  entry INTEGER NOT NULL,
  running INTEGER
) STRICT;

CREATE TABLE rollup(
  day INTEGER NOT NULL,
  account INTEGER NOT NULL,
  compute INTEGER NOT NULL,
  memory INTEGER NOT NULL,
  compute_moment_high INTEGER NOT NULL,
  compute_moment_low INTEGER NOT NULL,
  memory_moment_high INTEGER NOT NULL,
  memory_moment_low INTEGER NOT NULL,
  seal INTEGER NOT NULL,
  PRIMARY KEY (day, account)
) STRICT, WITHOUT ROWID;

CREATE TABLE decay(
  leaf TEXT PRIMARY KEY,
  quanta INTEGER NOT NULL,
  at INTEGER NOT NULL,
  usage_high INTEGER NOT NULL,
  usage_low INTEGER NOT NULL,
  seal INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER entry_update BEFORE UPDATE ON entry
  BEGIN SELECT RAISE(ABORT, 'entry is append-only'); END;
CREATE TRIGGER entry_delete BEFORE DELETE ON entry
  BEGIN SELECT RAISE(ABORT, 'entry is append-only'); END;
CREATE TRIGGER posting_update BEFORE UPDATE ON posting
  BEGIN SELECT RAISE(ABORT, 'posting is append-only'); END;
CREATE TRIGGER posting_delete BEFORE DELETE ON posting
  BEGIN SELECT RAISE(ABORT, 'posting is append-only'); END;
CREATE TRIGGER interval_update BEFORE UPDATE ON interval
  BEGIN SELECT RAISE(ABORT, 'interval is append-only'); END;
CREATE TRIGGER interval_delete BEFORE DELETE ON interval
  BEGIN SELECT RAISE(ABORT, 'interval is append-only'); END;
CREATE TRIGGER account_update BEFORE UPDATE ON account
  BEGIN SELECT RAISE(ABORT, 'account is append-only'); END;
CREATE TRIGGER account_delete BEFORE DELETE ON account
  BEGIN SELECT RAISE(ABORT, 'account is append-only'); END;
CREATE TRIGGER window_closing_update BEFORE UPDATE ON window_closing
  BEGIN SELECT RAISE(ABORT, 'window_closing is append-only'); END;
CREATE TRIGGER window_closing_delete BEFORE DELETE ON window_closing
  BEGIN SELECT RAISE(ABORT, 'window_closing is append-only'); END;
)sql";

// A CHECK is no part of what is stored: SQLite's own way to change one is in the table's text.
constexpr std::string_view kVersion2 = R"sql(
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(replace(sql,
    'CHECK (kind BETWEEN 1 AND 7)', 'CHECK (kind BETWEEN 1 AND 8)'),
    'CHECK ((interval IS NULL) = (kind = 7))', 'CHECK ((interval IS NULL) = (kind >= 7))')
  WHERE type = 'table' AND name = 'entry';
PRAGMA writable_schema = RESET;

CREATE TABLE restored(
  entry INTEGER PRIMARY KEY REFERENCES entry,
  of TEXT NOT NULL CHECK (of IN ('budget', 'leaf')),
  name TEXT NOT NULL,
  model TEXT NOT NULL,
  start INTEGER NOT NULL,
  until INTEGER NOT NULL CHECK (until > start),
  compute TEXT NOT NULL,
  memory TEXT NOT NULL,
  detail TEXT NOT NULL,
  source TEXT NOT NULL,
  source_entry INTEGER NOT NULL
) STRICT;
CREATE TRIGGER restored_update BEFORE UPDATE ON restored
  BEGIN SELECT RAISE(ABORT, 'restored is append-only'); END;
CREATE TRIGGER restored_delete BEFORE DELETE ON restored
  BEGIN SELECT RAISE(ABORT, 'restored is append-only'); END;
)sql";

constexpr std::string_view kVersion3 = R"sql(
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql,
    'CHECK (kind BETWEEN 1 AND 8)', 'CHECK (kind BETWEEN 1 AND 10)')
  WHERE type = 'table' AND name = 'entry';
PRAGMA writable_schema = RESET;

CREATE INDEX entry_fleet ON entry(id) WHERE kind >= 9;
)sql";

// What happened: no part of the journal, and forgotten in time.
constexpr std::string_view kVersion4 = R"sql(
CREATE TABLE past_text(
  id INTEGER PRIMARY KEY,
  text TEXT NOT NULL,
  used INTEGER NOT NULL
) STRICT;

CREATE TABLE past_pod(
  id INTEGER PRIMARY KEY,
  uid TEXT NOT NULL UNIQUE CHECK (uid <> ''),
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  owner TEXT NOT NULL,
  created INTEGER NOT NULL,
  text INTEGER NOT NULL,
  node TEXT NOT NULL,
  started INTEGER,
  devices TEXT NOT NULL,
  ended INTEGER,
  how INTEGER NOT NULL CHECK (how BETWEEN 0 AND 4)
) STRICT;
CREATE INDEX past_pod_ended ON past_pod(ended);
CREATE INDEX past_pod_text ON past_pod(text);

CREATE TABLE past_change(
  id INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  text INTEGER
) STRICT;
CREATE INDEX past_change_object ON past_change(kind, name, id);
CREATE INDEX past_change_text ON past_change(text);

CREATE TABLE past_span(
  key TEXT PRIMARY KEY,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
)sql";

// What pods did with their devices: likewise.
constexpr std::string_view kVersion5 = R"sql(
CREATE TABLE past_idle(
  uid TEXT NOT NULL,
  since INTEGER NOT NULL,
  until INTEGER NOT NULL CHECK (until > since),
  PRIMARY KEY (uid, since)
) STRICT, WITHOUT ROWID;
CREATE INDEX past_idle_until ON past_idle(until);

CREATE TABLE past_work(
  uid TEXT NOT NULL,
  device TEXT NOT NULL,
  hours INTEGER NOT NULL,
  busiest INTEGER NOT NULL CHECK (busiest BETWEEN 0 AND 1000),
  memory INTEGER,
  told INTEGER NOT NULL,
  PRIMARY KEY (uid, device)
) STRICT, WITHOUT ROWID;
)sql";

// What made a pod, and its labels that bills tell apart. Of intervals before it nothing is known.
constexpr std::string_view kVersion6 = R"sql(
ALTER TABLE interval ADD COLUMN workload TEXT NOT NULL DEFAULT '';
)sql";

constexpr std::string_view kVersion7 = R"sql(
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql,
    'CHECK (kind BETWEEN 1 AND 10)', 'CHECK (kind BETWEEN 1 AND 11)')
  WHERE type = 'table' AND name = 'entry';
PRAGMA writable_schema = RESET;
)sql";

constexpr MigrationStep kSteps[] = {{1, kVersion1}, {2, kVersion2}, {3, kVersion3}, {4, kVersion4},
                                    {5, kVersion5}, {6, kVersion6}, {7, kVersion7}};
static_assert(std::size(kSteps) == kSchemaVersion);

// What calls itself a later version than this is damaged, not new.
constexpr int64_t kLastVersion = 1'000;

struct Setting {
  const char* name;
  const char* value;  // as it is set
  const char* read_back;
};

constexpr Setting kReadSettings[] = {
    {"busy_timeout", "5000", "5000"},
    {"trusted_schema", "OFF", "0"},
    {"cell_size_check", "ON", "1"},
    {"temp_store", "MEMORY", "2"},
    // An I/O error becomes an error code, not SIGBUS.
    {"mmap_size", "0", "0"},
};
constexpr Setting kWriteSettings[] = {
    {"journal_mode", "WAL", "wal"},
    // NORMAL would lose the last commits on power loss.
    {"synchronous", "FULL", "2"},
    {"foreign_keys", "ON", "1"},
    {"wal_autocheckpoint", "1000", "1000"},
    {"journal_size_limit", "67108864", "67108864"},
    {"secure_delete", "OFF", "0"},
    // KiB. The default of 2 MiB does not hold the inner pages of the indices.
    {"cache_size", "-32768", "-32768"},
};

absl::Status Apply(Database& database, std::span<const Setting> settings) {
  for (const Setting& setting : settings) {
    TRANCHE_RETURN_IF_ERROR(
        database.Execute(fmt::format("PRAGMA {} = {}", setting.name, setting.value)));
    TRANCHE_ASSIGN_OR_RETURN(const std::string found,
                             database.Text(fmt::format("PRAGMA {}", setting.name)));
    // Builds without memory mapping answer this one with no row at all.
    const bool holds = found == setting.read_back ||
                       (found.empty() && std::string_view(setting.name) == "mmap_size");
    if (!holds) {
      return absl::InternalError(fmt::format("expected SQLite setting {} = {}, found {}",
                                             setting.name, setting.read_back, found));
    }
  }
  return absl::OkStatus();
}

absl::Status RunStep(Database& database, const MigrationStep& step) {
  TRANCHE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database));
  TRANCHE_RETURN_IF_ERROR(
      database.Execute(fmt::format("{}\nPRAGMA application_id = {}; PRAGMA user_version = {};",
                                   step.sql, kApplicationId, step.to)));
  return transaction.Commit();
}

}  // namespace

absl::Status ApplySettings(Database& database) {
  TRANCHE_RETURN_IF_ERROR(Apply(database, kReadSettings));
  TRANCHE_RETURN_IF_ERROR(Apply(database, kWriteSettings));
  TRANCHE_RETURN_IF_ERROR(WriteLogAgain(database));
  if (TRANCHE_PLANTED(commits_are_not_synced)) return database.Execute("PRAGMA synchronous = OFF");
  return absl::OkStatus();
}

absl::Status ApplyReadSettings(Database& database) {
  // A reader never checkpoints: SQLite before 3.51.3 can lose pages when two connections do.
  LeaveLogAlone(database);
  return Apply(database, kReadSettings);
}

absl::Status CheckIdentity(Database& database, IfEmpty if_empty) {
  TRANCHE_ASSIGN_OR_RETURN(const int64_t application, database.Integer("PRAGMA application_id"));
  TRANCHE_ASSIGN_OR_RETURN(const int64_t version, database.Integer("PRAGMA user_version"));
  TRANCHE_ASSIGN_OR_RETURN(const int64_t objects,
                           database.Integer("SELECT count(*) FROM sqlite_schema"));
  const bool empty = application == 0 && version == 0 && objects == 0;
  if (empty && if_empty == IfEmpty::kAccept) return absl::OkStatus();
  if (application != kApplicationId || version < 1 || version > kLastVersion) {
    return absl::DataLossError(fmt::format(
        "expected a Tranche ledger (application_id {:#x}), found {:#x}, version {}, in {}",
        kApplicationId, application, version, sqlite3_db_filename(database.handle(), "main")));
  }
  if (version > kSchemaVersion) {
    return absl::FailedPreconditionError(fmt::format(
        "expected a ledger of version {} or older, found version {}, written by a newer Tranche, "
        "in {}",
        kSchemaVersion, version, sqlite3_db_filename(database.handle(), "main")));
  }
  return absl::OkStatus();
}

std::span<const MigrationStep> MigrationSteps() { return kSteps; }

absl::Status Migrate(Database& database, std::span<const MigrationStep> steps,
                     const std::function<absl::Status()>& backup) {
  TRANCHE_ASSIGN_OR_RETURN(const int64_t version, database.Integer("PRAGMA user_version"));
  bool saved = version == 0;
  for (const MigrationStep& step : steps) {
    if (step.to <= version) continue;
    if (!saved) {
      TRANCHE_RETURN_IF_ERROR(backup());
      saved = true;
    }
    TRANCHE_RETURN_IF_ERROR(RunStep(database, step));
  }
  return absl::OkStatus();
}

}  // namespace tranche::ledger
