// The read-only API's JSON (DESIGN section 9) from the engine's views.
//
// Text is appended as it goes, no tree is built: 5,000 nodes of 8 GPUs take tens of milliseconds.
// `index` and `uuid` of devices are null where knowledge is counts: nobody knows them.
#pragma once

#include <span>
#include <string>

#include "scheduler/engine/engine.h"

namespace tranche {

std::string EncodeNodes(std::span<const NodeView> nodes);
std::string EncodePods(std::span<const PodView> pods);
std::string EncodeGangs(std::span<const GangView> gangs);
// The pod's entry plus nodes, plan and advice.
std::string EncodeExplanation(const Explanation& explanation);
std::string EncodeWhatIf(std::span<const WhatIfResult> results);

}  // namespace tranche
