// Reclaims for people: `tranche reclaims`, who loses what for whom, and what explain and whatif
// print of a plan.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "scheduler/cli/output/json.h"
#include "scheduler/cli/output/list.h"

namespace tranche {

// For whom room is made: "team-a/train and 3 more", "GPUQuota team-a".
std::string WhomFor(const Json& reclaim);
std::string GpuSeconds(int64_t seconds);
// GPU-seconds of work that the victims lose.
int64_t LostBy(const Json& victims);
// The list of /api/v1/reclaims.
const ListShape& ReclaimList();
// "plan" of an explanation; nothing where it is null.
void PrintPlan(const Json& plan, std::ostream& out);
// What would be evicted for a pod of a what-if; nothing where nobody would.
void PrintEvictions(const Json& pod, std::ostream& out);

}  // namespace tranche
