// A ledger report as JSON, the same for the API and the command line (DESIGN section 9).
#pragma once

#include <span>
#include <string>

#include "scheduler/ledger/reader.h"

namespace tranche::app {

// {"rows":[{"leaf","model","gpuHours"}],"total"}; GPU-hours are decimal strings, of compute or
// memory the larger. A row of no leaf has leaf null.
std::string EncodeLedgerReport(std::span<const ledger::ReportRow> rows);

}  // namespace tranche::app
