// Taking up the ledger when a leadership begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "scheduler/ledger/sqlite_ledger.h"
#include "scheduler/server/config.h"

namespace tranche {

// A ledger that was opened, or why there is none although one was asked for.
struct OpenedLedger {
  std::unique_ptr<ledger::SqliteLedger> ledger;
  std::string untrusted;  // not empty: why the file is damaged or out of reach; it stays as it is
};

// Of one who decides what runs when: the ledger has these instead of threads, and is opened on the
// caller's.
struct LedgerWorks {
  ledger::Workers workers;                         // null: threads
  std::function<void(const MeterEvent&)> on_disk;  // as ledger::Options has it
  std::optional<std::size_t> queue_limit = {};     // likewise
};

enum class IfUntrusted : uint8_t { kGoOn, kFail };

// Opens the configured ledger for a writer of that epoch, or of the file's own if that is higher
// and `exact_epoch` is not set. A file that is damaged, or a disk that cannot be written, is no
// error unless asked for: placement goes on without (OpenedLedger::untrusted).
// Errors: InvalidArgument and NotFound (a wrong path), FailedPrecondition (another process has the
// file, a newer version); with kFail all of SqliteLedger::Open.
absl::StatusOr<OpenedLedger> OpenLedger(const ServeConfig& config, int64_t epoch, bool exact_epoch,
                                        std::function<bool()> may_write,
                                        IfUntrusted untrusted = IfUntrusted::kGoOn,
                                        LedgerWorks works = {});

}  // namespace tranche
