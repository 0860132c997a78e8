// Reclaims as JSON: GET /api/v1/reclaims, and what explain and what-if say of them (DESIGN section
// 9). Work that is lost is in GPU-seconds, rounded up.
#pragma once

#include <span>
#include <string>

#include "scheduler/engine/engine.h"

namespace tranche::app {

// {"reclaims":[...],"now":...}.
std::string EncodeReclaims(std::span<const Reclaim> reclaims, Instant now);

// Appended to an object that was begun:
// "plan": the reclaim that runs for the pod or takes it away, why there is none, or null.
void AppendPlan(std::string& out, const Explanation& explanation);
// "victims", by name, and what else is to be said of the evictions that would make room.
void AppendEvictions(std::string& out, const WhatIfResult& result);

}  // namespace tranche::app
