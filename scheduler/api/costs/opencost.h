// GET /api/v1/opencost/allocation and /api/v1/opencost/allocation/compute: what GPUs cost, in the
// form of OpenCost's Allocation API, for programs that read it.
//
// {"code":200,"data":[{"NAME":{"name","properties","window":{"start","end"},"start","end",
// "minutes","gpuCount","gpuHours","gpuCost","totalCost",...}}]}: a set for each step of the window.
// Parameters: window (cost_window.h), aggregate (namespace where it is left out, pod, node,
// cluster, controller, label:team, or label:KEY of pods), step, accumulate, includeIdle; others are
// OpenCost's and change nothing here. What nobody held is __idle__, what was given back
// __refunded__, both with includeIdle; pods of no team are __unallocated__. CPU, memory, volumes
// and network cost 0: Tranche meters GPUs alone.
//
// Source: opencost.io/docs/integrations/api and api-examples.
//
// Thread rule: any thread. Cost: of a bill for each step, of which there may be 31.
#pragma once

#include "scheduler/api/ledger_api.h"

namespace tranche {

void AddOpenCostApi(const LedgerSource& source, Router& router);

}  // namespace tranche
