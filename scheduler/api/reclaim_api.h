// Reclaims as JSON: GET /api/v1/reclaims, and what explain and what-if say of them (DESIGN section
// 9). Work that is lost is in GPU-seconds, rounded up.
#pragma once

#include <span>
#include <string>

#include "scheduler/engine/engine.h"
#include "scheduler/wire/json/json_value.h"

namespace tranche {

// {"reclaims":[...],"now":...}.
std::string EncodeReclaim(const Reclaim& reclaim);
std::string EncodeReclaims(std::span<const Reclaim> reclaims, Instant now);

// One of them.
wire::Json ReclaimJson(const Reclaim& reclaim);

// The value of "plan": the reclaim that runs for the pod or takes it away, why there is none, or
// null.
wire::Json PlanJson(const Explanation& explanation);
// The members of a what-if answer about the evictions that would make room: "victims" by name,
// their rule and cost, and each in full.
wire::Json EvictionsJson(const WhatIfResult& result);

}  // namespace tranche
