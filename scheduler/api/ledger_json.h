// GPU-hours of the ledger as JSON: GET /api/v1/ledger, and `tranche ledger report -o json`.
#pragma once

#include <string>
#include <vector>

#include "quota/tree/charge.h"
#include "scheduler/ledger/reader.h"

namespace tranche {

// The sum over the rows, of each the larger dimension.
Int128 TotalOf(const std::vector<ledger::ReportRow>& rows);

// {"rows":[{"leaf","model","gpuHours"}],"total"}: decimal strings of three decimals; of each row
// the larger dimension. What was taken over from checkpoints has "restoredGpuHours" in its row and
// "restored":[{"leaf","model","gpuHours","from","to","checkpoint"}] beside them.
std::string LedgerReportJson(const std::vector<ledger::ReportRow>& rows,
                             const std::vector<ledger::RestoredRow>& restored);

}  // namespace tranche
