// Series of quotas, budgets, what waits for them, and the ledger. Internal to this folder.
#pragma once

#include "scheduler/metrics/metrics.h"
#include "scheduler/metrics/page.h"

namespace tranche::metrics {

void AddTeams(const Scrape& scrape, Page& page);

}  // namespace tranche::metrics
