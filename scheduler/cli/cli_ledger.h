// `tranche ledger verify|report|bill|statement|held|export|repair-clock`: a ledger file read beside
// its server or without one, and the one repair there is.
//
// Each returns the exit code: 0 done, 1 the ledger is bad, 2 usage (no such file, no ledger, a time
// that cannot be read); what is wrong is one line on `err`. Open intervals count up to the newest
// time the ledger knows of, its last heartbeat as a rule.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace tranche {

struct ClientOptions;  // of cli_ask.h

// What is asked. Times: RFC 3339, or a date for its first moment in UTC.
struct LedgerSpan {
  std::string path;                 // empty: the server's, for a report
  std::optional<std::string> from;  // nullopt: from the first entry
  std::optional<std::string> to;    // exclusive; nullopt: to the last
  std::optional<std::string> leaf;
};

// As JSON: {"sound":true,"entries":3,"postings":4,"openIntervals":1,"head":"..","faults":["..."]}.
int LedgerVerify(const std::string& path, bool json, std::ostream& out, std::ostream& err);

struct LedgerReportOptions {
  LedgerSpan span;
  bool json = false;
};
int LedgerReport(const LedgerReportOptions& options, std::ostream& out, std::ostream& err);

// The span as the query of the server's report: "?from=...&leaf=...", "" where all is asked for.
// Errors: InvalidArgument for times that cannot be read.
absl::StatusOr<std::string> LedgerQueryOf(const LedgerSpan& span);

// What use costs, of a file or of the server's ledger where `path` is empty.
// Table, JSON, or CSV with the column names of FOCUS 1.2.
inline constexpr const char* kBillBy =
    "team|namespace|class|pod|owner|node|model|pool|day|label:...";
struct LedgerBillOptions {
  LedgerSpan span;  // nullopt: from the first of the month, to the last
  std::string by = "team";
  std::optional<std::string> hash_key = {};  // a file: names are hashed by what is in it
};
int LedgerBill(const LedgerBillOptions& options, const ClientOptions& client, std::ostream& out,
               std::ostream& err);

// What a span that is over cost, as JSON, with the place in the chain by which LedgerProve knows
// it.
struct LedgerStatementOptions {
  LedgerBillOptions bill;            // from and to, both nullopt: the last month
  std::optional<std::string> month;  // "2026-11" in place of them
};
int LedgerStatement(const LedgerStatementOptions& options, const ClientOptions& client,
                    std::ostream& out, std::ostream& err);
// Is the ledger sound, and the statement in file `statement` what it said when that was made? 1
// where not. As JSON: {"proven":true,"faults":[],"since":["..."]}.
int LedgerProve(const std::string& path, const std::string& statement, bool json, std::ostream& out,
                std::ostream& err);

// The holders of GPUs at a moment, of a file or of the server's ledger where `path` is empty.
struct LedgerHeldOptions {
  std::string path;
  std::optional<std::string> at;  // nullopt: now; of a file, the newest it knows of
  std::optional<std::string> leaf;
};
int LedgerHeld(const LedgerHeldOptions& options, const ClientOptions& client, std::ostream& out,
               std::ostream& err);

enum class ExportFormat { kCsv, kJson };
struct LedgerExportOptions {
  LedgerSpan span;
  ExportFormat format = ExportFormat::kCsv;
  bool past = false;                         // what happened, in place of the intervals
  std::optional<std::string> hash_key = {};  // a file: names are hashed by what is in it
};
// One row per interval and model. CSV after RFC 4180; a text that a spreadsheet would take for a
// formula gets an apostrophe before it. JSON: {"rows":[{...}]}. The past: a JSON value a line
// (ledger/past_text.h).
int LedgerExport(const LedgerExportOptions& options, std::ostream& out, std::ostream& err);

// Takes back heartbeats that a wrong clock has written ahead of this machine's, while no server has
// the file.
int LedgerRepairClock(const std::string& path, std::ostream& out, std::ostream& err);

}  // namespace tranche
