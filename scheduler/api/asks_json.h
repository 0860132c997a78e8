// What a waiting pod asks for, for GET /api/v1/pods: enough to put the same question again,
// changed.
//
// "asks": {"style","devices":[{"container","kind":"gpu|shared|mig|share","count","profile","milli",
// "mib","milliOfMemory"}],"models","notModels","minGpuMemoryMiB","topology","gang","gangSize",
// "expectedRuntimeSeconds"}; what was not said is null. Thread rule: any thread.
#pragma once

#include <string>

#include "scheduler/facts/pod_request.h"

namespace tranche {

// Appends the member to an object that was begun; `request` null: null.
void AppendAsks(std::string& out, const PodRequest* request);

}  // namespace tranche
