// GPU-hours of the ledger as JSON: GET /api/v1/ledger, and `tranche ledger report -o json`.
#pragma once

#include <string>
#include <vector>

#include "quota/tree/charge.h"
#include "scheduler/ledger/reader.h"
#include "topology/base/units.h"

namespace tranche {

// The sum over the rows, of each the larger dimension.
Int128 TotalOf(const std::vector<ledger::ReportRow>& rows);

// {"rows":[{"leaf","model","gpuHours"}],"total"}: decimal strings of three decimals; of each row
// the larger dimension. What was taken over from checkpoints has "restoredGpuHours" in its row and
// "restored":[{"leaf","model","gpuHours","from","to","checkpoint"}] beside them.
std::string LedgerReportJson(const std::vector<ledger::ReportRow>& rows,
                             const std::vector<ledger::RestoredRow>& restored);

// {"at","rows":[{"node","model","gpus","leaf","namespace","pod","class","since","until",
// "containers"}]}: who held which GPUs at a moment, ascending node, model, since, namespace, pod;
// "until" is null where it is held still, "containers" says the devices of each, as in the pod's
// record; null: nothing is known of them.
std::string HeldJson(Instant at, std::vector<ledger::ExportRow> rows);

// {"from","to","by","currency","fleetKnownFrom","pricesKnownFrom","rows":[{"key","gpuHours",
// "unpricedGpuHours","cost","idleGpuHours","idleCost"}],"fleet","used","idle","free",
// "strandedKnownFrom","stranded","refunded","unknownGpuHours","restoredGpuHours"}; the six parts
// are as a row without key and idleness. Hours have three decimals and are rounded down, money has
// two and adds up.
std::string BillJson(const ledger::Bill& bill);

// {"statement":1,"ledger":{"entry","hash","written"},"bill"}: the bill as above without idleness,
// and without what is stranded where the ledger did not tell of it yet; and the entry up to which
// the chain tells of it.
std::string StatementJson(const ledger::BillStatement& statement);

}  // namespace tranche
